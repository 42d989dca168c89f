//! Traces of processes that run already.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use super::inner::{self, TraceRequest};
use super::{WITH_SWITCHES, check_sound, number, permitted};

/// A process that is ended with the test.
struct Process(Child);

impl Process {
    fn start(line: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null());
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Loops quickly and starts a process in each iteration.
const BUSY: &str = "while :; do sleep 0.01; done";

#[test]
fn a_process_is_followed_with_what_it_starts() {
    let process = Process::start(BUSY);
    let tiers = [&["proc"][..], &WITH_SWITCHES].concat();
    for tier in permitted(&tiers) {
        let mut limit_ms = 700;
        let seen = loop {
            let order = json!({"tier": tier, "pid": process.pid(), "limit_ms": limit_ms});
            let seen = TraceRequest(order).run();
            check_sound(&seen);
            let followed = seen["followed"].as_array().unwrap();
            assert!(followed.contains(&json!(process.pid())), "{seen}");
            // On a busy machine it starts fewer processes in that time.
            if followed.len() > 3 && number(&seen, "ended") > 2 {
                break seen;
            }
            assert!(limit_ms < 20_000, "{seen}");
            limit_ms *= 2;
        };
        assert_eq!(seen["tier"], tier);
        let names = seen["names"].as_array().unwrap();
        assert!(names.contains(&json!("sleep")), "{seen}");
        assert!(
            seen["masks"][process.pid().to_string()].is_string(),
            "{seen}"
        );
        if tier != "proc" {
            assert!(number(&seen, "switches_out") > 5, "{seen}");
        }
        // Events of all processes may be too many for the buffers.
        if tier != "cpu-wide" {
            assert_eq!(seen["lost"], 0, "{seen}");
        }
    }
}

#[test]
fn a_trace_ends_with_its_process() {
    let tiers = [&["proc"][..], &WITH_SWITCHES].concat();
    for tier in permitted(&tiers) {
        let process = Process::start("sleep 2; exit 0");
        let seen = TraceRequest(json!({"tier": tier, "pid": process.pid()})).run();
        // It may also end before it could be attached to, on a slow machine.
        if seen["error"].is_null() {
            check_sound(&seen);
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
    let mut process = Process::start("exit 0");
    // Until it is reaped, its pid stays in use.
    std::thread::sleep(Duration::from_millis(300));
    let refused = TraceRequest(json!({"pid": process.pid()})).run();
    let reported = format!("process {}: it has ended already", process.pid());
    assert_eq!(refused["error"], reported.as_str());
    process.0.wait().unwrap();
}

/// Processes that come and go while pinwise attaches: each is traced, or reported as gone.
#[test]
fn a_process_that_ends_while_it_is_attached_to_is_reported() {
    for pause in 0..12 {
        let process = Process::start(&format!("sleep 0.0{pause:02}"));
        let seen = TraceRequest(json!({"tier": "switch", "pid": process.pid()})).run();
        match seen["error"].as_str() {
            Some(error) => {
                let prefix = format!("process {}: ", process.pid());
                assert!(error.starts_with(&prefix), "{error}");
            }
            None => check_sound(&seen),
        }
    }
}

#[test]
fn the_user_ends_a_trace_of_a_process_and_keeps_it() {
    // The test's program has a second thread, which must not get the signal.
    let wrapper = ["env", "--block-signal=INT"];
    let can = Command::new(wrapper[0]).args([wrapper[1], "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        crate::support::skipped("it needs env with --block-signal (coreutils 8.31)");
        return;
    }
    let process = Process::start(BUSY);
    let order = TraceRequest(json!({"tier": "proc", "pid": process.pid()}));
    let (child, answer) = order.start_as(&wrapper);
    // Long enough to have begun, on a slow machine too; if not, the signal
    // comes before the trace and is an interruption.
    std::thread::sleep(Duration::from_secs(3));
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
    let seen = inner::finish(child, &answer);
    check_sound(&seen);
    assert!(number(&seen, "to_ns") > number(&seen, "from_ns"));
    assert!(number(&seen["kinds"], "sample") > 1, "{seen}");
}

/// A process of many threads has events on every CPU for each of them.
#[test]
fn threads_of_a_process_are_attached_to() {
    if !crate::support::has_program("python3") {
        crate::support::skipped("python3 is not installed");
        return;
    }
    let line = "exec python3 -c '
import threading, time
def turn():
    while True:
        time.sleep(0.005)
for _ in range(40):
    threading.Thread(target=turn, daemon=True).start()
time.sleep(1000)'";
    let process = Process::start(line);
    let threads = |expected: usize| {
        let folder = format!("/proc/{}/task", process.pid());
        std::fs::read_dir(folder).is_ok_and(|threads| threads.count() >= expected)
    };
    while !threads(41) {
        std::thread::sleep(Duration::from_millis(20));
    }
    for tier in permitted(&["proc", "switch", "cpu-wide"]) {
        let order = json!({"tier": tier, "pid": process.pid(), "limit_ms": 500});
        let seen = TraceRequest(order).run();
        check_sound(&seen);
        assert_eq!(seen["followed"].as_array().unwrap().len(), 41, "{seen}");
        if tier != "proc" {
            assert!(number(&seen, "switches_out") > 40, "{seen}");
        }
    }
}
