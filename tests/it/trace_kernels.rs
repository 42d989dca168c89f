//! The detector of avoidable SMT sharing on what real kernels did on a machine
//! of another shape: two packages of two cores with two CPUs each, emulated.
//!
//! The traces are ftrace's text of spinning threads (`tests/env/vm/traces.sh`). It has no masks,
//! and says nothing of a CPU that idled all the time; the tests add what the script asked for, and
//! that nothing else ran in the guest. `trace_vm.rs` boots such a machine if QEMU is installed.

use std::io::Cursor;

use pinwise_sched::import::{Import, TraceSubject};
use pinwise_sched::{Analysis, Event, EventKind, IDLE, LeaveReason, Summary, Tid};
use pinwise_topology::{CpuSet, Topology};

use crate::support;

fn text(name: &str) -> String {
    let content = support::recorded_trace(&format!("2s2c2t-{name}.txt"));
    String::from_utf8(content).unwrap()
}

/// The process that was traced: the one that became pinwise.
fn traced_process(text: &str) -> Tid {
    let line = text
        .lines()
        .find(|l| l.contains("sched_process_exec"))
        .unwrap();
    let (_, pid) = line.split_once(" pid=").unwrap();
    pid.split(' ').next().unwrap().parse().unwrap()
}

/// The time of the first line.
fn start_ns(text: &str) -> u64 {
    let line = text.lines().find(|line| !line.starts_with('#')).unwrap();
    let (before, _) = line.split_once(": sched_").unwrap();
    let seconds = before.rsplit(' ').next().unwrap();
    let (whole, part) = seconds.split_once('.').unwrap();
    let micros: u64 = format!("{whole}{part}").parse().unwrap();
    1000 * micros
}

/// The analysis of a trace whose threads may use these CPUs.
fn analysed(name: &str, cpus: &str) -> Summary {
    let text = text(name);
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
        time_ns: start_ns(&text),
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
    let whom = TraceSubject::Process(traced_process(&text));
    import
        .read(whom, &mut |events| events.iter().for_each(&mut take))
        .unwrap();
    analysis.finish(None)
}

/// Shares of CPU time, per cent: beside a busy sibling; avoidably so, by the
/// scheduler, by the mask.
#[track_caller]
fn check(
    name: &str,
    cpus: &str,
    threads: u64,
    shared: [f64; 2],
    scheduler: [f64; 2],
    mask: [f64; 2],
) {
    let summary = analysed(name, cpus);
    assert_eq!(
        summary.unknown.contradictions + summary.unknown.backwards,
        0
    );
    // The main thread hands out the work and waits.
    assert_eq!(summary.threads, threads + 1, "{:?}", summary.by_thread);
    let sharing = summary.sharing.unwrap();
    let avoidable = sharing.avoidable.unwrap();
    let share = |part: u64| 100.0 * part as f64 / summary.cpu_ns as f64;
    let found = [sharing.shared, avoidable.scheduler, avoidable.mask].map(share);
    let wanted = [shared, scheduler, mask];
    let is_within = |(found, [low, high]): (&f64, &[f64; 2])| low <= found && found <= high;
    assert!(
        found.iter().zip(&wanted).all(is_within),
        "{name}: {found:?}, not {wanted:?}"
    );
}

const HARDLY_ANY: [f64; 2] = [0.0, 10.0];

#[test]
fn three_free_spinners_share_nothing_that_could_be_avoided() {
    check("free-3", "0-7", 3, HARDLY_ANY, HARDLY_ANY, HARDLY_ANY);
}

#[test]
fn two_spinners_on_siblings_share_because_of_their_mask() {
    check(
        "siblings-2",
        "0-1",
        2,
        [70.0, 100.0],
        [0.0, 0.0],
        [70.0, 100.0],
    );
}

#[test]
fn a_package_for_four_is_shared_while_the_other_idles() {
    check(
        "package-4",
        "0-3",
        4,
        [70.0, 100.0],
        HARDLY_ANY,
        [70.0, 100.0],
    );
}

#[test]
fn two_spinners_on_two_cores_share_nothing() {
    check("cores-2", "0,2", 2, HARDLY_ANY, HARDLY_ANY, HARDLY_ANY);
}

#[test]
fn eight_threads_on_eight_cpus_share_cores_unavoidably() {
    check("full-8", "0-7", 8, [60.0, 100.0], HARDLY_ANY, HARDLY_ANY);
}
