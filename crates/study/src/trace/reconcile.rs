//! Compares a trace of a command with what the kernel counted for it (`wait4`): a figure that is
//! too small is marked as a lower bound, CPU time that is too large as an upper one. It repairs
//! none.

use pinwise_format::{percent, seconds};
use pinwise_machine::Run;
use pinwise_record::{Finding, LowerBound, Severity, TraceFigures, WaitBasis};
use pinwise_sched::Scope;

/// Figures may be too small by this share, and by this much.
const SHORT: f64 = 0.03;
const SHORT_CPU_S: f64 = 0.001;
const SHORT_SWITCHES: f64 = 3.0;

/// Marks what the trace saw only in part, with a note.
pub(super) fn reconcile(figures: &mut TraceFigures, scope: Scope, run: &Run) -> Option<Finding> {
    let looks_only = !scope.has_switches;
    let totals = &figures.totals;
    let is_short = |seen: f64, true_figure: f64, least: f64| {
        true_figure - seen > least.max(SHORT * true_figure)
    };
    let counted_s = run.user.zip(run.system).map(|(user, system)| user + system);
    let counted_s = counted_s.map(|time| time.as_secs_f64());
    let missing_cpu = counted_s.filter(|&s| is_short(totals.cpu_s, s, SHORT_CPU_S));
    let excess_cpu = counted_s.filter(|&s| is_short(s, totals.cpu_s, SHORT_CPU_S));
    let switches = run.voluntary_switches.zip(run.involuntary_switches);
    let missing_switches = switches
        .zip(totals.switches)
        .is_some_and(|((a, b), seen)| is_short(seen as f64, (a + b) as f64, SHORT_SWITCHES));
    let is_partial = missing_cpu.is_some() || missing_switches;
    let seen_s = totals.cpu_s;
    // The kernel's own total of the time queued lacks a thread's last moments, which only records
    // of whole CPUs contain.
    let by_events = figures.waits.basis == Some(WaitBasis::Events);
    let is_whole = scope.has_all_cpus && !by_events;
    let sees_waits_in_part = missing_cpu.is_some() && !is_whole;
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
    let unseen = missing_cpu.map(|counted_s| describe_unseen(seen_s, counted_s, looks_only));
    unseen.or_else(|| excess_cpu.map(|counted_s| excess_finding(seen_s, counted_s)))
}

/// On virtual machines with neighbours the usual cause is the hypervisor.
fn excess_finding(seen_s: f64, counted_s: f64) -> Finding {
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

fn describe_unseen(seen_s: f64, counted_s: f64, looks_only: bool) -> Finding {
    let (why, advice, severity) = if looks_only {
        (
            "short-lived threads end between two polls",
            "Use a tier that sees every switch: --tier switch.",
            Severity::Warning,
        )
    } else {
        (
            "what threads do before their program starts and while they end is not recorded",
            "",
            Severity::Note,
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

    /// A trace that saw this much CPU time and this many switches of a command for
    /// which the kernel counted one second and 100 switches.
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
    fn what_is_short_of_the_kernels_count_is_a_lower_bound() {
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
