//! The detector of avoidable SMT sharing on a real kernel of another shape: a
//! machine of two packages with two cores of two CPUs each, emulated.
//!
//! Its CPUs take turns on one thread of the host, so that nothing timed inside
//! means anything; but who was on which CPU when is the guest kernel's truth.
//! One boot runs all cases with each tier that can be had there.

use std::process::Command;

use serde_json::Value;

use crate::support::{self, has_program, skipped, texts};

const TEST: &str = "trace_vm::a_real_scheduler_is_judged_by_every_tier";

/// What `run.sh` needs, and the packages where it is found.
const NEEDED: [(&str, &str); 7] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("python3", "python3"),
    ("setpriv", "util-linux"),
    ("apt-get", "a Debian system"),
    ("zstd", "zstd"),
];

const TIERS: [&str; 5] = ["proc", "switch", "cpu-wide", "tracepoint", "bpf"];

/// Tiers that do not see which CPUs idle.
const POOR: [&str; 2] = ["proc", "switch"];

/// Cases: name, where spinners may run, how many they are. Tiers that see the
/// program alone are asked the second one only.
const CASES: [(&str, &str, u32); 3] = [
    ("free", "cpu:0-7", 3),
    ("siblings", "cpu:0,1", 2),
    ("full", "cpu:0-7", 8),
];

/// In the guest: cases with every tier that can be had. Each record is a line,
/// after one with its tier and case.
fn script() -> String {
    let mut text = String::from(
        "mount -t tracefs tracefs /sys/kernel/tracing\n\
         export PINWISE_STORE=none\n\
         echo '@@ tiers'; \"$0\" -q --format json trace tiers --for 1ms || exit\n",
    );
    for tier in TIERS {
        for (name, place, threads) in CASES {
            if POOR.contains(&tier) && name != "siblings" {
                continue;
            }
            text.push_str(&format!(
                "if [ {tier} != bpf ] || \"$0\" -q trace --tier bpf -- busybox true >/dev/null 2>&1\n\
                 then echo \"@@ {tier} {name}\"\n\
                 \"$0\" -q --format json trace --tier {tier} --place {place} -- \
                 \"$0\" kernel pi --threads {threads} --seconds 600ms || exit\nfi\n"
            ));
        }
    }
    text
}

/// Records by tier and case, and what can be had at all.
struct Judged {
    tiers: Value,
    records: Vec<(String, String, Value)>,
}

impl Judged {
    #[track_caller]
    fn read(out: &str) -> Self {
        let mut judged = Self {
            tiers: Value::Null,
            records: Vec::new(),
        };
        let mut lines = out.lines();
        while let Some(line) = lines.next() {
            let Some(head) = line.strip_prefix("@@ ") else {
                continue;
            };
            let record = lines.next().unwrap_or_default();
            let record = serde_json::from_str(record)
                .unwrap_or_else(|error| panic!("{head}: {error}: {record}"));
            match head.split_once(' ') {
                None => judged.tiers = record,
                Some((tier, case)) => {
                    judged
                        .records
                        .push((tier.to_owned(), case.to_owned(), record));
                }
            }
        }
        judged
    }

    fn has(&self, tier: &str) -> bool {
        self.records.iter().any(|(found, ..)| found == tier)
    }

    #[track_caller]
    fn record(&self, tier: &str, case: &str) -> &Value {
        let found = self.records.iter().find(|(t, c, _)| t == tier && c == case);
        &found
            .unwrap_or_else(|| panic!("no record of {tier} {case}"))
            .2
    }
}

/// Why no machine can be booted here.
fn obstacle() -> Option<String> {
    let missing = NEEDED.iter().find(|(program, _)| !has_program(program));
    missing.map(|(program, package)| format!("{program} is missing ({package})"))
}

/// Boots, runs the script, returns its standard output; `None` where the
/// emulation failed, which says nothing of pinwise.
fn boot() -> Option<String> {
    let program = env!("CARGO_BIN_EXE_pinwise");
    let output = Command::new(support::root().join("tests/env/vm/run.sh"))
        .args(["--timeout", "600", "--mem", "384", "--with", program])
        .args(["8,sockets=2,cores=2,threads=2", "0-3;4-7"])
        .args(["busybox", "sh", "-c", &script()])
        .arg("pinwise")
        .output()
        .unwrap();
    let (out, err) = texts(&output);
    match output.status.code() {
        Some(0) => Some(out),
        // No kernel to be had, or it died three times under emulation.
        Some(125) => {
            skipped(TEST, err.trim().lines().last().unwrap_or_default());
            None
        }
        code => panic!("{code:?}: {err}\n{out}"),
    }
}

#[test]
fn a_real_scheduler_is_judged_by_every_tier() {
    if let Some(why) = obstacle() {
        return skipped(TEST, &why);
    }
    let Some(out) = boot() else { return };
    let judged = Judged::read(&out);
    // The guest's root may do everything that its kernel can.
    for tier in ["proc", "switch", "cpu-wide", "tracepoint"] {
        assert!(judged.has(tier), "{tier}: {}", judged.tiers);
    }
    for (tier, case, record) in &judged.records {
        let (.., threads) = CASES.iter().find(|(name, ..)| name == case).unwrap();
        check_shape(record, tier, case, *threads);
    }
    for tier in TIERS.iter().filter(|tier| judged.has(tier)) {
        if POOR.contains(tier) {
            let sharing = &judged.record(tier, "siblings")["avoidable_smt_sharing"];
            assert!(sharing["percent"].is_null(), "{tier}: {sharing}");
            assert!(sharing["note"].is_string(), "{tier}: {sharing}");
        } else {
            check_sharing(&judged, tier);
        }
    }
    if !judged.has("bpf") {
        skipped(TEST, &format!("tier bpf in the guest: {}", judged.tiers));
    }
}

/// Spinners take a CPU each, where there are enough.
#[track_caller]
fn check_shape(record: &Value, tier: &str, case: &str, threads: u32) {
    let told = || format!("{tier} {case}: {}", record["totals"]);
    assert_eq!(record["tier"], tier, "{}", told());
    assert_eq!(record["exit"], 0, "{}", told());
    if tier == "proc" {
        return; // Short lives are seen in part only.
    }
    let cpu_s = record["totals"]["cpu_s"].as_f64().unwrap();
    // 600 ms each, and what starting takes under emulation.
    let least = 0.3 * f64::from(threads);
    assert!(cpu_s > least, "{}", told());
    let seen = record["totals"]["threads"].as_u64().unwrap();
    assert!(seen >= u64::from(threads), "{}", told());
}

/// Avoidable sharing as known beforehand: little of three that are free; of two
/// on siblings as much as idle cores have been heard of, by the mask; nearly
/// none where all CPUs are taken, although all share.
#[track_caller]
fn check_sharing(judged: &Judged, tier: &str) {
    let sharing = |case: &str| {
        let sharing = &judged.record(tier, case)["avoidable_smt_sharing"];
        let figure = |value: &Value| {
            let found = value.as_f64();
            found.unwrap_or_else(|| panic!("{tier} {case}: {sharing}"))
        };
        (
            figure(&sharing["percent"]),
            figure(&sharing["shared_percent"]),
            figure(&sharing["by"]["mask_s"]) / figure(&sharing["seconds"]).max(1e-9),
        )
    };
    let (percent, ..) = sharing("free");
    assert!(percent < 25.0, "{tier} free: {percent} %");
    let (percent, shared, by_mask) = sharing("siblings");
    assert!(shared > 70.0, "{tier} siblings: {shared} % shared");
    // What a CPU does before its first event is not known, and in a quiet guest
    // that may come late.
    assert!(percent > 25.0, "{tier} siblings: {percent} %");
    assert!(by_mask > 0.9, "{tier} siblings: {by_mask} by the mask");
    let (percent, shared, _) = sharing("full");
    assert!(shared > 60.0, "{tier} full: {shared} % shared");
    assert!(percent < 20.0, "{tier} full: {percent} %");
}
