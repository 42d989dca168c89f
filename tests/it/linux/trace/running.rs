//! Traces of processes that run already.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::inner::{self, TraceRequest};
use super::{available_tiers, check_invariants, keep_available, read_number};
use crate::support::{Running, has_program, report_skip, send_signal, wait_until};

/// Loops quickly and starts a process in each iteration.
const BUSY: &str = "while :; do sleep 0.01; done";

#[test]
fn a_process_is_followed_with_what_it_starts() {
    let process = Running::start_shell(BUSY);
    for tier in available_tiers() {
        let mut limit_ms = 700;
        let seen = loop {
            let order = json!({"tier": tier, "pid": process.0.id(), "limit_ms": limit_ms});
            let seen = TraceRequest(order).run();
            check_invariants(&seen);
            let followed = seen["followed"].as_array().unwrap();
            assert!(followed.contains(&json!(process.0.id())), "{seen}");
            // On a busy machine it starts fewer processes in that time.
            if followed.len() > 3 && read_number(&seen, "ended") > 2 {
                break seen;
            }
            assert!(limit_ms < 20_000, "{seen}");
            limit_ms *= 2;
        };
        assert_eq!(seen["tier"], tier);
        let names = seen["names"].as_array().unwrap();
        assert!(names.contains(&json!("sleep")), "{seen}");
        assert!(
            seen["masks"][process.0.id().to_string()].is_string(),
            "{seen}"
        );
        if tier != "proc" {
            assert!(read_number(&seen, "switches_out") > 5, "{seen}");
        }
        // Events of all processes may be too many for the buffers.
        if tier != "cpu-wide" {
            assert_eq!(seen["lost"], 0, "{seen}");
        }
    }
}

#[test]
fn a_trace_ends_with_its_process() {
    for tier in available_tiers() {
        let process = Running::start_shell("sleep 2; exit 0");
        let seen = TraceRequest(json!({"tier": tier, "pid": process.0.id()})).run();
        // On a slow machine it may end before pinwise attaches.
        if seen["error"].is_null() {
            check_invariants(&seen);
        } else {
            let error = seen["error"].as_str().unwrap();
            assert!(error.starts_with("process "), "{error}");
        }
    }
}

#[test]
fn missing_processes_are_reported() {
    for tier in ["proc", "switch"] {
        let refused = TraceRequest(json!({"tier": tier, "pid": i32::MAX})).run();
        let reported = format!("process {}: no such process", i32::MAX);
        assert_eq!(refused["error"], reported.as_str());
    }
    let mut process = Running::start_shell("exit 0");
    // Until it is reaped, its pid stays in use.
    std::thread::sleep(Duration::from_millis(300));
    let refused = TraceRequest(json!({"pid": process.0.id()})).run();
    let reported = format!("process {}: it has ended already", process.0.id());
    assert_eq!(refused["error"], reported.as_str());
    process.0.wait().unwrap();
}

/// The process ends before, while, or after pinwise attaches.
#[test]
fn a_process_that_ends_early_is_traced_or_reported_as_gone() {
    for pause in 0..12 {
        let process = Running::start_shell(&format!("sleep 0.0{pause:02}"));
        let seen = TraceRequest(json!({"tier": "switch", "pid": process.0.id()})).run();
        match seen["error"].as_str() {
            Some(error) => {
                let prefix = format!("process {}: ", process.0.id());
                assert!(error.starts_with(&prefix), "{error}");
            }
            None => check_invariants(&seen),
        }
    }
}

#[test]
fn an_interrupted_trace_keeps_its_events() {
    // The program of the test has a second thread, which must not take the signal.
    let wrapper = ["env", "--block-signal=INT"];
    let can = Command::new(wrapper[0]).args([wrapper[1], "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        report_skip("it needs env with --block-signal (coreutils 8.31)");
        return;
    }
    let process = Running::start_shell(BUSY);
    let request = TraceRequest(json!({"tier": "proc", "pid": process.0.id()}));
    let (child, answer) = request.start_as(&wrapper);
    // By then the trace has begun, on a slow machine too.
    std::thread::sleep(Duration::from_secs(3));
    send_signal(child.id(), "INT");
    let seen = inner::finish(child, &answer);
    check_invariants(&seen);
    assert!(read_number(&seen, "to_ns") > read_number(&seen, "from_ns"));
    assert!(read_number(&seen["kinds"], "sample") > 1, "{seen}");
}

/// A process of many threads has events on every CPU for each of them.
#[test]
fn all_threads_of_a_process_are_followed() {
    if !has_program("python3") {
        return report_skip("python3 is not installed");
    }
    let line = "exec python3 -c '
import threading, time
def turn():
    while True:
        time.sleep(0.005)
for _ in range(40):
    threading.Thread(target=turn, daemon=True).start()
time.sleep(1000)'";
    let process = Running::start_shell(line);
    let folder = format!("/proc/{}/task", process.id());
    wait_until("41 threads", || {
        std::fs::read_dir(&folder).is_ok_and(|threads| threads.count() >= 41)
    });
    for tier in keep_available(&["proc", "switch", "cpu-wide"]) {
        let order = json!({"tier": tier, "pid": process.0.id(), "limit_ms": 500});
        let seen = TraceRequest(order).run();
        check_invariants(&seen);
        assert_eq!(seen["followed"].as_array().unwrap().len(), 41, "{seen}");
        if tier != "proc" {
            assert!(read_number(&seen, "switches_out") > 40, "{seen}");
        }
    }
}
