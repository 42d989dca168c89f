//! The detector of avoidable SMT sharing on a real kernel, on an emulated machine of two packages
//! of two cores with two CPUs each.
//!
//! The CPUs of the guest take turns on one thread of the host, so that times within it mean
//! nothing; but which thread was on which CPU is true. One boot makes all `TRACES`, and that of a
//! program whose memory is on one node while it runs on the other.

use serde_json::Value;

use crate::support::{find_finding, report_skip};
use crate::vm;

/// Traces: tier and case.
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

/// The placement of the spinners of a case, and their number.
fn spinners_of(name: &str) -> (&'static str, u32) {
    match name {
        "free" => ("cpu:0-7", 3),
        "siblings" => ("cpu:0,1", 2),
        "full" => ("cpu:0-7", 8),
        _ => panic!("no case {name}"),
    }
}

/// The script of the guest. It prints each record as a line, after one with its tier and case.
fn build_script() -> String {
    let mut text =
        String::from("mount -t tracefs tracefs /sys/kernel/tracing\nexport PINWISE_STORE=none\n");
    for (tier, case) in TRACES {
        let (place, threads) = spinners_of(case);
        // pinwise may have been built without the BPF tier.
        let or_else = if tier == "bpf" { "echo null" } else { "exit" };
        text.push_str(&format!(
            "echo \"@@ {tier} {case}\"\n\
             \"$0\" -q --format json trace --no-cost --tier {tier} --place {place} -- \
             \"$0\" bench kernel pi --threads {threads} --seconds 2s || {or_else}\n"
        ));
    }
    // The buffer of dd is bound to node 1; dd itself then runs on node 0. The buffer is full after
    // the first of 200 blocks, long before the last sample of its memory.
    text.push_str(
        "echo \"@@ switch memory\"\n\
         \"$0\" -q --format json trace --no-cost --tier switch --place one-numa:1/mem=bind -- \
         busybox taskset 1 busybox dd bs=120M count=200 if=/dev/zero of=/dev/null || exit\n",
    );
    text
}

#[track_caller]
fn parse_record(out: &str, tier: &str, case: &str) -> Value {
    let lines = vm::find_case(out, &format!("{tier} {case}"));
    let record = lines.lines().next().unwrap_or_default();
    serde_json::from_str(record).unwrap_or_else(|error| panic!("{tier} {case}: {error}: {record}"))
}

#[test]
fn every_tier_reports_avoidable_sharing_and_far_memory() {
    let Some(out) = vm::run(768, &build_script()) else {
        return;
    };
    for (tier, case) in TRACES {
        let record = parse_record(&out, tier, case);
        if record.is_null() {
            report_skip(&format!("tier {tier} is not available in the guest"));
        } else {
            check_totals(&record, tier, case, spinners_of(case).1);
        }
    }
    let sharing = |tier, case| parse_record(&out, tier, case)["avoidable_smt_sharing"].clone();
    check_free(&sharing("tracepoint", "free"));
    check_full(&sharing("tracepoint", "full"));
    for tier in ["tracepoint", "cpu-wide", "bpf"] {
        let sharing = sharing(tier, "siblings");
        if !sharing.is_null() {
            check_siblings(tier, &sharing);
        }
    }
    check_memory(&parse_record(&out, "switch", "memory"));
    // This tier sees only the program, and not which CPUs are idle.
    let sharing = sharing("switch", "siblings");
    assert!(sharing["percent"].is_null(), "{sharing}");
    assert!(sharing["note"].is_string(), "{sharing}");
}

/// The buffer is on node 1, and the program ran on CPU 0, on node 0. The pages of its file may be
/// on either node.
#[track_caller]
fn check_memory(record: &Value) {
    let memory = &record["memory"];
    let nodes = memory["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 2, "{memory}");
    let last = |node: usize| nodes[node]["last_bytes"].as_u64().unwrap();
    assert!(last(0) < 8 << 20, "{memory}");
    assert!(last(1) >= 80 << 20, "{memory}");
    assert!(memory["far_percent"].as_f64().unwrap() > 80.0, "{memory}");
    assert!(find_finding(record, "far-memory").is_some(), "{record}");
}

/// Checks the number of threads and their CPU time.
#[track_caller]
fn check_totals(record: &Value, tier: &str, case: &str, threads: u32) {
    let message = || format!("{tier} {case}: {}", record["totals"]);
    assert_eq!(record["tier"], tier, "{}", message());
    assert_eq!(record["exit"], 0, "{}", message());
    let cpu_s = record["totals"]["cpu_s"].as_f64().unwrap();
    // They run for 2 s, but under emulation a part of that passes while they start.
    assert!(cpu_s > f64::from(threads), "{}", message());
    let seen = record["totals"]["threads"].as_u64().unwrap();
    assert!(seen >= u64::from(threads), "{}", message());
}

#[track_caller]
fn read_figure(sharing: &Value, name: &str) -> f64 {
    let found = sharing[name].as_f64();
    found.unwrap_or_else(|| panic!("{name}: {sharing}"))
}

/// Three spinners on eight CPUs share little.
#[track_caller]
fn check_free(sharing: &Value) {
    assert!(read_figure(sharing, "percent") < 25.0, "{sharing}");
}

/// On full cores all spinners share, and hardly any of it is avoidable.
#[track_caller]
fn check_full(sharing: &Value) {
    assert!(read_figure(sharing, "shared_percent") > 60.0, "{sharing}");
    assert!(read_figure(sharing, "percent") < 20.0, "{sharing}");
}

/// Two spinners on siblings share nearly all the time, and all because of the mask.
#[track_caller]
fn check_siblings(tier: &str, sharing: &Value) {
    assert!(
        read_figure(sharing, "shared_percent") > 70.0,
        "{tier}: {sharing}"
    );
    let seconds = read_figure(sharing, "seconds");
    assert!(read_figure(sharing, "percent") > 70.0, "{tier}: {sharing}");
    let by_mask = read_figure(&sharing["by"], "mask_s") / seconds;
    assert!(by_mask > 0.9, "{tier}: {sharing}");
}
