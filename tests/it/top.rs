//! `pinwise top`: its pictures at several sizes, names with control characters, and the command in
//! a terminal of its own.

mod live;
mod pictures;

use pinwise_record::{
    MoveRates, ThreadState, TopCpu, TopRecord, TopSharing, TopThread, TraceTier, UsedCpu,
};
use pinwise_sched::live::{Live, Watching};
use pinwise_sched::{Event, EventKind, LeaveReason, Tier};
use pinwise_topology::Topology;

use crate::support::{decode_output, run, run_for_json, split_words};

/// A machine of two caches with two cores of two CPUs each: two threads share a core while another
/// core idles, a third thread migrates.
fn desktop() -> TopRecord {
    let topology = Topology::from_synthetic("package:1 l3:2 core:2 pu:2").unwrap();
    let mut live = Live::new(&topology, watching_everything());
    live.begin(0);
    let event = |ms: u64, cpu: u32, what: EventKind| Event {
        time_ns: ms * 1_000_000,
        cpu,
        what,
    };
    let switch = |ms: u64, cpu: u32, prev: i32, left: LeaveReason, next: i32| {
        event(ms, cpu, EventKind::Switch { prev, left, next })
    };
    let mut events = Vec::new();
    let names = [
        (4711, "stress-ng-cpu"),
        (4712, "stress-ng-cpu"),
        (90, "kworker/3:1-ev"),
        (5000, "wanderer"),
    ];
    for (thread, name) in names {
        let name = name.into();
        events.push(event(0, 0, EventKind::Name { thread, name }));
        let cpus = match thread {
            90 => "3",
            5000 => "0-3,6-7",
            _ => "0-7",
        };
        let cpus = Box::new(pinwise_topology::CpuSet::parse_list(cpus).unwrap());
        events.push(event(0, 0, EventKind::Mask { thread, cpus }));
    }
    for cpu in 2..8 {
        events.push(switch(0, cpu, 0, LeaveReason::Unreported, 0));
    }
    events.push(switch(0, 0, 0, LeaveReason::Unreported, 4711));
    events.push(switch(0, 1, 0, LeaveReason::Unreported, 4712));
    events.push(switch(900, 3, 0, LeaveReason::Unreported, 90));
    events.push(switch(912, 3, 90, LeaveReason::Blocked, 0));
    for (turn, cpu) in (0u64..9).zip([6, 7, 2].into_iter().cycle()) {
        let start = 100 * turn + 10;
        events.push(switch(start, cpu, 0, LeaveReason::Unreported, 5000));
        events.push(switch(start + 50, cpu, 5000, LeaveReason::Blocked, 0));
    }
    events.sort_by_key(|event| event.time_ns);
    live.add_events(&events);
    let frame = live.frame(1_000_000_000);
    TopRecord {
        host: "desk".to_owned(),
        cost_ns_per_switch: Some(213.0),
        ..TopRecord::new(&frame, &topology, TraceTier::Bpf)
    }
}

fn watching_everything() -> Watching {
    Watching {
        scope: Tier::Bpf.scope(),
        is_everything: true,
        observer: None,
    }
}

/// Two sockets of 8 caches of 8 cores: 256 CPUs, and many threads.
fn server() -> TopRecord {
    let topology = Topology::from_synthetic("package:2 l3:8 core:8 pu:2").unwrap();
    let frame = Live::new(&topology, watching_everything()).frame(0);
    let empty = TopRecord::new(&frame, &topology, TraceTier::CpuWide);
    // A fixed pattern that looks like load.
    let load = |n: u32| f64::from((n * 37 + n / 7 * 11) % 101);
    let cpu = |cpu: &TopCpu| TopCpu {
        busy_percent: (cpu.cpu % 50 != 49).then(|| load(cpu.cpu)),
        ..cpu.clone()
    };
    let thread = |n: i32| TopThread {
        thread: 10_000 + n,
        process: Some(10_000),
        name: Some(format!("worker-{n}")),
        state: Some(ThreadState::Running),
        cpu: Some(u32::try_from(n).unwrap() % 256),
        cpu_percent: Some(f64::from(100 - n % 100)),
        wait_percent: Some(0.3),
        migrations_per_s: Some(f64::from(n)),
        switches_per_s: Some(120_345.0),
        used: (0..3)
            .map(|k| UsedCpu {
                cpu: (u32::try_from(n).unwrap() * 3 + k * 17) % 256,
                percent: 30.0,
            })
            .collect(),
        allowed: Some("0-63,128-191".to_owned()),
        policy: Some("other".to_owned()),
    };
    TopRecord {
        host: "server".to_owned(),
        interval_s: 1.0,
        threads_total: 700,
        threads_running: 170,
        migrations_per_s: MoveRates {
            core: 812.0,
            llc: 23.0,
            package: 4.5,
            ..MoveRates::default()
        },
        smt_sharing: Some(TopSharing {
            cores: 128,
            shared_now: Some(60),
            idle_now: Some(12),
            shared: 58.5,
            idle: 11.2,
            avoidable: Some(11.2),
            ..TopSharing::default()
        }),
        cpus: empty.cpus.iter().map(cpu).collect(),
        threads: (0..700).map(thread).collect(),
        ..empty
    }
}

/// A frame of this process, whose main thread must be in it.
#[test]
fn one_frame_is_printed_as_json() {
    let pid = std::process::id();
    let line = format!("top --once --format json --interval 300ms --tier proc --pid {pid}");
    let frame = run_for_json(&split_words(&line));
    assert_eq!(frame["schema"], "pinwise.top/1");
    assert_eq!(frame["tier"], "proc");
    assert_eq!(frame["pid"], pid);
    let threads = frame["threads"].as_array().unwrap();
    // Child processes of other tests are in the frame, too.
    let main = threads.iter().find(|t| t["thread"] == pid);
    let main = main.unwrap_or_else(|| panic!("{frame}"));
    assert_eq!(main["process"], pid);
    assert!(main["allowed"].is_string(), "{frame}");
    assert_eq!(main["policy"], "other");
    // What polling does not show is null, not 0.
    assert!(frame["cpus"][0]["thread"].is_null());
    assert!(frame["cpus"][0]["switches_per_s"].is_null());
}

#[test]
fn one_frame_is_printed_as_text() {
    let output = run(&["top", "--once", "--interval", "200ms"]);
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{err}");
    assert!(out.starts_with("pinwise top"), "{out}");
    assert!(out.contains("migrations/s"), "{out}");
    assert!(out.contains("TID NAME"), "{out}");
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "too wide: {line}");
        assert_eq!(line, line.trim_end());
    }
}
