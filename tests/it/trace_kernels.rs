//! The detector of avoidable SMT sharing on recorded traces of a real kernel, on an emulated
//! machine of two packages of two cores with two CPUs each.
//!
//! The traces are ftrace's text of spinning threads (`tests/env/vm/traces.sh`). Such a trace has no
//! masks, and no event of a CPU that idled all the time: the tests add the mask of the script, and
//! idle CPUs. `trace_vm.rs` boots such a machine if QEMU is installed.

use std::io::Cursor;

use pinwise_sched::import::{Import, TraceSubject};
use pinwise_sched::{Analysis, Event, EventKind, IDLE, LeaveReason, Summary, Tid};
use pinwise_topology::{CpuSet, Topology};

use crate::support::read_recorded_trace;

/// The process that was traced: the first that executed a program.
fn find_traced_process(text: &str) -> Tid {
    let mut lines = text.lines();
    let line = lines.find(|line| line.contains("sched_process_exec"));
    let (_, pid) = line.unwrap().split_once(" pid=").unwrap();
    pid.split(' ').next().unwrap().parse().unwrap()
}

/// The time of the first event, nanoseconds.
fn parse_start_ns(text: &str) -> u64 {
    let line = text.lines().find(|line| !line.starts_with('#')).unwrap();
    let (before, _) = line.split_once(": sched_").unwrap();
    let seconds = before.rsplit(' ').next().unwrap();
    let (whole, part) = seconds.split_once('.').unwrap();
    let micros: u64 = format!("{whole}{part}").parse().unwrap();
    1000 * micros
}

/// Analyses a trace whose threads may use these CPUs.
fn analyse(name: &str, cpus: &str) -> Summary {
    let content = read_recorded_trace(&format!("2s2c2t-{name}.txt"));
    let text = String::from_utf8(content).unwrap();
    let import = Import::open(Cursor::new(text.as_bytes())).unwrap();
    let topology = Topology::from_synthetic("package:2 l3:1 core:2 pu:2").unwrap();
    let mut analysis = Analysis::new(&topology, import.facts().scope);
    let mask = CpuSet::parse_list(cpus).unwrap();
    let mut take = |event: &Event| {
        analysis.add_event(event);
        if let EventKind::Follow { thread } | EventKind::Fork { child: thread, .. } = event.what {
            analysis.add_event(&Event {
                what: EventKind::Mask {
                    thread,
                    cpus: Box::new(mask.clone()),
                },
                ..event.clone()
            });
        }
    };
    let start = Event {
        time_ns: parse_start_ns(&text),
        cpu: 0,
        what: EventKind::Switch {
            prev: IDLE,
            left: LeaveReason::Unreported,
            next: IDLE,
        },
    };
    for cpu in (0..8).filter(|cpu| !text.contains(&format!(" [00{cpu}] "))) {
        take(&Event {
            cpu,
            ..start.clone()
        });
    }
    let whom = TraceSubject::Process(find_traced_process(&text));
    import
        .read(whom, &mut |events| events.iter().for_each(&mut take))
        .unwrap();
    analysis.finish(None)
}

/// Ranges of shares of CPU time, per cent.
struct Expected {
    /// While the sibling CPU was busy.
    shared: [f64; 2],
    /// Of this, avoidable by the scheduler.
    scheduler: [f64; 2],
    /// Of this, avoidable by another mask.
    mask: [f64; 2],
}

const NO_SHARING: Expected = Expected {
    shared: HARDLY_ANY,
    scheduler: HARDLY_ANY,
    mask: HARDLY_ANY,
};

const HARDLY_ANY: [f64; 2] = [0.0, 10.0];

#[track_caller]
fn check(name: &str, cpus: &str, threads: u64, expected: &Expected) {
    let summary = analyse(name, cpus);
    assert_eq!(
        summary.unknown.contradictions + summary.unknown.backwards,
        0
    );
    // The main thread hands out the work and waits.
    assert_eq!(summary.threads, threads + 1, "{:?}", summary.by_thread);
    let sharing = summary.sharing.unwrap();
    let avoidable = sharing.avoidable.unwrap();
    let share = |part: u64| 100.0 * part as f64 / summary.cpu_ns as f64;
    for (part, [low, high]) in [
        (sharing.shared, expected.shared),
        (avoidable.scheduler, expected.scheduler),
        (avoidable.mask, expected.mask),
    ] {
        let percent = share(part);
        assert!(
            low <= percent && percent <= high,
            "{name}: {percent}: {sharing:?}"
        );
    }
}

#[test]
fn three_free_spinners_share_nothing_that_could_be_avoided() {
    check("free-3", "0-7", 3, &NO_SHARING);
}

#[test]
fn two_spinners_on_siblings_share_because_of_their_mask() {
    let expected = Expected {
        shared: [70.0, 100.0],
        scheduler: [0.0, 0.0],
        mask: [70.0, 100.0],
    };
    check("siblings-2", "0-1", 2, &expected);
}

#[test]
fn four_spinners_in_one_package_share_because_of_their_mask() {
    let expected = Expected {
        shared: [70.0, 100.0],
        mask: [70.0, 100.0],
        ..NO_SHARING
    };
    check("package-4", "0-3", 4, &expected);
}

#[test]
fn two_spinners_on_two_cores_share_nothing() {
    check("cores-2", "0,2", 2, &NO_SHARING);
}

#[test]
fn eight_threads_on_eight_cpus_share_cores_unavoidably() {
    let expected = Expected {
        shared: [60.0, 100.0],
        ..NO_SHARING
    };
    check("full-8", "0-7", 8, &expected);
}
