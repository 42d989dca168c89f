//! Threads that wait for locks, block, yield or never block.

use pinwise_record::{BlockedPlace, BlockedRecord};

use super::*;

fn process_record() -> TraceRecord {
    let text = include_str!("../../../../../tests/data/records/trace.json");
    let mut record: TraceRecord = serde_json::from_str(text).unwrap();
    // As on a machine of its own.
    let figures = &mut record.figures;
    figures.waits.behind.clear();
    (figures.totals.foreign_cpu_s, figures.totals.parallel_s) = (Some(0.0), None);
    (figures.idle_while_waiting, figures.lost) = Default::default();
    (figures.lower_bounds, figures.memory) = Default::default();
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
    let expected = "Threads waited about 7.00 s (70.0 % of their time) for a lock at add(): \
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
    assert!(said.ends_with("for a lock."), "{said}");
}

#[test]
fn who_waits_for_a_mutex_is_not_suspected_of_spinning() {
    let locked = contended(5.0, BlockedIn::Mutex);
    let advice = advice_of(&locked, "own_threads");
    assert!(!advice.contains("spin"), "{advice}");
}

#[test]
fn the_headline_says_where_the_time_of_the_threads_went() {
    let check = |record: &TraceRecord, expected: &str| assert_eq!(record.verdict(), expected);
    check(
        &contended(5.0, BlockedIn::Mutex),
        "Short of CPUs for its own threads and held up by a lock at add(): its threads spent 50.0 % of their time waiting for a \
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
        let severity = |check: &str| found.iter().find(|f| f.check == check).map(|f| f.severity);
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
/// A writer into a pipe is preempted by the reader that it wakes.
#[test]
fn a_thread_that_hands_over_does_not_yield() {
    let mut record = process_record();
    record.threads.truncate(2);
    let switches = |record: &mut TraceRecord, at: usize, all: u64, forced: u64| {
        let thread = &mut record.threads[at];
        thread.cpu_s = 1.0;
        (thread.switches, thread.preemptions) = (Some(all), Some(forced));
    };
    switches(&mut record, 0, 100_000, 100_000);
    switches(&mut record, 1, 100, 90);
    assert!(find_yielding(&record).is_some());
    switches(&mut record, 1, 99_000, 10);
    assert_eq!(find_yielding(&record), None);
}

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
