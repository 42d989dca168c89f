//! What threads wait for beside a CPU: what they are blocked in, and whether they wait by
//! giving up the CPU again and again.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pinwise_format::{count_of, grouped, percent, seconds, shell};
use pinwise_record::{
    BlockedIn, BlockedPart, BlockedRecord, Finding, LowerBound, Severity, ThreadRecord,
    TraceRecord, TraceSource,
};
use pinwise_sched::BlockedProcess;

/// All threads are blocked for this share of the time: that is the main reason for its duration.
const MOSTLY_BLOCKED: f64 = 0.5;
/// Processes that are kept.
const MAX_PROCESSES: usize = 50;
/// A smaller share of the polls is not named in a sentence.
const NOTABLE: f64 = 0.1;
/// The scheduler preempts a thread about once per slice of at least 0.7 ms. A thread that leaves
/// its CPU this often per second of CPU time, and hardly ever blocks, yields.
const YIELDS_PER_CPU_SECOND: f64 = 5_000.0;
const MAX_BLOCKING_SHARE: f64 = 0.05;
/// Fewer say too little.
const MIN_YIELDS: u64 = 1_000;

/// What threads of each process were blocked in.
pub(super) fn record(seen: &[BlockedProcess]) -> Vec<BlockedRecord> {
    let record = |seen: &BlockedProcess| BlockedRecord {
        process: seen.process,
        name: seen.name.clone(),
        looks: seen.total(),
        parts: rank(
            seen.looks
                .iter()
                .map(|(&what, &looks)| (what.into(), looks)),
        ),
    };
    seen.iter().take(MAX_PROCESSES).map(record).collect()
}

/// The most frequent first.
fn rank(looks: impl Iterator<Item = (BlockedIn, u64)>) -> Vec<BlockedPart> {
    let mut parts: Vec<BlockedPart> = looks
        .map(|(what, looks)| BlockedPart { what, looks })
        .collect();
    parts.sort_by_key(|part| Reverse(part.looks));
    parts
}

/// While a thread runs or is queued, not all are blocked; together those times are at
/// least as long as that while.
pub(super) fn find_blocking(record: &TraceRecord) -> Option<Finding> {
    let figures = &record.figures;
    let is_bound = |bound: &LowerBound| matches!(bound, LowerBound::CpuTime | LowerBound::Queued);
    if figures.lower_bounds.iter().any(is_bound) {
        return None;
    }
    let held_s = figures.throttled.as_ref().map_or(0.0, |held| held.seconds);
    let awake_s = figures.totals.cpu_s + figures.waits.total_s? + held_s;
    let share = 1.0 - awake_s / record.elapsed_s;
    let (severity, target) = match &record.source {
        TraceSource::Process { pid, .. } => (Severity::Warning, format!(" -p {pid}")),
        TraceSource::Command { .. } => (Severity::Note, String::new()),
        TraceSource::Machine | TraceSource::Import { .. } => return None,
    };
    let advice = format!(
        "No placement shortens that. Each call with its time: strace -f -c{target}, or perf trace -s{target}."
    );
    (share >= MOSTLY_BLOCKED).then(|| {
        let sentence = format!(
            "All threads were blocked for at least {} of the time, {}.",
            percent(share),
            describe_reasons(&record.blocked)
        );
        Finding::new("blocked", severity, sentence, advice)
            .weighing(9)
            .with("share", share)
    })
}

/// What most polls of blocked threads found.
fn describe_reasons(blocked: &[BlockedRecord]) -> String {
    let mut sums: BTreeMap<&BlockedIn, u64> = BTreeMap::new();
    for part in blocked.iter().flat_map(|seen| &seen.parts) {
        *sums.entry(&part.what).or_default() += part.looks;
    }
    let all: u64 = sums.values().sum();
    let unknown = sums.remove(&BlockedIn::Unknown).unwrap_or(0);
    if 2 * unknown >= all {
        return "on locks, timers, input or a disk, not for want of a CPU".to_owned();
    }
    let parts = rank(sums.into_iter().map(|(what, looks)| (what.clone(), looks)));
    let share = |part: &BlockedPart| part.looks as f64 / all as f64;
    let notable = parts.iter().filter(|part| share(part) >= NOTABLE);
    let parts: Vec<String> = notable
        .map(|part| format!("{} in {}", part.what.words(), percent(share(part))))
        .collect();
    let looks = count_of(all, "look", "looks");
    format!(
        "not for want of a CPU: they waited for {} of {looks}",
        parts.join(", ")
    )
}

/// A loop around `sched_yield` looks like nothing else.
pub(super) fn find_yielding(record: &TraceRecord) -> Option<Finding> {
    let rate = |thread: &ThreadRecord| {
        let (switches, preemptions) = thread.switches.zip(thread.preemptions)?;
        let blocking = switches.saturating_sub(preemptions) as f64;
        let rate = preemptions as f64 / thread.cpu_s;
        let yields = rate >= YIELDS_PER_CPU_SECOND
            && blocking <= MAX_BLOCKING_SHARE * preemptions as f64
            && preemptions >= MIN_YIELDS;
        yields.then_some(rate)
    };
    let yielding = record.threads.iter().filter_map(|t| Some((t, rate(t)?)));
    let (thread, rate) = yielding.max_by(|a, b| a.0.cpu_s.total_cmp(&b.0.cpu_s))?;
    let target = match &record.source {
        TraceSource::Process { pid, .. } => format!("--pid {pid}"),
        TraceSource::Command { command, .. } => format!("-- {}", shell::line(command)),
        TraceSource::Machine | TraceSource::Import { .. } => {
            format!("--pid {}", thread.process.unwrap_or(thread.thread))
        }
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate"
    )]
    let rate = rate as u64;
    let sentence = format!(
        "{} gave up the CPU {} times per second of its {} of CPU time and next to never blocked: it waits by yielding (sched_yield in a loop).",
        thread.name,
        grouped(rate),
        seconds(thread.cpu_s),
    );
    let advice = format!("What it spins on: pinwise spin attach {target}");
    Some(
        Finding::new("yielding", Severity::Warning, sentence, advice)
            .weighing(7)
            .with("yields_per_cpu_second", rate as f64)
            .with("thread", thread.thread),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_process() -> TraceRecord {
        let text = include_str!("../../../../tests/data/records/trace.json");
        let mut record: TraceRecord = serde_json::from_str(text).unwrap();
        record.source = TraceSource::Process {
            pid: 7,
            name: "waiter".to_owned(),
        };
        record.elapsed_s = 15.0;
        record
    }

    /// A process with this CPU time and time queued.
    fn find(
        cpu_s: f64,
        queued_s: Option<f64>,
        bounds: &[LowerBound],
        looks: &[(BlockedIn, u64)],
    ) -> Option<(String, String)> {
        let mut record = of_process();
        record.figures.totals.cpu_s = cpu_s;
        record.figures.waits.total_s = queued_s;
        record.figures.lower_bounds = bounds.to_vec();
        record.blocked = vec![BlockedRecord {
            process: 7,
            name: "waiter".to_owned(),
            looks: looks.iter().map(|(_, looks)| looks).sum(),
            parts: rank(looks.iter().cloned()),
        }];
        find_blocking(&record).map(|found| (found.sentence, found.advice))
    }

    #[test]
    fn what_waits_for_no_cpu_is_called_blocked() {
        let (sentence, advice) = find(0.06, Some(0.18), &[], &[]).unwrap();
        let start = "All threads were blocked for at least 98.4 % of the time, ";
        let unknown = "on locks, timers, input or a disk, not for want of a CPU.";
        assert_eq!(sentence, format!("{start}{unknown}"));
        assert!(advice.contains("strace -f -c -p 7"), "{advice}");
        assert_eq!(find(9.0, Some(0.18), &[], &[]), None);
        assert_eq!(find(0.06, None, &[], &[]), None);
        assert_eq!(find(0.06, Some(0.18), &[LowerBound::Queued], &[]), None);
        let looks = [
            (BlockedIn::Timer, 1),
            (BlockedIn::Lock, 16),
            (BlockedIn::Events, 3),
        ];
        let (sentence, _) = find(0.06, Some(0.18), &[], &looks).unwrap();
        let seen = "not for want of a CPU: they waited for a lock or another thread (futex) in \
                    80.0 %, events (poll, epoll, select) in 15.0 % of 20 looks.";
        assert_eq!(sentence, format!("{start}{seen}"));
        let looks = [(BlockedIn::Timer, 1), (BlockedIn::Unknown, 1)];
        let (sentence, _) = find(0.06, Some(0.18), &[], &looks).unwrap();
        assert_eq!(sentence, format!("{start}{unknown}"));
    }

    #[test]
    fn a_thread_that_yields_all_the_time_is_found() {
        let find = |cpu_s, switches, preemptions| {
            let mut record = of_process();
            record.threads.truncate(1);
            let thread = &mut record.threads[0];
            thread.cpu_s = cpu_s;
            thread.switches = Some(switches);
            thread.preemptions = Some(preemptions);
            find_yielding(&record).map(|found| found.advice)
        };
        let advice = find(1.0, 100_100, 100_000).unwrap();
        assert!(advice.ends_with("pinwise spin attach --pid 7"), "{advice}");
        // One that hands a byte to and fro, one that is preempted by the tick, a short one.
        assert_eq!(find(1.0, 200_000, 100_000), None);
        assert_eq!(find(1.0, 1_000, 1_000), None);
        assert_eq!(find(0.01, 900, 900), None);
    }
}
