//! Compares a trace of a command with the kernel's own totals for it (`wait4`). Figures that are too
//! small are marked as lower bounds, CPU time that is too large as an upper bound; none is changed.

use pinwise_format::{percent, seconds};
use pinwise_machine::Run;
use pinwise_record::{Finding, LowerBound, Severity, TraceFigures, WaitBasis};
use pinwise_sched::Scope;

/// Figures may differ from the kernel's by this share, …
const TOLERANCE: f64 = 0.03;
/// … or, if that is more, by this much CPU time …
const CPU_TOLERANCE_S: f64 = 0.001;
/// … and this many switches.
const SWITCH_TOLERANCE: f64 = 3.0;

/// Marks figures that the trace saw only in part. Returns a finding if CPU time is missing or in
/// excess.
pub(super) fn reconcile(figures: &mut TraceFigures, scope: Scope, run: &Run) -> Option<Finding> {
    let totals = &figures.totals;
    let is_short = |seen: f64, true_figure: f64, tolerance: f64| {
        true_figure - seen > tolerance.max(TOLERANCE * true_figure)
    };
    let counted_s = run.user.zip(run.system).map(|(user, system)| user + system);
    let counted_s = counted_s.map(|time| time.as_secs_f64());
    let missing_cpu = counted_s.filter(|&s| is_short(totals.cpu_s, s, CPU_TOLERANCE_S));
    let excess_cpu = counted_s.filter(|&s| is_short(s, totals.cpu_s, CPU_TOLERANCE_S));
    let switches = run.voluntary_switches.zip(run.involuntary_switches);
    let missing_switches = switches
        .zip(totals.switches)
        .is_some_and(|((a, b), seen)| is_short(seen as f64, (a + b) as f64, SWITCH_TOLERANCE));
    let is_partial = missing_cpu.is_some() || missing_switches;
    let seen_s = totals.cpu_s;
    // The kernel's own total of the time queued lacks a thread's last moments, which only records
    // of whole CPUs contain.
    let by_events = figures.waits.basis == Some(WaitBasis::Events);
    let has_whole_waits = scope.has_all_cpus && !by_events;
    let sees_waits_in_part = missing_cpu.is_some() && !has_whole_waits;
    // The kernel reports a thread before its last switches, and so before its last waits.
    let misses_ends = missing_switches && !by_events;
    // A thread whose switches are missing may have run while it seemed queued.
    figures.waits.is_upper_bound |= sees_waits_in_part && by_events;
    figures.totals.cpu_is_upper_bound |= excess_cpu.is_some();
    let bounds = &mut figures.lower_bounds;
    for (bound, holds) in [
        (LowerBound::CpuTime, missing_cpu.is_some()),
        (LowerBound::Switches, missing_switches),
        (LowerBound::Migrations, is_partial),
        (LowerBound::Queued, sees_waits_in_part || misses_ends),
    ] {
        if holds && !bounds.contains(&bound) {
            bounds.push(bound);
        }
    }
    let unseen = missing_cpu.map(|counted_s| report_unseen(seen_s, counted_s, scope));
    unseen.or_else(|| excess_cpu.map(|counted_s| report_excess(seen_s, counted_s)))
}

/// On virtual machines with neighbours the usual cause is the hypervisor.
fn report_excess(seen_s: f64, counted_s: f64) -> Finding {
    let sentence = format!(
        "Threads were on CPUs for {} while the kernel counted {} of CPU time for the command: the rest is steal time of a hypervisor, or belongs to processes that nobody waited for.",
        seconds(seen_s),
        seconds(counted_s),
    );
    Finding::new("excess_cpu", Severity::Note, sentence, "")
        .with_weight(8)
        .with_evidence("seen_s", seen_s)
        .with_evidence("counted_s", counted_s)
}

fn report_unseen(seen_s: f64, counted_s: f64, scope: Scope) -> Finding {
    let (why, advice, severity) = if scope.has_switches {
        (
            "what threads do before their program starts and while they end is not recorded",
            "",
            Severity::Note,
        )
    } else {
        (
            "short-lived threads end between two polls",
            "Use a tier that sees every switch: --tier switch.",
            Severity::Warning,
        )
    };
    let sentence = format!(
        "The trace saw {} of the {} of CPU time that the kernel counted for the command ({}): {why}.",
        seconds(seen_s),
        seconds(counted_s),
        percent(seen_s / counted_s),
    );
    Finding::new("unseen", severity, sentence, advice)
        .with_weight(9)
        .with_evidence("seen_s", seen_s)
        .with_evidence("counted_s", counted_s)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use pinwise_machine::End;
    use pinwise_record::Bound;
    use pinwise_record::examples::any_figures;
    use pinwise_sched::Tier;

    /// Checks a trace that saw this much CPU time and this many switches of a command for which the
    /// kernel counted one second and 100 switches.
    #[track_caller]
    fn check(tier: Tier, cpu_s: f64, switches: u64, bounds: &[LowerBound], finding: Option<&str>) {
        let mut figures = any_figures(cpu_s);
        figures.totals.switches = Some(switches);
        let run = Run {
            user: Some(Duration::from_millis(900)),
            system: Some(Duration::from_millis(100)),
            voluntary_switches: Some(60),
            involuntary_switches: Some(40),
            ..Run::ended(Duration::from_secs(1), End::Status(0))
        };
        let found = reconcile(&mut figures, tier.scope(), &run);
        assert_eq!(figures.lower_bounds, bounds);
        assert_eq!(figures.totals.cpu_is_upper_bound, cpu_s > 1.03);
        assert_eq!(found.map(|found| found.sentence).as_deref(), finding);
    }

    #[test]
    fn time_queued_by_events_that_were_lost_is_a_lower_bound() {
        let mut figures = any_figures(0.5);
        figures.waits.basis = Some(WaitBasis::Events);
        let run = Run {
            user: Some(Duration::from_secs(1)),
            system: Some(Duration::ZERO),
            ..Run::ended(Duration::from_secs(1), End::Status(0))
        };
        reconcile(&mut figures, Tier::Tracepoint.scope(), &run);
        assert_eq!(figures.bound(LowerBound::Queued), Bound::Rough);
        // The kernel's total beside records of whole CPUs is whole.
        let mut figures = any_figures(0.5);
        reconcile(&mut figures, Tier::CpuWide.scope(), &run);
        assert_eq!(figures.bound(LowerBound::CpuTime), Bound::Lower);
        assert_eq!(figures.bound(LowerBound::Queued), Bound::Exact);
    }

    #[test]
    fn cpu_time_beyond_the_kernels_count_is_an_upper_bound() {
        check(Tier::Switch, 1.02, 100, &[], None);
        check(
            Tier::Switch,
            1.05,
            100,
            &[],
            Some(
                "Threads were on CPUs for 1.05 s while the kernel counted 1.00 s of CPU time for \
                 the command: the rest is steal time of a hypervisor, or belongs to processes \
                 that nobody waited for.",
            ),
        );
    }

    #[test]
    fn figures_below_the_kernels_are_lower_bounds() {
        use LowerBound::{CpuTime, Migrations, Queued, Switches};
        check(Tier::Switch, 0.99, 99, &[], None);
        check(
            Tier::Switch,
            0.98,
            50,
            &[Switches, Migrations, Queued],
            None,
        );
        check(Tier::Proc, 1.0, 100, &[], None);
        check(
            Tier::Proc,
            0.000_632,
            2,
            &[CpuTime, Switches, Migrations, Queued],
            Some(
                "The trace saw 632 µs of the 1.00 s of CPU time that the kernel counted for the \
                 command (0.06 %): short-lived threads end between two polls.",
            ),
        );
        check(
            Tier::Switch,
            0.5,
            100,
            &[CpuTime, Migrations, Queued],
            Some(
                "The trace saw 500 ms of the 1.00 s of CPU time that the kernel counted for the \
                 command (50.0 %): what threads do before their program starts and while they end \
                 is not recorded.",
            ),
        );
    }
}
