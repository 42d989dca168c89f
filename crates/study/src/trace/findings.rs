//! Findings of a trace. A check is a function from the record to a finding.

use super::answer;
use super::blocking::{find_blocking, find_lock_waits, find_never_blocking, find_yielding};
use super::limits::{find_memory_limit, find_throttling};
use super::memory::find_far_memory;
use super::shares::{count_busy_others, describe_time, severity_of};
use pinwise_format::{count_of, grouped, percent, seconds};
use pinwise_record::{
    Finding, LowerBound, Severity, TraceFigures, TraceRecord, TraceSource, TraceTier, WaitRecord,
};
use pinwise_sched::{Availability, Tier};
use pinwise_topology::CpuSet;

/// A smaller share of the CPU time is not worth mentioning, per cent.
const WORTH_PERCENT: f64 = 1.0;
/// Throttled time is a mean over the trace: a difference of less than this part of it cannot be
/// blamed on others.
const REST_OF_THROTTLING: f64 = 0.1;
/// Events that contradict each other, as a share of all. A few are in nearly every trace, and change
/// no figure.
const MISLEADING: f64 = 1e-2;
/// Moves that cross a cache or more, a second of CPU time: each costs up to 0.1 ms (1 MiB of cached
/// data, at 10 GB/s), so that these may cost a tenth of it.
const MANY_FAR_MOVES: f64 = 1_000.0;

/// Findings that the scheduler could have avoided, however small.
const WASTE: [&str; 3] = ["avoidable_smt_sharing", "idle_while_waiting", "mask"];

/// Judges the figures. `knows_quotas`: the time that quotas took is known.
pub(super) fn judge(record: &mut TraceRecord, knows_quotas: bool) {
    let figures = &record.figures;
    let found = [
        find_lost_events(figures, &record.source),
        find_unseen_idle_task(figures).or_else(|| find_contradictions(figures)),
        find_avoidable_sharing(figures),
        find_unavoidable_sharing(figures),
        find_waits_while_idle(figures, knows_quotas),
        find_waits_for_mask(figures),
        find_waits_for_others(figures),
        find_yielding(record).or_else(|| find_never_blocking(record)),
        find_waits_for_class(figures),
        find_crowding(record),
        find_unexplained(record),
        find_migrations(figures),
    ];
    record.header.findings.extend(found.into_iter().flatten());
    let is_waste = |f: &Finding| f.severity > Severity::Note || WASTE.contains(&f.check.as_str());
    if !record.findings.iter().any(is_waste) {
        record.header.findings.extend(report_little_waste(record));
    }
    sort(record);
    answer::write(record);
}

/// Adds what only a live trace knows. `counted_cpu_s`: what the kernel counted for a command.
pub(super) fn add_live(
    record: &mut TraceRecord,
    tiers: &[Availability],
    counted_cpu_s: Option<f64>,
) {
    let at_lock = find_lock_waits(record);
    let lock_share = at_lock.as_ref().map_or(0.0, share_of);
    let blocking = find_blocking(record, counted_cpu_s);
    // Both say why threads did not run; the larger share says more.
    let blocking = blocking.filter(|blocking| share_of(blocking) > lock_share);
    record.header.findings.extend(at_lock);
    record.header.findings.extend(blocking);
    record.header.findings.extend(find_poor_tier(record, tiers));
    record.header.findings.extend(find_throttling(record));
    record.header.findings.extend(find_memory_limit(record));
    let memory = record.figures.memory.as_ref();
    let far = memory.and_then(|memory| find_far_memory(memory, &record.source));
    record.header.findings.extend(far);
    sort(record);
}

fn sort(record: &mut TraceRecord) {
    record.header.findings.sort_by(|a, b| {
        let by_share = share_of(b).total_cmp(&share_of(a));
        let by_severity = b.severity.cmp(&a.severity);
        by_severity.then(by_share).then(b.weight.cmp(&a.weight))
    });
}

/// The share of the time that a finding explains; 0 if it is about no time.
fn share_of(finding: &Finding) -> f64 {
    let share = finding.evidence.get("share");
    share.and_then(serde_json::Value::as_f64).unwrap_or(0.0)
}

fn find_lost_events(figures: &TraceFigures, source: &TraceSource) -> Option<Finding> {
    let lost = &figures.lost;
    (lost.records > 0).then(|| {
        let sentence = format!(
            "{} lost in {} ({} of CPU time): events there are not counted.",
            count_of(lost.records, "record was", "records were"),
            count_of(lost.windows, "gap", "gaps"),
            seconds(lost.seconds)
        );
        let advice = match source {
            TraceSource::Import { .. } => {
                "Record for a shorter time, or with larger buffers (perf record -m, trace-cmd record -b)."
            }
            _ => "Trace for a shorter time, or use a tier with less overhead (pinwise trace tiers).",
        };
        Finding::new("lost", Severity::Problem, sentence, advice)
            .with_evidence("records", lost.records)
            .with_evidence("seconds", lost.seconds)
    })
}

/// Seen on Linux 6.18, where `perf record` lost the same events.
fn find_unseen_idle_task(figures: &TraceFigures) -> Option<Finding> {
    let cpus = &figures.lost.idle_task_unseen;
    (!cpus.is_empty()).then(|| {
        let listed: CpuSet = cpus.iter().map(|&cpu| cpu as usize).collect();
        let sentence = format!(
            "The kernel delivered no idle-task events on CPU {listed}: threads that started running there were missed, so CPU time and time queued are lower bounds."
        );
        let advice = "perf record loses them, too; use --tier bpf.";
        Finding::new("idle_task_unseen", Severity::Problem, sentence, advice)
            .with_evidence("cpus", listed.to_string())
            .with_evidence("contradictions", figures.lost.contradictions)
    })
}

fn find_contradictions(figures: &TraceFigures) -> Option<Finding> {
    let lost = &figures.lost;
    let odd = lost.contradictions + lost.backwards;
    let events = figures.totals.events.max(1);
    let share = odd as f64 / events as f64;
    (share > MISLEADING).then(|| {
        let sentence = format!(
            "{} of {} events contradict earlier ones: some switches were not recorded, so the figures are approximate.",
            grouped(odd),
            grouped(events)
        );
        Finding::new("contradictions", Severity::Warning, sentence, "")
            .with_evidence("contradictions", lost.contradictions)
            .with_evidence("backwards", lost.backwards)
    })
}

fn find_avoidable_sharing(figures: &TraceFigures) -> Option<Finding> {
    let sharing = &figures.avoidable_smt_sharing;
    let (shared_s, share) = (sharing.seconds?, sharing.percent?);
    if share < WORTH_PERCENT {
        return None;
    }
    let severity = severity_of(figures, shared_s).unwrap_or(Severity::Note);
    let by = sharing.by.unwrap_or_default();
    let causes = [
        (by.scheduler_s, "by the scheduler's choice"),
        (
            by.mask_s,
            "because the affinity mask forbids the idle cores",
        ),
        (
            by.other_processes_s,
            "because other programs ran on the sibling",
        ),
    ];
    let causes: Vec<String> = causes
        .iter()
        .filter(|(part, _)| *part > 0.01 * shared_s)
        .map(|(part, words)| format!("{} {words}", seconds(*part)))
        .collect();
    let sentence = format!(
        "Threads shared a core for {} ({} of their CPU time) while another core was idle: {}.",
        seconds(shared_s),
        percent(share / 100.0),
        causes.join(", ")
    );
    let advice = if by.mask_s >= by.scheduler_s.max(by.other_processes_s) {
        "Allow CPUs of more cores: the affinity mask keeps the threads together."
    } else {
        "Try one CPU per core: pinwise compare --place os-default --place one-per-core -- …"
    };
    Some(
        Finding::new("avoidable_smt_sharing", severity, sentence, advice)
            .with_weight(8)
            .with_evidence("seconds", shared_s)
            .with_evidence("share", figures.share_of_threads(shared_s))
            .with_evidence("percent", share)
            .with_evidence("scheduler_s", by.scheduler_s)
            .with_evidence("mask_s", by.mask_s)
            .with_evidence("other_processes_s", by.other_processes_s),
    )
}

fn find_unavoidable_sharing(figures: &TraceFigures) -> Option<Finding> {
    let sharing = &figures.avoidable_smt_sharing;
    let shared = sharing.shared_percent?;
    let avoidable = sharing.percent.unwrap_or(0.0);
    (shared - avoidable >= WORTH_PERCENT).then(|| {
        let what = if sharing.percent.is_some() {
            "while no core was idle: there were more busy threads than cores"
        } else {
            "of this program; whether cores were idle is unknown"
        };
        let sentence = format!(
            "Threads ran beside a busy SMT sibling for {} of their CPU time {what}.",
            percent((shared - avoidable) / 100.0)
        );
        Finding::new("smt_sharing", Severity::Note, sentence, "")
            .with_evidence("shared_percent", shared)
            .with_evidence("avoidable_percent", avoidable)
    })
}

fn find_waits_while_idle(figures: &TraceFigures, knows_quotas: bool) -> Option<Finding> {
    let idle = &figures.idle_while_waiting;
    let scheduler_s = idle.scheduler_s?;
    // Which CPUs idled is not known then.
    if !figures.lost.idle_task_unseen.is_empty() {
        return None;
    }
    let severity = severity_of(figures, scheduler_s)?;
    (!is_rest_of_throttling(figures, scheduler_s)).then(|| {
        let longest = idle.longest_s.map_or_else(String::new, |longest_s| {
            format!(", up to {} at a time", seconds(longest_s))
        });
        let sentence = format!(
            "Threads were queued for {} while a CPU that they may use was idle{longest}.",
            describe_time(figures, scheduler_s),
        );
        let advice = if knows_quotas {
            "The scheduler left work queued; a placement that spreads the threads may avoid it (pinwise compare)."
        } else {
            "The cause is unknown: either the scheduler left work queued, or a CPU quota held the threads back, which this trace cannot see."
        };
        Finding::new("idle_while_waiting", severity, sentence, advice)
            .with_weight(7)
            .with_evidence("scheduler_s", scheduler_s)
.with_evidence("share", figures.share_of_threads(scheduler_s))
            .with_evidence("longest_s", idle.longest_s)
    })
}

/// May this part of the waits be throttled time, too?
fn is_rest_of_throttling(figures: &TraceFigures, waited_s: f64) -> bool {
    // A tier that knows no causes still knows the quota's time.
    let throttled_s = figures.throttled.as_ref().map_or(0.0, |by| by.seconds);
    waited_s < REST_OF_THROTTLING * throttled_s
}

fn find_waits_for_mask(figures: &TraceFigures) -> Option<Finding> {
    let waited_s = figures.waits.because?.mask_s;
    let severity = severity_of(figures, waited_s)?;
    (!is_rest_of_throttling(figures, waited_s)).then(|| {
        let sentence = format!(
            "Threads waited {} while the only idle CPUs were outside their affinity mask.",
            describe_time(figures, waited_s)
        );
        let advice = "Allow more CPUs, or start fewer threads.";
        Finding::new("mask", severity, sentence, advice)
            .with_weight(6)
            .with_evidence("mask_s", waited_s)
            .with_evidence("share", figures.share_of_threads(waited_s))
    })
}

fn find_waits_for_others(figures: &TraceFigures) -> Option<Finding> {
    let waited_s = figures.waits.because?.other_processes_s;
    let severity = severity_of(figures, waited_s)?;
    (!is_rest_of_throttling(figures, waited_s)).then(|| {
        let sentence = format!(
            "Threads waited {} behind other programs while no CPU was free for them{}.",
            describe_time(figures, waited_s),
            describe_other_programs(&figures.waits)
        );
        let advice = "Stop or move them (pinwise top).";
        Finding::new("other_processes", severity, sentence, advice)
            .with_weight(6)
            .with_evidence("other_processes_s", waited_s)
            .with_evidence("share", figures.share_of_threads(waited_s))
    })
}

/// At most this many programs are named.
const MAX_NAMED: usize = 3;

/// `: hog ran 62 % of that time on their CPUs, cc1plus 20 %`; empty if nobody is known.
fn describe_other_programs(waits: &WaitRecord) -> String {
    let behind = waits.behind.iter().take(MAX_NAMED);
    let mut named = behind.map(|one| (&one.name, percent(one.share)));
    let Some((name, share)) = named.next() else {
        return String::new();
    };
    let more = named.map(|(name, share)| format!(", {name} {share}"));
    format!(
        ": {name} ran {share} of that time on their CPUs{}",
        more.collect::<String>()
    )
}

fn find_waits_for_class(figures: &TraceFigures) -> Option<Finding> {
    let waited_s = figures.waits.because?.scheduling_class_s;
    let severity = severity_of(figures, waited_s)?;
    let sentence = format!(
        "Threads waited {} because of their own scheduling class.",
        describe_time(figures, waited_s)
    );
    let advice = "SCHED_DEADLINE has a budget in each period, real-time classes leave some CPU time to others (sched_rt_runtime_us), and SCHED_IDLE lets others go first; chrt -p shows and changes the class.";
    let finding = Finding::new("scheduling_class", severity, sentence, advice).with_weight(6);
    Some(
        finding
            .with_evidence("scheduling_class_s", waited_s)
            .with_evidence("share", figures.share_of_threads(waited_s)),
    )
}

fn find_crowding(record: &TraceRecord) -> Option<Finding> {
    let figures = &record.figures;
    let waited_s = figures.waits.because?.own_threads_s;
    // Of a whole machine the threads are not one program's.
    let whose = match record.source {
        TraceSource::Machine | TraceSource::Import { pid: None, .. } => "other traced threads",
        _ => "threads of the same program",
    };
    let is_much = severity_of(figures, waited_s)? == Severity::Warning;
    let sentence = format!(
        "Threads waited {} behind {whose} while no CPU was free for them.",
        describe_time(figures, waited_s)
    );
    // If there are more threads than CPUs, they wait for each other whether other programs run
    // or not.
    let rest_s = figures.waits.total_s.unwrap_or(0.0) - waited_s;
    let (severity, weight) = match is_much && waited_s > rest_s {
        true => (Severity::Warning, 8),
        false => (Severity::Note, 4),
    };
    // The stages of a pipeline are no threads to be left out.
    let (or_fewer, fewer) = match record.figures.totals.processes {
        0 | 1 => ("or use fewer threads", "Fewer threads may be as fast."),
        _ => (
            "or run fewer processes at once",
            "Fewer processes at once may be as fast.",
        ),
    };
    let is_masked = answer::find_mask(record).is_some();
    let is_crowded = answer::is_crowded(record);
    let advice = match count_busy_others(record).filter(|_| !is_crowded) {
        _ if is_masked => format!("Allow it more CPUs, {or_fewer}."),
        Some(cpus) => format!(
            "Other programs kept {cpus:.1} CPUs busy: stop or move them (pinwise top), {or_fewer}."
        ),
        None => fewer.to_owned(),
    };
    let finding = Finding::new("own_threads", severity, sentence, advice).with_weight(weight);
    Some(
        finding
            .with_evidence("own_threads_s", waited_s)
            .with_evidence("share", figures.share_of_threads(waited_s)),
    )
}

/// A tier that does not see all CPUs and wake-ups does not know why threads were queued.
fn find_unexplained(record: &TraceRecord) -> Option<Finding> {
    let figures = &record.figures;
    let waited_s = figures.waits.total_s?;
    let severity = severity_of(figures, waited_s)?;
    let is_unexplained = figures.waits.because.is_none() && figures.throttled.is_none();
    is_unexplained.then(|| {
        let sentence = format!(
            "Threads were queued for {}{}: CPUs were busy, or a quota or mask held them back.",
            figures.bound(LowerBound::Queued).words(),
            describe_time(figures, waited_s)
        );
        let advice = match (&record.source, &record.tier) {
            (TraceSource::Import { .. }, _) | (_, TraceTier::Bpf | TraceTier::Tracepoint) => "",
            _ => "Which of them: trace with --tier bpf or tracepoint (pinwise trace tiers).",
        };
        Finding::new("queued", severity, sentence, advice)
            .with_weight(6)
            .with_evidence("queued_s", waited_s)
            .with_evidence("share", figures.share_of_threads(waited_s))
    })
}

fn find_migrations(figures: &TraceFigures) -> Option<Finding> {
    let moves = &figures.totals.migrations;
    let total = moves.total();
    if total == 0 {
        return None;
    }
    let far = moves.llc + moves.numa + moves.package;
    let rate = far as f64 / figures.totals.cpu_s.max(1e-3);
    let unseen = (moves.unknown, "unseen");
    let parts: Vec<String> = moves
        .list_crossings()
        .into_iter()
        .chain([unseen])
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    let times = if total == 1 { "time" } else { "times" };
    let sentence = format!("Threads migrated {total} {times}: {}.", parts.join(", "));
    let (severity, advice) = if rate >= MANY_FAR_MOVES && far > 20 {
        let advice =
            "Each move to another cache leaves the cached data behind; try one-llc or one-numa.";
        (Severity::Warning, advice)
    } else {
        (Severity::Note, "")
    };
    let finding = Finding::new("migrations", severity, sentence, advice);
    Some(
        finding
            .with_weight(3)
            .with_evidence("total", total)
            .with_evidence("far", far),
    )
}

/// "No findings" is a result as well.
fn report_little_waste(record: &TraceRecord) -> Option<Finding> {
    let figures = &record.figures;
    figures.avoidable_smt_sharing.seconds?;
    let waited = figures.waits.total_s.map_or_else(String::new, |waited| {
        let bound = figures.bound(LowerBound::Queued).words();
        format!(", and threads were queued for {bound}{}", seconds(waited))
    });
    let sentence = format!(
        "The scheduler wasted almost nothing: avoidable SMT sharing was {} of the CPU time{waited}.",
        percent(figures.avoidable_smt_sharing.percent.unwrap_or(0.0) / 100.0)
    );
    Some(Finding::new("in_order", Severity::Note, sentence, "").with_weight(5))
}

fn find_poor_tier(record: &TraceRecord, tiers: &[Availability]) -> Option<Finding> {
    let used: Tier = record.tier.as_str().parse().ok()?;
    let better = tiers.iter().rev().find(|tier| tier.tier > used)?;
    if used.scope().has_all_cpus {
        return None;
    }
    // The kernel's sums per CPU, if they were polled, do not say who it was or when.
    let rest = match record.figures.totals.foreign_cpu_s {
        Some(_) => "for other processes and idle time it has only totals per CPU",
        None => "which other processes ran and which CPUs were idle is unknown",
    };
    let sentence = format!("Tier {used} sees only the program's own threads: {rest}.");
    let richer = tiers
        .iter()
        .find(|tier| tier.tier > used && tier.tier.scope().has_all_cpus);
    let refusal = richer.and_then(|tier| tier.refusal.as_ref());
    let advice = match refusal.and_then(|refusal| refusal.remedy.as_deref()) {
        Some(remedy) => format!("Permit more with: {remedy}"),
        None => format!("--tier {} shows more.", better.tier),
    };
    Some(Finding::new("tier", Severity::Note, sentence, advice).with_weight(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_few_contradictions_of_nearly_every_trace_are_no_finding() {
        let find = |odd| {
            let mut figures = pinwise_record::examples::any_figures(1.0);
            figures.totals.events = 4_382;
            figures.lost.contradictions = odd;
            find_contradictions(&figures).map(|found| found.sentence)
        };
        assert_eq!(find(40), None);
        let said = find(48).unwrap();
        assert!(
            said.starts_with("48 of 4,382 events contradict earlier ones"),
            "{said}"
        );
    }
}
