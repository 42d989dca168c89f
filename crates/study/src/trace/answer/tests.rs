//! What is concluded of services whose truth is known.

use super::super::{findings, waiters};
use pinwise_record::{
    BlockedPart, BlockedPlace, BlockedRecord, BlockedThread, CpuQuotaRecord, Finding,
    MemoryLimitRecord, ThreadRecord, ThrottledRecord, TraceRecord, TraceSource, WaitCauses,
    WakerRecord,
};

use super::*;

mod queues;
mod runtimes;

const ELAPSED_S: f64 = 5.0;

/// A thread that was on CPUs and queued for this long, and what looks found it blocked in.
struct Life {
    thread: i32,
    name: &'static str,
    cpu_s: f64,
    wait_s: f64,
    looks: Vec<(BlockedIn, u64)>,
    is_idle: bool,
}

fn life(thread: i32, name: &'static str, cpu_s: f64, looks: &[(BlockedIn, u64)]) -> Life {
    Life {
        thread,
        name,
        cpu_s,
        wait_s: 0.0,
        looks: looks.to_vec(),
        is_idle: false,
    }
}

/// The main thread of most services.
fn sleeper() -> Life {
    Life {
        is_idle: true,
        ..life(7, "main", 0.0, &[(BlockedIn::Timer, 50)])
    }
}

/// A traced process of these threads.
fn trace(lives: &[Life]) -> TraceRecord {
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
        name: "service".to_owned(),
    };
    record.elapsed_s = ELAPSED_S;
    let like = record.threads[0].clone();
    let threads = lives.iter().map(|life| ThreadRecord {
        thread: life.thread,
        process: Some(7),
        name: life.name.to_owned(),
        cpu_s: life.cpu_s,
        wait_s: Some(life.wait_s),
        switches: Some(if life.cpu_s > 0.0 { 10_000 } else { 0 }),
        preemptions: Some(0),
        ..like.clone()
    });
    record.threads = threads.collect();
    let blocked = lives.iter().map(|life| {
        let parts = waiters::rank(life.looks.iter().cloned());
        let at = |part: &BlockedPart| BlockedPlace {
            what: part.what.clone(),
            place: "update_table".to_owned(),
            looks: part.looks,
        };
        BlockedThread {
            thread: life.thread,
            name: life.name.to_owned(),
            looks: parts.iter().map(|part| part.looks).sum(),
            what: parts[0].what.clone(),
            places: parts.iter().map(at).collect(),
            parts,
            is_idle: life.is_idle,
            wakes: None,
            woken_by: Vec::new(),
        }
    });
    let threads: Vec<BlockedThread> = blocked.collect();
    let parts = waiters::sum_parts(threads.iter());
    record.blocked = vec![BlockedRecord {
        process: 7,
        name: "service".to_owned(),
        looks: parts.iter().map(|part| part.looks).sum(),
        parts,
        threads,
    }];
    let waited_s: f64 = lives.iter().map(|life| life.wait_s).sum();
    let figures = &mut record.figures;
    figures.totals.threads = lives.len() as u64;
    figures.totals.processes = 1;
    figures.totals.cpu_s = lives.iter().map(|life| life.cpu_s).sum();
    let active = lives.iter().filter(|life| !life.is_idle).count();
    figures.totals.life_s = Some(ELAPSED_S * active as f64);
    figures.waits.total_s = Some(waited_s);
    figures.waits.because = Some(WaitCauses {
        other_processes_s: waited_s,
        ..Default::default()
    });
    conclude(&mut record);
    record
}

fn conclude(record: &mut TraceRecord) {
    record.header.findings.clear();
    findings::judge(record, true);
    findings::add_live(record, &[], None);
    write(record);
}

#[track_caller]
fn check(record: &TraceRecord, sentence: &str, advice: &str) {
    let answer = record.answer.as_ref().unwrap();
    assert_eq!(answer.sentence, sentence);
    assert!(answer.advice.contains(advice), "{}", answer.advice);
}

fn sentence_of<'a>(record: &'a TraceRecord, check: &str) -> &'a str {
    let mut findings = record.findings.iter();
    let found = findings.find(|found| found.check == check);
    &found.unwrap_or_else(|| panic!("{check}")).sentence
}

#[test]
fn services_that_hardly_run_are_held_up_by_what_their_threads_wait_for() {
    let mut lives: Vec<Life> = (8..14)
        .map(|thread| life(thread, "worker", 0.014, &[(BlockedIn::Socket, 50)]))
        .collect();
    lives.push(sleeper());
    // A child, to which the sockets lead.
    lives.push(life(20, "backend", 0.2, &[(BlockedIn::Timer, 50)]));
    let record = trace(&lives);
    check(
        &record,
        "Held up by waiting for a socket at update_table(): its threads spent 85.0 % of their time \
         waiting for it, 14.2 % asleep (timer) and 0.8 % running.",
        "strace -f -c -w -p 7",
    );
    let said = "worker (6 threads) waited for a socket at update_table() in 85.7 %, \
                backend (20) for a timer (sleep) at update_table() in 14.3 % of 350 looks";
    let blocked = sentence_of(&record, "blocked");
    assert!(blocked.contains(said), "{blocked}");
}

#[test]
fn who_waits_for_memory_at_a_limit_is_held_up_by_it() {
    let judge = |at_pages: u64, stalled_s, hits: Option<u64>| {
        let looks = [
            (BlockedIn::PageFault, at_pages),
            (BlockedIn::Timer, 50 - at_pages),
        ];
        let mut record = trace(&[life(8, "worker", 0.5, &looks)]);
        record.figures.memory_limit = hits.map(|hits| MemoryLimitRecord {
            file: "/sys/fs/cgroup/system.slice/web.service/memory.high".to_owned(),
            bytes: 256 << 20,
            hits,
            refaults: 4_000,
            stalled_s,
        });
        conclude(&mut record);
        record
    };
    let start = "Held up by its memory limit (memory.high 256 MiB of web.service): it spent ";
    let raised = "Raise it: systemctl set-property web.service MemoryHigh=512M";
    for record in [judge(40, None, Some(900)), judge(2, Some(1.5), Some(900))] {
        let answer = record.answer.as_ref().unwrap();
        assert!(answer.sentence.starts_with(start), "{answer:?}");
        assert_eq!(answer.advice, raised);
    }
    // It was hit, and held up nobody; and a program without one waits for a disk.
    let hardly = judge(2, Some(0.1), Some(900)).verdict();
    assert!(!hardly.contains("limit"), "{hardly}");
    check(
        &judge(50, None, None),
        "Held up by waiting for pages of its memory (page faults) at update_table(): it spent 90.0 % \
         of its time waiting for them and 10.0 % running.",
        "grep VmSwap /proc/7/status",
    );
}

#[test]
fn calls_that_never_return_are_not_summed_up() {
    let advice = |cpu_s| {
        let reader = |thread| life(thread, "reader", cpu_s, &[(BlockedIn::Pipe, 50)]);
        trace(&[reader(8), reader(9)]).answer.unwrap().advice
    };
    let all = advice(0.1);
    assert!(
        all.starts_with("Each call with its time: timeout 5 strace -f -c -w -p 7"),
        "{all}"
    );
    assert_eq!(
        advice(0.0),
        "The calls that do not return: timeout 5 strace -f -p 7"
    );
}

#[test]
fn a_call_without_a_kind_is_named() {
    let mut record = trace(&[life(8, "worker", 0.1, &[(BlockedIn::OtherCall, 50)])]);
    name_places(&mut record, "semtimedop()");
    conclude(&mut record);
    let start = "Held up by waiting for the call semtimedop(): it spent 98.0 % of its time waiting \
                 for it";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
}

#[test]
fn time_asleep_with_a_lock_is_no_time_in_the_lock() {
    let looks = [(BlockedIn::Mutex, 37), (BlockedIn::Timer, 12)];
    let worker = |thread| life(thread, "job", 0.01, &looks);
    let mut lives: Vec<Life> = (8..12).map(worker).collect();
    lives.push(sleeper());
    let record = trace(&lives);
    check(
        &record,
        "Held up by a lock at update_table(): its threads spent 75.4 % of their time waiting for \
         it and 24.4 % asleep (timer).",
        "Do not sleep or wait while holding the lock",
    );
    let said = sentence_of(&record, "lock_waits");
    let holder = "Whoever holds it waits meanwhile, mostly for a timer (sleep) at update_table().";
    assert!(said.contains("(75.4 % of their time)"), "{said}");
    assert!(said.ends_with(holder), "{said}");
    // One that computes meanwhile.
    for life in &mut lives {
        life.cpu_s *= 100.0;
    }
    let said = sentence_of(&trace(&lives), "lock_waits").to_owned();
    assert!(!said.contains("Whoever"), "{said}");
}

/// One thread is busy all the time, and six wait for what it hands them.
fn dispatcher(cpu_s: f64, wait_s: f64, looks: &[(BlockedIn, u64)]) -> TraceRecord {
    let worker = |thread| life(thread, "worker", 0.06, looks);
    let mut lives: Vec<Life> = (8..14).map(worker).collect();
    lives.push(sleeper());
    lives.push(Life {
        wait_s,
        ..life(20, "dispatch", cpu_s, &[(BlockedIn::Lock, 1)])
    });
    trace(&lives)
}

#[test]
fn the_one_thread_that_others_wait_for_is_named() {
    check(
        &dispatcher(3.75, 1.2, &[(BlockedIn::Condition, 50)]),
        "Limited by one thread: dispatch (20) ran 75.0 % and waited for a CPU 24.0 % of the time; \
         the others mostly waited for work or another thread at \
         update_table().",
        "See where that thread's CPU time goes: pinwise profile --pid 7",
    );
    check(
        &dispatcher(2.0, 2.9, &[(BlockedIn::Mutex, 50)]),
        "Held up by other programs on its CPUs, in one thread: dispatch (20) waited for a CPU \
         58.0 % and ran 40.0 % of the time; the others mostly waited for a lock at \
         update_table().",
        "Stop or move them",
    );
    let is_of_one = |record: &TraceRecord| record.verdict().contains("one thread");
    // Others wait for something else, which it may serve or not.
    check(
        &dispatcher(4.9, 0.0, &[(BlockedIn::Pipe, 50)]),
        "One thread is busy all the time: dispatch (20) ran 98.0 % of the time; the others mostly \
         waited for a pipe at update_table().",
        "See where that thread's CPU time goes: pinwise profile --pid 7 --thread 20",
    );
    // It waits as well.
    assert!(!is_of_one(&dispatcher(
        4.0,
        0.0,
        &[(BlockedIn::Condition, 50)]
    )));
}

#[test]
fn threads_of_which_one_runs_at_a_time_take_turns() {
    let turns = |parallel_s, allowed: &str, at: BlockedIn, wait_s| {
        let worker = |thread| Life {
            wait_s,
            ..life(thread, "worker", 0.79, &[(at.clone(), 40)])
        };
        let mut lives: Vec<Life> = (8..14).map(worker).collect();
        lives.push(sleeper());
        let mut record = trace(&lives);
        record.figures.totals.parallel_s = parallel_s;
        for thread in &mut record.threads {
            thread.allowed = Some(allowed.to_owned());
        }
        conclude(&mut record);
        record
    };
    check(
        &turns(Some(0.1), "0-1", BlockedIn::Condition, 0.05),
        "Ran one thread at a time (0.95 CPUs in all), each waiting for the others: its threads spent \
         83.2 % of their time waiting for work or another thread at update_table(), 15.8 % running \
         and 1.0 % waiting for a CPU.",
        "See where their CPU time goes: pinwise profile --pid 7",
    );
    // Where they wait says it, too.
    let mut record = turns(None, "0-1", BlockedIn::Condition, 0.3);
    for thread in &mut record.blocked[0].threads {
        thread.places[0].place = "take_gil (libpython3.11.so.1.0)".to_owned();
    }
    conclude(&mut record);
    let start =
        "Ran one thread at a time (0.95 CPUs in all) because of Python's global lock (GIL): ";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
    let advice = &record.answer.as_ref().unwrap().advice;
    assert!(advice.contains("py-spy top --gil --pid 7"), "{advice}");
    // No placement gives a second CPU to threads that run in turns.
    let spreading = |record: &mut TraceRecord| {
        record.figures.idle_while_waiting.scheduler_s = Some(1.0);
        conclude(record);
        let mut findings = record.findings.iter();
        let found = findings.find(|finding| finding.check == "idle_while_waiting");
        found.unwrap().advice.contains("spreads")
    };
    assert!(!spreading(&mut record));
    let mut held_up = turns(Some(1.0), "0-1", BlockedIn::Condition, 0.05);
    assert!(spreading(&mut held_up));
    let take_turns = |record: &TraceRecord| record.verdict().starts_with("Ran one thread");
    // Two at once, on one CPU, unknown, at a lock that is known, or held up by others.
    let condition = || BlockedIn::Condition;
    assert!(!take_turns(&turns(Some(1.0), "0-1", condition(), 0.05)));
    assert!(!take_turns(&turns(Some(0.1), "1", condition(), 0.05)));
    assert!(!take_turns(&turns(None, "0-1", condition(), 0.05)));
    assert!(!take_turns(&turns(
        Some(0.1),
        "0-1",
        BlockedIn::Mutex,
        0.05
    )));
    let hindered = turns(Some(0.1), "0-1", condition(), 0.3);
    check(
        &hindered,
        "Mostly waits for work or another thread at \
         update_table(): its threads spent 78.2 % of their time waiting for it, 15.8 % running and \
         6.0 % waiting for a CPU.",
        "See where their CPU time goes: pinwise profile --pid 7",
    );
}

#[test]
fn a_client_is_held_up_by_its_server_and_a_server_may_be_idle() {
    let socket = |place: &str| {
        let lives = [life(8, "worker", 0.0, &[(BlockedIn::Socket, 50)])];
        let mut record = trace(&lives);
        record.blocked[0].threads[0].places[0].place = place.to_owned();
        conclude(&mut record);
        record.verdict()
    };
    let start = "Held up by waiting for a socket at 10.0.0.7:5432: ";
    let sentence = socket("10.0.0.7:5432");
    assert!(sentence.starts_with(start), "{sentence}");
    let start = "Idle, as a server without requests, or held up by waiting for a socket at clients \
                 of port 80: ";
    let sentence = socket("clients of port 80");
    assert!(sentence.starts_with(start), "{sentence}");
}

fn name_places(record: &mut TraceRecord, name: &str) {
    let threads = record.blocked.iter_mut().flat_map(|seen| &mut seen.threads);
    for place in threads.flat_map(|thread| &mut thread.places) {
        name.clone_into(&mut place.place);
    }
}

#[test]
fn a_stopped_process_is_to_be_continued() {
    check(
        &trace(&[life(7, "main", 0.0, &[(BlockedIn::Stopped, 50)])]),
        "Stopped by a signal or a debugger: it spent 100 % of its time stopped.",
        "kill -CONT 7",
    );
}

#[test]
fn a_busy_thread_that_does_not_wake_the_others_is_not_what_they_wait_for() {
    let woken_by = |waker: &str, thread| {
        let mut lives = vec![life(20, "stats", 4.9, &[(BlockedIn::Timer, 2)])];
        let worker = |thread| life(thread, "worker", 0.01, &[(BlockedIn::Pipe, 50)]);
        lives.extend((8..11).map(worker));
        let mut record = trace(&lives);
        for worker in &mut record.blocked[0].threads[1..] {
            worker.woken_by = vec![WakerRecord {
                thread,
                name: waker.to_owned(),
                times: 40,
            }];
        }
        conclude(&mut record);
        record.verdict()
    };
    let sentence = woken_by("stats", 20);
    assert!(
        sentence.starts_with("Limited by one thread: stats (20) "),
        "{sentence}"
    );
    let sentence = woken_by("feeder", 21);
    assert!(
        sentence.starts_with("Held up by waiting for a pipe "),
        "{sentence}"
    );
}

#[test]
fn a_child_that_does_the_work_is_what_its_parent_waits_for() {
    let mut child = life(20, "gzip", 3.0, &[(BlockedIn::Disk, 2)]);
    child.wait_s = 1.8;
    check(
        &trace(&[life(7, "main", 0.0, &[(BlockedIn::Child, 50)]), child]),
        "Limited by one thread: gzip (20) ran 60.0 % and waited for a CPU 36.0 % of the time; the \
         others mostly waited for a child process at update_table().",
        "See where that thread's CPU time goes: pinwise profile --pid 7",
    );
}

/// A parent whose children sleep, one after the other.
#[test]
fn children_that_hardly_run_are_not_profiled_and_those_that_are_gone_not_attached_to() {
    let lives = [
        life(7, "main", 0.01, &[(BlockedIn::Child, 50)]),
        life(20, "sleep", 0.001, &[(BlockedIn::Timer, 2)]),
        Life {
            is_idle: true,
            ..life(21, "helper", 0.001, &[(BlockedIn::Timer, 50)])
        },
    ];
    let mut record = trace(&lives);
    let seen = record.blocked.remove(0);
    let apart = seen.threads.iter().map(|thread| BlockedRecord {
        process: thread.thread,
        threads: vec![thread.clone()],
        ..seen.clone()
    });
    record.blocked = apart.collect();
    record.figures.totals.life_s = Some(ELAPSED_S);
    conclude(&mut record);
    let start = "Held up by waiting for a child process";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
    check(&record, &record.verdict(), "strace -f -c -w -p 7 -p 21, ");
}

#[test]
fn threads_that_hand_over_take_turns_even_if_they_mostly_run() {
    let lives = [20, 21].map(|thread| Life {
        wait_s: 1.1,
        ..life(thread, "pingpong", 2.3, &[(BlockedIn::Condition, 20)])
    });
    let mut record = trace(&lives);
    record.figures.totals.parallel_s = Some(0.1);
    let queued_s = 2.2;
    record.figures.waits.because = Some(WaitCauses {
        own_threads_s: queued_s,
        ..Default::default()
    });
    conclude(&mut record);
    let start = "Ran one thread at a time (0.92 CPUs in all), each waiting for the others: ";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
}

#[test]
fn a_lock_is_named_beside_a_larger_cause() {
    let lives = [20, 21, 22, 23].map(|thread| Life {
        wait_s: 2.1,
        ..life(thread, "worker", 1.2, &[(BlockedIn::Mutex, 40)])
    });
    let mut record = trace(&lives);
    record.figures.waits.because = Some(WaitCauses {
        own_threads_s: 8.4,
        ..Default::default()
    });
    conclude(&mut record);
    check(
        &record,
        "Short of CPUs for its own threads and held up by a lock at update_table(): its threads \
         spent 42.0 % of their time waiting for a CPU, 34.0 % waiting for a lock at update_table() \
         and 24.0 % running.",
        "Fewer threads may be as fast. Hold the lock for less, or split it.",
    );
}

#[test]
fn a_server_that_runs_requests_is_profiled() {
    let mut record = trace(&[life(7, "redis", 2.1, &[(BlockedIn::Events, 50)])]);
    name_places(&mut record, "clients of port 6379");
    conclude(&mut record);
    check(
        &record,
        "Waits for requests by clients of port 6379: it spent 58.0 % of its time waiting for them \
         and 42.0 % running.",
        "See where its CPU time goes: pinwise profile --pid 7",
    );
}

#[test]
fn one_thread_that_never_blocks_may_spin() {
    let mut record = trace(&[life(7, "service", 4.99, &[(BlockedIn::Timer, 1)])]);
    record.threads[0].preemptions = record.threads[0].switches;
    conclude(&mut record);
    let advice = &record.answer.as_ref().unwrap().advice;
    let wanted = "See where its CPU time goes: pinwise profile --pid 7; whether it spins: pinwise spin attach --pid 7";
    assert_eq!(advice, wanted);
}

#[test]
fn threads_that_all_wait_for_locks_may_be_in_a_deadlock() {
    let lives = [20, 21].map(|thread| life(thread, "worker", 0.0, &[(BlockedIn::Mutex, 40)]));
    check(
        &trace(&lives),
        "Perhaps a deadlock: all wait for a lock at update_table(), and none runs: its threads spent \
         100 % of their time waiting for a lock at update_table().",
        "thread apply all bt",
    );
}

#[test]
fn a_server_whose_master_awaits_signals_may_be_idle() {
    let master = life(7, "nginx", 0.0, &[(BlockedIn::Signal, 50)]);
    let worker = life(8, "nginx", 0.01, &[(BlockedIn::Events, 50)]);
    let mut record = trace(&[master, worker]);
    let mut judge = |place: &str| {
        name_places(&mut record, place);
        conclude(&mut record);
        record.verdict()
    };
    let verdict = judge("clients of port 80");
    let start = "Idle, as a server without requests, or held up: ";
    assert!(verdict.starts_with(start), "{verdict}");
    let proxy = [life(8, "nginx", 0.01, &[(BlockedIn::Events, 50)])];
    let mut record = trace(&proxy);
    name_places(&mut record, "10.0.0.2:9911 or clients of port 80");
    conclude(&mut record);
    check(
        &record,
        "Held up by waiting for 10.0.0.2:9911, or idle, as a server without requests: it spent \
         99.8 % of its time waiting for them.",
        "ss -tunp dst 10.0.0.2:9911",
    );
}

#[test]
fn a_client_is_held_up_by_its_server() {
    let mut record = trace(&[life(7, "client", 0.01, &[(BlockedIn::Events, 50)])]);
    name_places(&mut record, "10.0.0.2:5432");
    conclude(&mut record);
    let start = "Held up by waiting for 10.0.0.2:5432: it spent ";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
    let local = "/run/postgresql/.s.PGSQL.5432";
    name_places(&mut record, local);
    conclude(&mut record);
    let sentence =
        format!("Held up by waiting for {local}: it spent 99.8 % of its time waiting for it.");
    check(&record, &sentence, &format!("ss -xlp src {local}"));
    name_places(&mut record, "a row or table lock of PostgreSQL");
    conclude(&mut record);
    let start = "Held up by waiting for a row or table lock of PostgreSQL: it spent ";
    assert!(record.verdict().starts_with(start), "{}", record.verdict());
}

#[test]
fn threads_that_never_get_a_lock_are_named_beside_others_that_go_on() {
    let locked_out = |thread| life(thread, "transfer", 0.0, &[(BlockedIn::Mutex, 50)]);
    let ticks = |thread| life(thread, "tick", 0.02, &[(BlockedIn::Timer, 50)]);
    let lives = [20, 21].map(locked_out).into_iter();
    let record = trace(&lives.chain([8, 9, 10].map(ticks)).collect::<Vec<_>>());
    check(
        &record,
        "Held up by a lock at update_table(), which 2 threads never got: its threads spent 59.9 % of \
         their time asleep (timer) and 39.9 % waiting for it.",
        "Who holds it: gdb -p 7 -batch",
    );
    let said = sentence_of(&record, "lock_waits");
    assert!(
        said.ends_with("2 threads never got it: perhaps a deadlock."),
        "{said}"
    );
}

#[test]
fn threads_that_soon_wait_for_locks_for_good_may_be_in_a_deadlock() {
    // They slept for a moment at first.
    let looks = [(BlockedIn::Mutex, 40), (BlockedIn::Timer, 3)];
    let lives = [20, 21].map(|thread| life(thread, "worker", 0.0, &looks));
    let verdict = trace(&lives).verdict();
    assert!(verdict.starts_with("Perhaps a deadlock"), "{verdict}");
    // One of four sleeps while it holds the lock.
    let looks = [(BlockedIn::Mutex, 30), (BlockedIn::Timer, 10)];
    let lives = [20, 21, 22, 23].map(|thread| life(thread, "worker", 0.0, &looks));
    let verdict = trace(&lives).verdict();
    assert!(verdict.starts_with("Held up by a lock"), "{verdict}");
}
