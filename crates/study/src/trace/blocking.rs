//! What threads wait for beside a CPU: what they are blocked in, and whether they wait by
//! giving up the CPU again and again.

use super::shares::{blocked_s, describe_time, severity_of};
use super::waiters::{self, list_active, share_in};
use pinwise_format::{grouped, percent, seconds, shell};
use pinwise_record::{
    BlockedIn, BlockedThread, Finding, LowerBound, Severity, ThreadRecord, TraceRecord, TraceSource,
};

/// All threads are blocked for this share of the time: that is the main reason for its duration.
const MOSTLY_BLOCKED: f64 = 0.5;
/// Blocked for this share of the time, they are worth a note.
const PARTLY_BLOCKED: f64 = 0.1;
/// A shorter command mostly waits to be started.
const MIN_BLOCKED_S: f64 = 0.1;
/// Fewer looks at threads that wait for a lock say too little.
const MIN_LOOKS: u64 = 5;
/// The holder of a lock was blocked itself for this part of the time that others waited: that is why.
const HELD_BLOCKED: f64 = 0.5;
/// It was mostly in what this part of the looks found.
const HELD_IN: f64 = 0.8;
/// The scheduler preempts a thread about once per slice of at least 0.7 ms. A thread that leaves
/// its CPU this often per second of CPU time, and hardly ever blocks, yields.
const YIELDS_PER_CPU_SECOND: f64 = 5_000.0;
const MAX_BLOCKING_SHARE: f64 = 0.05;
/// Fewer say too little.
const MIN_YIELDS: u64 = 1_000;
/// A thread that ran or was queued for at least this share of the trace, and blocked less often than
/// that a second, counts as never blocked: beginning and ending block, too.
const AWAKE: f64 = 0.9;
const RARE_PER_SECOND: f64 = 5.0;
/// In a shorter trace every thread may be one.
const MIN_AWAKE_S: f64 = 1.0;

/// While a thread runs or is queued, not all are blocked; together those times are at
/// least as long as that while. Where the trace saw them in part only, the share is no
/// bound; `counted_cpu_s` is what the kernel counted for a command.
pub(super) fn find_blocking(record: &TraceRecord, counted_cpu_s: Option<f64>) -> Option<Finding> {
    let figures = &record.figures;
    let misses = |bound| figures.lower_bounds.contains(&bound);
    let misses_cpu = misses(LowerBound::CpuTime) && counted_cpu_s.is_none();
    let held_s = figures.throttled.as_ref().map_or(0.0, |held| held.seconds);
    let cpu_s = figures.totals.cpu_s.max(counted_cpu_s.unwrap_or(0.0));
    let awake_s = cpu_s + figures.waits.total_s? + held_s;
    let share = 1.0 - awake_s / record.elapsed_s;
    let is_command = matches!(record.source, TraceSource::Command { .. });
    if is_command && record.elapsed_s < MIN_BLOCKED_S {
        return None;
    }
    let calls = advise_calls(&record.source)?;
    let advice = format!("No placement shortens that. {calls}");
    let bound = match percent(share).as_str() {
        "100 %" => "",
        _ if misses_cpu || misses(LowerBound::Queued) => "about ",
        _ => "at least ",
    };
    let (severity, weight) = match share {
        share if share >= MOSTLY_BLOCKED => (Severity::Warning, 9),
        share if share >= PARTLY_BLOCKED => (Severity::Note, 4),
        _ => return None,
    };
    let sentence = format!(
        "All threads were blocked for {bound}{} of the time, {}.",
        percent(share),
        waiters::describe_reasons(&record.blocked)
    );
    let wakers = waiters::describe_wakers(&record.blocked, &record.threads);
    let sentence = wakers.map_or(sentence.clone(), |wakers| format!("{sentence} {wakers}"));
    let finding = Finding::new("blocked", severity, sentence, advice)
        .with_weight(weight)
        .with_evidence("share", share);
    Some(finding)
}

/// How to see in which calls a program waits.
pub(super) fn advise_calls(source: &TraceSource) -> Option<String> {
    let target = match source {
        TraceSource::Process { pid, .. } => format!(" -p {pid}"),
        TraceSource::Command { .. } => String::new(),
        TraceSource::Machine | TraceSource::Import { .. } => return None,
    };
    Some(format!(
        "Each call with its time: strace -f -c -w{target}, or perf trace -s{target}."
    ))
}

/// What threads were blocked in, as far as that is known, as shares of the time blocked, the largest
/// first; empty if there were too few looks. Who awaits the end of others does not count.
pub(super) fn split_blocked(record: &TraceRecord) -> Vec<(BlockedIn, f64)> {
    let mut parts = waiters::sum_active(&record.blocked);
    parts.retain(|part| part.what != BlockedIn::Thread);
    let all: u64 = parts.iter().map(|part| part.looks).sum();
    if all < MIN_LOOKS {
        return Vec::new();
    }
    parts.retain(|part| match part.what {
        BlockedIn::Unknown => false,
        BlockedIn::Mutex => part.looks >= MIN_LOOKS,
        _ => true,
    });
    let parts = parts.into_iter();
    parts
        .map(|part| (part.what, part.looks as f64 / all as f64))
        .collect()
}

/// Time that threads waited for a lock, as a share of the time of those that did anything at all.
/// Polls say what they waited for, the scheduler's events for how long.
pub(super) fn find_lock_waits(record: &TraceRecord) -> Option<Finding> {
    let figures = &record.figures;
    let queued_s = figures.waits.total_s?;
    let mut parts = split_blocked(record).into_iter();
    let (_, lock_share) = parts.find(|(what, _)| *what == BlockedIn::Mutex)?;
    let lock_s = blocked_s(figures)? * lock_share;
    let severity = severity_of(figures, lock_s)?;
    let who = match waiters::name_waiters(&record.blocked, &BlockedIn::Mutex) {
        none if none.is_empty() => none,
        who => format!(": {who}"),
    };
    let mut sentence = format!(
        "Threads waited about {} for a lock (mutex){}{who}.",
        describe_time(figures, lock_s),
        waiters::name_places(&record.blocked, &BlockedIn::Mutex),
    );
    if let Some(wakers) = waiters::describe_wakers(&record.blocked, &record.threads) {
        sentence = format!("{sentence} {wakers}");
    }
    let held_in = find_holder_wait(record);
    if let Some(held_in) = &held_in {
        let held_in = held_in.as_ref().map_or_else(String::new, |what| {
            let place = waiters::name_places(&record.blocked, what);
            format!(", mostly for {}{place}", what.words())
        });
        sentence = format!("{sentence} Whoever holds it waits meanwhile{held_in}.");
    }
    // Whoever no longer waits for the lock waits for a CPU.
    let advice = match severity_of(figures, queued_s) {
        _ if held_in.is_some() => {
            "Do not sleep or wait while holding it, or split it: no placement shortens that."
        }
        Some(Severity::Warning) => {
            "Hold it for less, or split it: that helps once CPUs are free, and no placement does."
        }
        _ => "Hold it for less, or split it: no placement shortens that.",
    };
    let finding = Finding::new("lock_waits", severity, sentence, advice).with_weight(9);
    Some(
        finding
            .with_evidence("seconds", lock_s)
            .with_evidence("share", figures.share_of_threads(lock_s)),
    )
}

/// What the holder of a lock waits for itself, if that is why others wait for the lock; the inner
/// value is `None` if that differs. While a thread waits for it another one has it: if all together
/// were awake for less than that, the holder was blocked for the rest.
fn find_holder_wait(record: &TraceRecord) -> Option<Option<BlockedIn>> {
    let figures = &record.figures;
    let held_back_s = figures.throttled.as_ref().map_or(0.0, |held| held.seconds);
    let awake_s = figures.totals.cpu_s + figures.waits.total_s? + held_back_s;
    let at_lock = list_active(&record.blocked);
    let at_lock = at_lock.filter(|thread| share_in(thread, &BlockedIn::Mutex) > 0.0);
    let at_lock: Vec<&BlockedThread> = at_lock.collect();
    let all = record.blocked.iter().flat_map(|seen| &seen.threads);
    let most_looks = all.map(|thread| thread.looks).max()?;
    let waited_s = |thread: &BlockedThread| {
        let known = record
            .threads
            .iter()
            .find(|one| one.thread == thread.thread);
        let awake_s = known.map_or(0.0, |one| one.cpu_s + one.wait_s.unwrap_or(0.0));
        // Of a thread that lived for a part of the trace there are fewer looks.
        let lived = thread.looks as f64 / most_looks as f64;
        let blocked_s = lived * (record.elapsed_s - awake_s).max(0.0);
        blocked_s * share_in(thread, &BlockedIn::Mutex)
    };
    let waited_s = at_lock.iter().map(|one| waited_s(one)).fold(0.0, f64::max);
    if waited_s <= 0.0 || waited_s - awake_s < HELD_BLOCKED * waited_s {
        return None;
    }
    let mut parts = waiters::sum_parts(at_lock.into_iter());
    parts.retain(|part| !matches!(part.what, BlockedIn::Mutex | BlockedIn::Thread));
    let looks: u64 = parts.iter().map(|part| part.looks).sum();
    let first = parts.into_iter().next();
    let first = first.filter(|part| part.what != BlockedIn::Unknown);
    let first = first.filter(|part| part.looks as f64 >= HELD_IN * looks as f64);
    Some(first.map(|part| part.what))
}

/// The busiest thread that keeps giving up its CPU and hardly blocks: only a loop around `sched_yield`
/// looks like that.
pub(super) fn find_yielding(record: &TraceRecord) -> Option<Finding> {
    let rate = |thread: &ThreadRecord| {
        let (switches, preemptions) = thread.switches.zip(thread.preemptions)?;
        let blocking = switches.saturating_sub(preemptions) as f64;
        let rate = preemptions as f64 / thread.cpu_s;
        let yields = rate >= YIELDS_PER_CPU_SECOND
            && blocking <= MAX_BLOCKING_SHARE * preemptions as f64
            && preemptions >= MIN_YIELDS
            && 2 * count_wakes_by(record, thread.thread) < preemptions;
        yields.then_some(rate)
    };
    let yielding = record.threads.iter().filter_map(|t| Some((t, rate(t)?)));
    let (thread, rate) = yielding.max_by(|a, b| a.0.cpu_s.total_cmp(&b.0.cpu_s))?;
    let target = spin_target(record)
        .unwrap_or_else(|| format!("--pid {}", thread.process.unwrap_or(thread.thread)));
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
            .with_weight(7)
            .with_evidence("yields_per_cpu_second", rate as f64)
            .with_evidence("share", record.figures.share_of_threads(thread.cpu_s))
            .with_evidence("thread", thread.thread),
    )
}

/// How often this thread woke others of its process, at least: each may have taken its CPU.
fn count_wakes_by(record: &TraceRecord, thread: i32) -> u64 {
    let woken = record.blocked.iter().flat_map(|seen| &seen.threads);
    let wakers = woken.flat_map(|woken| &woken.woken_by);
    let by_it = wakers.filter(|waker| waker.thread == thread);
    by_it.map(|waker| waker.times).sum()
}

/// Whom `spin attach` would look at: what was traced, if that is one program.
pub(super) fn spin_target(record: &TraceRecord) -> Option<String> {
    match &record.source {
        TraceSource::Process { pid, .. } => Some(format!("--pid {pid}")),
        TraceSource::Command { command, .. } => Some(format!("-- {}", shell::line(command))),
        TraceSource::Machine | TraceSource::Import { .. } => None,
    }
}

/// How to find out whether its threads spin, if they may.
pub(super) fn advise_spin_attach(record: &TraceRecord) -> Option<String> {
    let target = spin_target(record)?;
    let awake = count_never_blocking(record);
    (awake > 1).then(|| {
        format!(
            "{} never block; whether they spin: pinwise spin attach {target}",
            match awake == record.threads.len() {
                true => "Its threads".to_owned(),
                false => format!("{awake} of its threads"),
            }
        )
    })
}

/// Threads that the scheduler alone took off their CPUs for the whole of a trace compute
/// or spin: it cannot tell one from the other.
pub(super) fn find_never_blocking(record: &TraceRecord) -> Option<Finding> {
    let target = spin_target(record)?;
    let awake = count_never_blocking(record);
    (awake > 1).then(|| {
        let sentence = format!("{awake} threads never blocked: they compute, or spin.");
        let advice = format!("Which of the two: pinwise spin attach {target}");
        Finding::new("never_blocking", Severity::Note, sentence, advice)
            .with_weight(2)
            .with_evidence("threads", awake)
    })
}

/// Was this thread ready or running for nearly all the time?
pub(super) fn is_awake(record: &TraceRecord, thread: &ThreadRecord) -> bool {
    thread.cpu_s + thread.wait_s.unwrap_or(0.0) >= AWAKE * record.elapsed_s
}

/// Threads that were ready or running all the time; 0 if the trace is too short to know.
fn count_never_blocking(record: &TraceRecord) -> usize {
    if record.elapsed_s < MIN_AWAKE_S {
        return 0;
    }
    let never_blocks = |thread: &&ThreadRecord| {
        let blocking = thread.switches.zip(thread.preemptions);
        let blocking = blocking.map(|(switches, forced)| switches.saturating_sub(forced) as f64);
        is_awake(record, thread)
            && blocking.is_some_and(|many| many < RARE_PER_SECOND * record.elapsed_s)
    };
    record.threads.iter().filter(never_blocks).count()
}

#[cfg(test)]
mod tests {
    use pinwise_record::{BlockedPlace, BlockedRecord};

    use super::*;

    fn process_record() -> TraceRecord {
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
        find_counted(cpu_s, queued_s, bounds, looks, None)
    }

    fn find_counted(
        cpu_s: f64,
        queued_s: Option<f64>,
        bounds: &[LowerBound],
        looks: &[(BlockedIn, u64)],
        counted_cpu_s: Option<f64>,
    ) -> Option<(String, String)> {
        let mut record = process_record();
        record.figures.totals.cpu_s = cpu_s;
        record.figures.waits.total_s = queued_s;
        record.figures.lower_bounds = bounds.to_vec();
        record.blocked = vec![BlockedRecord {
            process: 7,
            name: "waiter".to_owned(),
            looks: looks.iter().map(|(_, looks)| looks).sum(),
            parts: waiters::rank(looks.iter().cloned()),
            threads: Vec::new(),
        }];
        find_blocking(&record, counted_cpu_s).map(|found| (found.sentence, found.advice))
    }

    #[test]
    fn what_waits_for_no_cpu_is_called_blocked() {
        let (sentence, advice) = find(0.06, Some(0.18), &[], &[]).unwrap();
        let start = "All threads were blocked for at least 98.4 % of the time, ";
        let unknown = "on locks, timers, input or a disk, not for want of a CPU.";
        assert_eq!(sentence, format!("{start}{unknown}"));
        // Without -w strace sums up CPU time.
        assert!(advice.contains("strace -f -c -w -p 7"), "{advice}");
        // From a tenth of the time on it is worth a note.
        let (sentence, _) = find(9.0, Some(0.18), &[], &[]).unwrap();
        assert!(
            sentence.contains("at least 38.8 % of the time"),
            "{sentence}"
        );
        assert_eq!(find(14.0, Some(0.18), &[], &[]), None);
        assert_eq!(find(0.06, None, &[], &[]), None);
        let (sentence, _) = find(0.0001, Some(0.0), &[], &[]).unwrap();
        let all = "All threads were blocked for 100 % of the time, ";
        assert!(sentence.starts_with(all), "{sentence}");
        let looks = [
            (BlockedIn::Timer, 1),
            (BlockedIn::Lock, 16),
            (BlockedIn::Events, 3),
        ];
        let (sentence, _) = find(0.06, Some(0.18), &[], &looks).unwrap();
        let seen = "not for want of a CPU: they waited for a lock, work or another thread \
                    (futex) in 80.0 %, for events (poll, epoll, select) in 15.0 % of 20 looks.";
        assert_eq!(sentence, format!("{start}{seen}"));
        let looks = [(BlockedIn::Timer, 1), (BlockedIn::Unknown, 1)];
        let (sentence, _) = find(0.06, Some(0.18), &[], &looks).unwrap();
        assert_eq!(sentence, format!("{start}{unknown}"));
    }

    #[test]
    fn the_largest_share_of_the_time_is_named_first() {
        let check = |queued_s: f64, expected: [&str; 2]| {
            let mut record = contended(queued_s, BlockedIn::Mutex);
            record.figures.waits.because = Some(pinwise_record::WaitCauses {
                other_processes_s: queued_s,
                ..Default::default()
            });
            judge_again(&mut record);
            let found = record.header.findings;
            let checks: Vec<&str> = found.iter().take(2).map(|f| f.check.as_str()).collect();
            assert_eq!(checks, expected);
            let lock = found.iter().find(|found| found.check == "lock_waits");
            lock.unwrap().sentence.clone()
        };
        let said = check(2.0, ["lock_waits", "other_processes"]);
        let expected = "Threads waited about 7.00 s (70.0 % of their time) for a lock (mutex) at add(): \
                        job (4 threads).";
        assert_eq!(said, expected);
        check(5.0, ["other_processes", "lock_waits"]);
    }

    fn judge_again(record: &mut TraceRecord) {
        record.header.findings.clear();
        super::super::findings::judge(record, true);
        super::super::findings::add_live(record, &[], None);
        super::super::answer::write(record);
    }

    /// Four threads at one lock, queued for this long, mostly behind each other, and who waits for
    /// their end.
    fn contended(queued_s: f64, at: BlockedIn) -> TraceRecord {
        let worker = |thread| BlockedThread {
            thread,
            name: "job".to_owned(),
            looks: 10,
            what: at.clone(),
            parts: waiters::rank([(at.clone(), 10)].into_iter()),
            is_idle: false,
            places: vec![BlockedPlace {
                what: at.clone(),
                place: "add".to_owned(),
                looks: 10,
            }],
            wakes: None,
            woken_by: Vec::new(),
        };
        let mut threads: Vec<BlockedThread> = (8..12).map(worker).collect();
        threads.push(BlockedThread {
            what: BlockedIn::Thread,
            looks: 100,
            parts: waiters::rank([(BlockedIn::Thread, 100)].into_iter()),
            places: Vec::new(),
            ..worker(7)
        });
        let mut record = process_record();
        record.elapsed_s = 4.0;
        record.figures.totals.cpu_s = 1.0;
        record.figures.totals.life_s = Some(10.0);
        record.figures.waits.total_s = Some(queued_s);
        record.figures.lost = Default::default();
        record.figures.waits.because = Some(pinwise_record::WaitCauses {
            own_threads_s: queued_s,
            ..Default::default()
        });
        record.blocked = vec![BlockedRecord {
            process: 7,
            name: "job".to_owned(),
            looks: 140,
            parts: waiters::sum_parts(threads.iter()),
            threads,
        }];
        judge_again(&mut record);
        record
    }

    fn advice_of<'a>(record: &'a TraceRecord, check: &str) -> &'a str {
        let mut findings = record.findings.iter();
        let found = findings.find(|found| found.check == check);
        &found.unwrap_or_else(|| panic!("{check}")).advice
    }

    #[test]
    fn a_lock_that_each_thread_rarely_waits_for_names_none() {
        let mut record = contended(0.5, BlockedIn::Condition);
        for thread in &mut record.blocked[0].threads[..4] {
            let parts = [(BlockedIn::Condition, 28), (BlockedIn::Mutex, 2)];
            thread.parts = waiters::rank(parts.into_iter());
            thread.looks = 30;
        }
        judge_again(&mut record);
        let mut findings = record.findings.iter();
        let found = findings.find(|found| found.check == "lock_waits");
        let said = &found.unwrap().sentence;
        assert!(said.ends_with("for a lock (mutex)."), "{said}");
    }

    #[test]
    fn who_waits_for_a_mutex_is_not_suspected_of_spinning() {
        let locked = contended(5.0, BlockedIn::Mutex);
        let advice = advice_of(&locked, "own_threads");
        assert!(!advice.contains("spin"), "{advice}");
    }

    #[test]
    fn a_lock_is_not_blamed_for_the_want_of_cpus() {
        let busy = contended(5.0, BlockedIn::Mutex);
        let advice = advice_of(&busy, "lock_waits");
        assert!(advice.contains("once CPUs are free"), "{advice}");
        let free = contended(0.1, BlockedIn::Mutex);
        let advice = advice_of(&free, "lock_waits");
        assert!(!advice.contains("CPUs are free"), "{advice}");
    }

    #[test]
    fn the_headline_says_where_the_time_of_the_threads_went() {
        let check = |record: &TraceRecord, expected: &str| assert_eq!(record.verdict(), expected);
        check(
            &contended(5.0, BlockedIn::Mutex),
            "Short of CPUs for its own threads: its threads spent 50.0 % of their time waiting for a \
             CPU, 40.0 % waiting for a lock at add() and 10.0 % running.",
        );
        check(
            &contended(0.5, BlockedIn::Mutex),
            "Held up by a lock at add(): its threads spent 85.0 % of their time waiting for it, \
             10.0 % running and 5.0 % waiting for a CPU.",
        );
        check(
            &contended(0.5, BlockedIn::Disk),
            "Held up by waiting for a disk or device at add(): its threads spent 85.0 % of their time \
             waiting for it, 10.0 % running and 5.0 % waiting for a CPU.",
        );
    }

    #[test]
    fn what_is_blocked_is_said_where_the_trace_missed_cpu_time() {
        let disk = [(BlockedIn::Disk, 9), (BlockedIn::Timer, 1)];
        let seen = "not for want of a CPU: they waited for a disk or device in 90.0 %, for a timer \
                    (sleep) in 10.0 % of 10 looks.";
        for bound in [LowerBound::CpuTime, LowerBound::Queued] {
            let (sentence, _) = find(0.06, Some(0.18), &[bound], &disk).unwrap();
            let start = "All threads were blocked for about 98.4 % of the time, ";
            assert_eq!(sentence, format!("{start}{seen}"));
        }
        // The kernel's count of a command is whole.
        let find = |counted_s| {
            let bounds = [LowerBound::CpuTime];
            find_counted(0.06, Some(0.18), &bounds, &disk, Some(counted_s))
        };
        let (sentence, _) = find(1.32).unwrap();
        assert!(
            sentence.contains("at least 90.0 % of the time"),
            "{sentence}"
        );
        assert_eq!(find(14.0), None);
    }

    /// A service on a CPU for 2 % of its time waited for 121 % of that.
    #[test]
    fn time_queued_is_a_share_of_the_threads_time() {
        let find = |waited_s: f64, life_s: Option<f64>| {
            let mut record = process_record();
            record.figures.waits.total_s = Some(waited_s);
            record.figures.waits.is_upper_bound = true;
            record.figures.totals.cpu_s = 1.0;
            record.figures.totals.life_s = life_s;
            record.figures.lost = Default::default();
            let mut causes = record.figures.waits.because.unwrap();
            causes.other_processes_s = waited_s;
            record.figures.waits.because = Some(causes);
            record.header.findings.clear();
            super::super::findings::judge(&mut record, true);
            let mut findings = record.header.findings.into_iter();
            let found = findings.find(|found| found.check == "other_processes")?;
            let start = "Threads waited ";
            let said = found.sentence.strip_prefix(start).unwrap().to_owned();
            Some((found.severity, said.split(" behind").next()?.to_owned()))
        };
        let found = |severity, text: &str| Some((severity, text.to_owned()));
        assert_eq!(
            find(1.21, Some(50.0)),
            found(Severity::Note, "1.21 s (2.4 % of their time)")
        );
        assert_eq!(
            find(22.86, Some(50.0)),
            found(Severity::Warning, "22.9 s (45.7 % of their time)")
        );
        assert_eq!(find(0.4, Some(50.0)), None);
        // Of a record that lacks it, they lived at least as long as they were awake.
        assert_eq!(
            find(22.86, None),
            found(Severity::Warning, "22.9 s (95.8 % of their time)")
        );
    }

    #[test]
    fn what_could_be_avoided_is_marked_by_its_size() {
        let check = |shared_s: f64| {
            let mut record = process_record();
            record.figures.totals.cpu_s = 10.0;
            record.figures.totals.life_s = Some(10.0);
            record.figures.waits = Default::default();
            record.figures.idle_while_waiting = Default::default();
            record.figures.lost = Default::default();
            let sharing = &mut record.figures.avoidable_smt_sharing;
            (sharing.seconds, sharing.percent) = (Some(shared_s), Some(10.0 * shared_s));
            record.header.findings.clear();
            super::super::findings::judge(&mut record, true);
            let found = record.header.findings;
            let severity =
                |check: &str| found.iter().find(|f| f.check == check).map(|f| f.severity);
            [severity("avoidable_smt_sharing"), severity("in_order")]
        };
        assert_eq!(check(2.0), [Some(Severity::Warning), None]);
        assert_eq!(check(0.5), [Some(Severity::Note), None]);
        assert_eq!(check(0.01), [None, Some(Severity::Note)]);
    }

    #[test]
    fn that_a_command_mostly_waits_is_a_warning() {
        let find = |elapsed_s: f64| {
            let mut record = process_record();
            record.source = TraceSource::Command {
                command: vec!["job".to_owned()],
                placement: "os-default".to_owned(),
                cpus: "0-1".to_owned(),
            };
            record.figures.totals.cpu_s = 0.01 * elapsed_s;
            record.figures.waits.total_s = Some(0.05 * elapsed_s);
            record.elapsed_s = elapsed_s;
            find_blocking(&record, None).map(|found| found.severity)
        };
        assert_eq!(find(5.0), Some(Severity::Warning));
        assert_eq!(find(0.05), None);
    }

    #[test]
    fn time_queued_is_a_finding_where_its_cause_is_unknown() {
        let check = |source: TraceSource, queued_s: f64, has_causes: bool| {
            let mut record = process_record();
            record.source = source;
            let causes = record.figures.waits.because;
            assert!(causes.is_some());
            record.figures.waits.because = causes.filter(|_| has_causes);
            record.figures.waits.total_s = Some(queued_s);
            record.figures.totals.cpu_s = 1.0;
            record.figures.throttled = None;
            record.header.findings.clear();
            super::super::findings::judge(&mut record, true);
            let findings = record.header.findings.into_iter();
            findings.filter(|found| found.check == "queued").count()
        };
        let process = || process_record().source;
        assert_eq!(check(process(), 0.5, false), 1);
        assert_eq!(check(process(), 0.004, false), 0);
        assert_eq!(check(process(), 0.5, true), 0);
    }

    #[test]
    fn threads_that_never_block_may_spin() {
        let find = |source: TraceSource, cpu_s: f64, switches: u64| {
            let mut record = process_record();
            record.source = source;
            let thread = record.threads[0].clone();
            record.threads = vec![thread; 3];
            for thread in &mut record.threads {
                thread.cpu_s = cpu_s;
                thread.wait_s = Some(0.1);
                thread.switches = Some(switches);
                thread.preemptions = Some(100);
            }
            find_never_blocking(&record).map(|found| found.advice)
        };
        let process = || process_record().source;
        let advice = find(process(), 14.5, 101).unwrap();
        assert!(advice.ends_with("pinwise spin attach --pid 7"), "{advice}");
        assert_eq!(find(process(), 7.0, 101), None);
        assert_eq!(find(process(), 14.5, 2_000), None);
        assert_eq!(find(TraceSource::Machine, 14.5, 101), None);
    }

    #[test]
    fn threads_that_may_spin_are_part_of_the_conclusion() {
        let mut record = contended(5.0, BlockedIn::Mutex);
        record.blocked.clear();
        let thread = record.threads[0].clone();
        record.threads = vec![thread; 3];
        for thread in &mut record.threads {
            thread.cpu_s = 0.4 * record.elapsed_s;
            thread.wait_s = Some(0.6 * record.elapsed_s);
            (thread.switches, thread.preemptions) = (Some(101), Some(100));
        }
        record.figures.waits.because = Some(pinwise_record::WaitCauses {
            other_processes_s: 5.0,
            ..Default::default()
        });
        judge_again(&mut record);
        let answer = record.answer.clone().unwrap();
        assert!(
            answer.sentence.starts_with("Held up by other"),
            "{answer:?}"
        );
        let end = "Its threads never block; whether they spin: pinwise spin attach --pid 7";
        assert!(answer.advice.ends_with(end), "{answer:?}");
        record.threads[2].switches = Some(100_000);
        judge_again(&mut record);
        let advice = record.answer.unwrap().advice;
        assert!(advice.contains("2 of its threads never block"), "{advice}");
    }

    #[test]
    fn a_thread_that_yields_all_the_time_is_found() {
        let find = |cpu_s, switches, preemptions| {
            let mut record = process_record();
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

    /// Woken threads take the only CPU from the one that woke them.
    #[test]
    fn a_thread_that_wakes_others_does_not_yield() {
        let mut record = contended(5.0, BlockedIn::Condition);
        record.threads.truncate(1);
        let thread = &mut record.threads[0];
        thread.cpu_s = 1.0;
        (thread.switches, thread.preemptions) = (Some(100_000), Some(100_000));
        let number = thread.thread;
        record.blocked[0].threads[0].woken_by.clear();
        assert!(find_yielding(&record).is_some());
        let waker = pinwise_record::WakerRecord {
            thread: number,
            name: "dispatch".to_owned(),
            times: 90_000,
        };
        record.blocked[0].threads[0].woken_by.push(waker);
        assert_eq!(find_yielding(&record), None);
    }
}
