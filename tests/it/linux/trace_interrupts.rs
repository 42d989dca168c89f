//! Interrupts and softirqs of a traced program on the real host, compared with the kernel's own
//! counters.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use pinwise_topology::interrupts;
use serde_json::{Value, json};

use super::trial::Trial;
use crate::support::report_skip;

/// Environment variable with the file to which the traced program writes the kernel's counts.
const ANSWER: &str = "PINWISE_TEST_COUNTED";
/// Packets over loopback: each is a softirq `NET_RX` of its own, unless several are taken at once.
const PACKETS: usize = 20_000;
/// Some 25 ticks of each busy CPU at 100 Hz, 250 at 1,000.
const BUSY: Duration = Duration::from_millis(250);

/// The sum over all CPUs of a line of counters, since boot.
fn read_count(file: &str, label: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = interrupts::lines(&text);
    let line = lines.iter().find(|line| line.label == label);
    line.map_or(0, |line| line.counts.values().sum())
}

/// `NET_RX` softirqs and timer ticks since boot.
fn read_counts() -> [u64; 2] {
    [
        read_count("/proc/softirqs", "NET_RX"),
        read_count("/proc/interrupts", "LOC"),
    ]
}

fn counts_since(before: [u64; 2]) -> [u64; 2] {
    let now = read_counts();
    [now[0] - before[0], now[1] - before[1]]
}

#[test]
#[ignore = "traced by another test, in a process of its own"]
fn packets_and_ticks_are_caused() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    let before = read_counts();
    let mut buffer = [0; 64];
    for _ in 0..PACKETS {
        sender.send(&[7; 64]).unwrap();
        receiver.recv(&mut buffer).unwrap();
    }
    let end = Instant::now() + BUSY;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
    let answer = json!(counts_since(before)).to_string();
    std::fs::write(std::env::var_os(ANSWER).unwrap(), answer).unwrap();
}

/// A trace, the kernel's counts of a span within it, and those of a span that contains it.
struct TraceWithCounts {
    record: Value,
    within: [u64; 2],
    around: [u64; 2],
}

/// The causes, by kind and name, that are compared with the two counters.
const COMPARED: [(&str, &str); 2] = [("softirq", "NET_RX"), ("cpu-interrupt", "local_timer")];

impl TraceWithCounts {
    fn find_cause(&self, (kind, name): (&str, &str)) -> Option<&Value> {
        let causes = self.record["interrupts"]["causes"].as_array().unwrap();
        let mut causes = causes.iter();
        causes.find(|cause| cause["kind"] == kind && cause["name"] == name)
    }

    fn cpu_count(&self) -> u64 {
        self.record["host"]["counts"]["cpus"].as_u64().unwrap()
    }

    /// Whether the trace reports no gaps and no lower bounds.
    fn is_whole(&self) -> bool {
        self.record["interrupts"]["gaps"] == 0
            && COMPARED.into_iter().all(|cause| {
                let found = self.find_cause(cause);
                found.is_none_or(|found| found["is_lower_bound"] == false)
            })
    }

    /// Whether a cause has as many as the kernel counted.
    fn has_all(&self, cause: &Value, within: u64) -> bool {
        let count = cause["count"].as_u64().unwrap();
        // The trace calls its count a lower bound only if more than one in 33, plus 20, lack; and
        // on each CPU the kernel may have counted one whose tracepoint followed after the trace.
        count + count / 33 + 20 + self.cpu_count() >= within
    }
}

/// `None`, with the reason, if interrupts cannot be read here.
fn trace_packets(trial: &Trial) -> Option<TraceWithCounts> {
    let own = std::env::current_exe().unwrap();
    let name = concat!(module_path!(), "::packets_and_ticks_are_caused");
    let name = name.split_once("::").unwrap().1;
    let answer = trial.path("counted");
    let before = read_counts();
    let mut command = trial.pinwise(&["trace", "--interrupts", "--no-cost", "--format", "json"]);
    command.arg("--").arg(own);
    command.args(["--exact", name, "--ignored", "--test-threads=1"]);
    let ended = super::trial::finish(command.env(ANSWER, &answer).spawn().unwrap());
    let around = counts_since(before);
    if ended.err.contains("--interrupts is not available here") {
        report_skip(ended.err.trim());
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

fn to_seconds(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn as_many_interrupts_are_traced_as_the_kernel_counts() {
    let trial = Trial::new();
    // A machine that is overloaded may lose records.
    let mut last = None;
    for _ in 0..3 {
        last = trace_packets(&trial);
        let Some(trace) = &last else { return };
        if trace.is_whole() {
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
        return report_skip("three traces in a row reported that they lost interrupts");
    }
    let cpus = last.cpu_count();
    let found = &last.record["interrupts"];
    let causes = found["causes"].as_array().unwrap();
    for (at, (kind, name)) in COMPARED.into_iter().enumerate() {
        let Some(cause) = last.find_cause((kind, name)) else {
            // On arm64 the kernel counts ticks as interrupts of a device.
            assert!(
                name == "local_timer" && !cfg!(target_arch = "x86_64"),
                "{found}"
            );
            report_skip("no tracepoint local_timer");
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
        assert!(to_seconds(&cause["stolen_s"]) > 0.0, "{cause}");
    }
    let elapsed_s = to_seconds(&last.record["elapsed_s"]);
    let mut stolen_s = 0.0;
    for cause in causes {
        stolen_s += to_seconds(&cause["stolen_s"]);
        let each = cause["cpus"].as_array().unwrap();
        let sum: f64 = each.iter().map(|cpu| to_seconds(&cpu["seconds"])).sum();
        assert!(
            (sum - to_seconds(&cause["seconds"])).abs() < 1e-9,
            "{cause}"
        );
        assert!(to_seconds(&cause["stolen_s"]) <= sum + 1e-9, "{cause}");
        assert!(sum <= elapsed_s * cpus as f64, "{cause}");
    }
    assert!(
        (stolen_s - to_seconds(&found["stolen_s"])).abs() < 1e-9,
        "{found}"
    );
    let cpu_s = to_seconds(&last.record["totals"]["cpu_s"]);
    assert!(stolen_s < cpu_s, "{stolen_s} of {cpu_s}: {found}");
}

#[test]
fn interrupts_that_may_not_be_read_are_refused() {
    let trial = Trial::new();
    let Some(out) = trial.run_unprivileged("trace --interrupts -- true") else {
        return;
    };
    assert!(
        out.contains("--interrupts is not available here: "),
        "{out}"
    );
    assert!(out.contains("status 2"), "{out}");
}
