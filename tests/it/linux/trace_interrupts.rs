//! Interrupts and softirqs of a traced program on the real host, beside the kernel's
//! own counters.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use pinwise_topology::interrupts;
use serde_json::{Value, json};

use super::trial::Trial;
use crate::support::{has_program, skipped};

/// The file for the kernel's own counts, which the traced program writes.
const ANSWER: &str = "PINWISE_TEST_COUNTED";
/// Packets over loopback: each is a softirq `NET_RX` of its own, unless many pile up.
const PACKETS: usize = 20_000;
/// Some 25 ticks of each busy CPU at 100 Hz, 250 at 1,000.
const BUSY: Duration = Duration::from_millis(250);

/// How often something came since boot, all CPUs together.
fn read_count(file: &str, label: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = interrupts::lines(&text);
    let line = lines.iter().find(|line| line.label == label);
    line.map_or(0, |line| line.counts.values().sum())
}

/// Packets that were received, and ticks.
fn both() -> [u64; 2] {
    [
        read_count("/proc/softirqs", "NET_RX"),
        read_count("/proc/interrupts", "LOC"),
    ]
}

fn since(before: [u64; 2]) -> [u64; 2] {
    let now = both();
    [now[0] - before[0], now[1] - before[1]]
}

#[test]
#[ignore = "traced by another test, in a process of its own"]
fn packets_and_ticks() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    let before = both();
    let mut buffer = [0; 64];
    for _ in 0..PACKETS {
        sender.send(&[7; 64]).unwrap();
        receiver.recv(&mut buffer).unwrap();
    }
    let end = Instant::now() + BUSY;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    let answer = json!(since(before)).to_string();
    std::fs::write(std::env::var_os(ANSWER).unwrap(), answer).unwrap();
}

/// A trace, what the kernel counted within it, and what it counted around it.
struct TraceWithCounts {
    record: Value,
    within: [u64; 2],
    around: [u64; 2],
}

/// What is compared with the kernel's own counters.
const COMPARED: [(&str, &str); 2] = [("softirq", "NET_RX"), ("cpu-interrupt", "local_timer")];

impl TraceWithCounts {
    fn cause(&self, (kind, name): (&str, &str)) -> Option<&Value> {
        let causes = self.record["interrupts"]["causes"].as_array().unwrap();
        let mut causes = causes.iter();
        causes.find(|cause| cause["kind"] == kind && cause["name"] == name)
    }

    fn cpus(&self) -> u64 {
        self.record["host"]["counts"]["cpus"].as_u64().unwrap()
    }

    /// Has it as many as the kernel counted, or says that it has not? The counter may be
    /// a moment before the tracepoint on each CPU.
    fn is_whole(&self) -> bool {
        self.record["interrupts"]["gaps"] == 0
            && COMPARED.into_iter().all(|cause| {
                let found = self.cause(cause);
                found.is_none_or(|found| found["is_lower_bound"] == false)
            })
    }

    fn has_all(&self, cause: &Value, within: u64) -> bool {
        let count = cause["count"].as_u64().unwrap();
        // The lower bound allows for one in 33, plus 20, missing.
        count + count / 33 + 20 + self.cpus() >= within
    }
}

/// `None`, with the reason, if interrupts cannot be read here.
fn traced(trial: &Trial) -> Option<TraceWithCounts> {
    let own = std::env::current_exe().unwrap();
    let name = concat!(module_path!(), "::packets_and_ticks");
    let name = name.split_once("::").unwrap().1;
    let answer = trial.path("counted");
    let before = both();
    let mut command = trial.pinwise(&["trace", "--interrupts", "--no-cost", "--format", "json"]);
    command.arg("--").arg(own);
    command.args(["--exact", name, "--ignored", "--test-threads=1"]);
    let ended = super::trial::finish(command.env(ANSWER, &answer).spawn().unwrap());
    let around = since(before);
    if ended.err.contains("--interrupts is not available here") {
        skipped(ended.err.trim());
        return None;
    }
    assert!(ended.status.success(), "{}{}", ended.out, ended.err);
    let within = std::fs::read_to_string(answer).unwrap();
    Some(TraceWithCounts {
        record: serde_json::from_str(&ended.out).unwrap(),
        within: serde_json::from_str(&within).unwrap(),
        around,
    })
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn interrupts_are_those_that_the_kernel_counts() {
    let trial = Trial::new();
    // A machine that is overloaded may lose records.
    let mut last = None;
    for _ in 0..3 {
        last = traced(&trial);
        let Some(made) = &last else { return };
        if made.is_whole() {
            break;
        }
    }
    let last = last.unwrap();
    if !last.is_whole() {
        let findings = last.record["findings"].as_array().unwrap();
        let mut checks = findings.iter().map(|finding| &finding["check"]);
        assert!(
            checks.any(|check| check == "interrupts_lost"),
            "{}",
            last.record
        );
        return skipped("three traces in a row lost reports, and said so");
    }
    let cpus = last.cpus();
    let found = &last.record["interrupts"];
    let causes = found["causes"].as_array().unwrap();
    for (at, (kind, name)) in COMPARED.into_iter().enumerate() {
        let Some(cause) = last.cause((kind, name)) else {
            // Ticks of arm64 are interrupts of a device.
            assert!(
                name == "local_timer" && !cfg!(target_arch = "x86_64"),
                "{found}"
            );
            skipped("no tracepoint local_timer");
            continue;
        };
        let count = cause["count"].as_u64().unwrap();
        assert!(
            count <= last.around[at] + cpus,
            "{:?}: {cause}",
            last.around
        );
        assert!(last.within[at] > 0, "{cause}");
        assert!(
            last.has_all(cause, last.within[at]),
            "{:?}: {cause}",
            last.within
        );
        assert!(seconds(&cause["stolen_s"]) > 0.0, "{cause}");
    }
    let elapsed_s = seconds(&last.record["elapsed_s"]);
    let mut stolen_s = 0.0;
    for cause in causes {
        stolen_s += seconds(&cause["stolen_s"]);
        let each = cause["cpus"].as_array().unwrap();
        let sum: f64 = each.iter().map(|cpu| seconds(&cpu["seconds"])).sum();
        assert!((sum - seconds(&cause["seconds"])).abs() < 1e-9, "{cause}");
        assert!(seconds(&cause["stolen_s"]) <= sum + 1e-9, "{cause}");
        assert!(sum <= elapsed_s * cpus as f64, "{cause}");
    }
    assert!(
        (stolen_s - seconds(&found["stolen_s"])).abs() < 1e-9,
        "{found}"
    );
    let cpu_s = seconds(&last.record["totals"]["cpu_s"]);
    assert!(stolen_s < cpu_s, "{stolen_s} of {cpu_s}: {found}");
}

#[test]
fn interrupts_that_may_not_be_read_are_refused() {
    if !has_program("setpriv") {
        return skipped("no setpriv");
    }
    let trial = Trial::new();
    // A folder that a user without rights may read and execute from.
    let folder = trial.shell("mktemp -d /tmp/pinwise-interrupts-XXXXXX");
    let folder = folder.trim();
    let binary = env!("CARGO_BIN_EXE_pinwise");
    trial.shell(&format!("cp {binary} {folder}/pinwise; chmod 755 {folder}"));
    let line = format!(
        "cd {folder}; setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
         ./pinwise --store none trace --interrupts -- true 2>&1; echo status $?"
    );
    let out = trial.shell(&line);
    trial.shell(&format!("rm -r {folder}"));
    if out.contains("setpriv:") {
        return skipped(out.trim());
    }
    assert!(
        out.contains("--interrupts is not available here: "),
        "{out}"
    );
    assert!(out.contains("status 2"), "{out}");
}
