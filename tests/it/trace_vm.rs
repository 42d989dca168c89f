//! The detector of avoidable SMT sharing on a real kernel of another shape: a
//! machine of two packages with two cores of two CPUs each, emulated.
//!
//! Its CPUs take turns on one thread of the host, so that nothing timed inside
//! means anything; but who was on which CPU when is the guest kernel's truth.
//! One boot runs what `TRACES` says, and a program whose memory is on one node while
//! it runs on the other.

use serde_json::Value;

use crate::support::report_skip;
use crate::vm;

/// What is traced: tier, case.
const TRACES: [(&str, &str); 8] = [
    ("tracepoint", "siblings"),
    ("tracepoint", "free"),
    ("tracepoint", "full"),
    ("bpf", "siblings"),
    ("bpf", "free"),
    ("bpf", "full"),
    ("cpu-wide", "siblings"),
    ("switch", "siblings"),
];

/// Cases: name, CPUs of the spinners, their number.
const CASES: [(&str, &str, u32); 3] = [
    ("free", "cpu:0-7", 3),
    ("siblings", "cpu:0,1", 2),
    ("full", "cpu:0-7", 8),
];

/// In the guest: each record is a line, after one with its tier and case.
fn script() -> String {
    let mut text =
        String::from("mount -t tracefs tracefs /sys/kernel/tracing\nexport PINWISE_STORE=none\n");
    for (tier, case) in TRACES {
        let (_, place, threads) = case_named(case);
        // A pinwise without the BPF tier has nothing to show for it.
        let or = if tier == "bpf" { "echo null" } else { "exit" };
        text.push_str(&format!(
            "echo \"@@ {tier} {case}\"\n\
             \"$0\" -q --format json trace --no-cost --tier {tier} --place {place} -- \
             \"$0\" bench kernel pi --threads {threads} --seconds 2s || {or}\n"
        ));
    }
    // Its memory is bound to the nodes it may use; then it runs elsewhere. The buffer is full after
    // the first of its turns, long before the last look.
    text.push_str(
        "echo \"@@ switch memory\"\n\
         \"$0\" -q --format json trace --no-cost --tier switch --place one-numa:1/mem=bind -- \
         busybox taskset 1 busybox dd bs=120M count=200 if=/dev/zero of=/dev/null || exit\n",
    );
    text
}

fn case_named(name: &str) -> (&'static str, &'static str, u32) {
    *CASES.iter().find(|case| case.0 == name).unwrap()
}

/// Records by tier and case.
struct RecordsByCase(Vec<(String, String, Value)>);

impl RecordsByCase {
    #[track_caller]
    fn read(out: &str) -> Self {
        let mut records = Vec::new();
        let mut lines = out.lines();
        while let Some(line) = lines.next() {
            let Some((tier, case)) = line.strip_prefix("@@ ").and_then(|l| l.split_once(' '))
            else {
                continue;
            };
            let record = lines.next().unwrap_or_default();
            let record = serde_json::from_str(record)
                .unwrap_or_else(|error| panic!("{tier} {case}: {error}: {record}"));
            records.push((tier.to_owned(), case.to_owned(), record));
        }
        Self(records)
    }

    #[track_caller]
    fn record(&self, tier: &str, case: &str) -> &Value {
        let found = self.0.iter().find(|(t, c, _)| t == tier && c == case);
        let (.., record) = found.unwrap_or_else(|| panic!("no record of {tier} {case}"));
        record
    }

    #[track_caller]
    fn sharing(&self, tier: &str, case: &str) -> &Value {
        &self.record(tier, case)["avoidable_smt_sharing"]
    }
}

#[test]
fn a_real_scheduler_is_judged_by_every_tier() {
    let Some((out, _)) = vm::run(768, &script()) else {
        return;
    };
    let judged = RecordsByCase::read(&out);
    for (tier, case, record) in &judged.0 {
        if record.is_null() {
            report_skip(&format!("tier {tier} is not available in the guest"));
        } else if case != "memory" {
            check_shape(record, tier, case, case_named(case).2);
        }
    }
    check_free(judged.sharing("tracepoint", "free"));
    check_full(judged.sharing("tracepoint", "full"));
    for tier in ["tracepoint", "cpu-wide", "bpf"] {
        let sharing = judged.sharing(tier, "siblings");
        if !sharing.is_null() {
            check_siblings(tier, sharing);
        }
    }
    check_memory(judged.record("switch", "memory"));
    // It sees the program alone, and so not which CPUs idle.
    let sharing = judged.sharing("switch", "siblings");
    assert!(sharing["percent"].is_null(), "{sharing}");
    assert!(sharing["note"].is_string(), "{sharing}");
}

/// Its buffer is on node 1, it ran on CPU 0. Pages of its file are wherever who read
/// it first was.
#[track_caller]
fn check_memory(record: &Value) {
    let memory = &record["memory"];
    let nodes = memory["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2, "{memory}");
    let last = |node: usize| nodes[node]["last_bytes"].as_u64().unwrap();
    assert!(last(0) < 8 << 20, "{memory}");
    assert!(last(1) >= 80 << 20, "{memory}");
    assert!(memory["far_percent"].as_f64().unwrap() > 80.0, "{memory}");
    let findings = record["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|f| f["check"] == "far-memory"),
        "{record}"
    );
}

/// Spinners take a CPU each, if there are enough.
#[track_caller]
fn check_shape(record: &Value, tier: &str, case: &str, threads: u32) {
    let message = || format!("{tier} {case}: {}", record["totals"]);
    assert_eq!(record["tier"], tier, "{}", message());
    assert_eq!(record["exit"], 0, "{}", message());
    let cpu_s = record["totals"]["cpu_s"].as_f64().unwrap();
    // 2 s each, and what starting takes under emulation.
    let least = f64::from(threads);
    assert!(cpu_s > least, "{}", message());
    let seen = record["totals"]["threads"].as_u64().unwrap();
    assert!(seen >= u64::from(threads), "{}", message());
}

#[track_caller]
fn figure(sharing: &Value, name: &str) -> f64 {
    let found = sharing[name].as_f64();
    found.unwrap_or_else(|| panic!("{name}: {sharing}"))
}

/// Three that are free: little.
#[track_caller]
fn check_free(sharing: &Value) {
    assert!(figure(sharing, "percent") < 25.0, "{sharing}");
}

/// All CPUs taken: all share, and nearly nothing could be avoided.
#[track_caller]
fn check_full(sharing: &Value) {
    assert!(figure(sharing, "shared_percent") > 60.0, "{sharing}");
    assert!(figure(sharing, "percent") < 20.0, "{sharing}");
}

/// Two on siblings: nearly all the time, and all by the mask.
#[track_caller]
fn check_siblings(tier: &str, sharing: &Value) {
    assert!(
        figure(sharing, "shared_percent") > 70.0,
        "{tier}: {sharing}"
    );
    let seconds = figure(sharing, "seconds");
    assert!(figure(sharing, "percent") > 70.0, "{tier}: {sharing}");
    let by_mask = figure(&sharing["by"], "mask_s") / seconds;
    assert!(by_mask > 0.9, "{tier}: {sharing}");
}
