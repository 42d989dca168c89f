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

/// Cases: name, where spinners may run, how many they are.
const CASES: [(&str, &str, u32); 4] = [
    ("free", "cpu:0-7", 3),
    ("siblings", "cpu:0,1", 2),
    ("package", "cpu:0-3", 4),
    ("full", "cpu:0-7", 8),
];

/// In the guest: every case with every tier that can be had. Each record is a
/// line, after one with its tier and case. The spinners are the shell's: a test
/// build's own loops are slow under emulation.
fn script() -> String {
    let mut text = String::from(
        "mount -t tracefs tracefs /sys/kernel/tracing\n\
         export PINWISE_STORE=none\n\
         echo '@@ tiers'; \"$0\" -q --format json trace tiers --for 1ms || exit\n\
         for tier in proc switch cpu-wide tracepoint bpf; do\n\
         \"$0\" -q --format json trace --tier $tier -- busybox true >/dev/null 2>&1 || continue\n",
    );
    for (name, place, threads) in CASES {
        text.push_str(&format!(
            "echo \"@@ $tier {name}\"\n\
             \"$0\" -q --format json trace --tier $tier --place {place} -- busybox sh -c \
             'for i in $(seq {threads}); do timeout 1 sh -c \"while :; do :; done\" & done; wait' \
             || exit\n"
        ));
    }
    text.push_str("done\n");
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
        .args(["--timeout", "420", "--mem", "384", "--with", program])
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
    // The guest's root may do everything its kernel can.
    for tier in ["proc", "switch", "cpu-wide", "tracepoint"] {
        for (case, _, threads) in CASES {
            check_shape(judged.record(tier, case), tier, case, threads);
        }
    }
    let rich = ["cpu-wide", "tracepoint", "bpf"];
    let had = |tier: &&&str| judged.records.iter().any(|(t, ..)| t == **tier);
    for tier in rich.iter().filter(had) {
        check_sharing(&judged, tier);
    }
    if !rich.iter().any(|tier| *tier == "bpf" && had(&tier)) {
        skipped(TEST, &format!("tier bpf in the guest: {}", judged.tiers));
    }
}

/// Spinners take a CPU each, where there are enough.
#[track_caller]
fn check_shape(record: &Value, tier: &str, case: &str, threads: u32) {
    let told = || format!("{tier} {case}: {}", record["totals"]);
    assert_eq!(record["tier"], tier, "{}", told());
    assert_eq!(record["exit"], 0, "{}", told());
    let cpu_s = record["totals"]["cpu_s"].as_f64().unwrap();
    // A second each, and what starting takes under emulation.
    let least = 0.5 * f64::from(threads);
    assert!(cpu_s > least, "{}", told());
    let seen = record["totals"]["threads"].as_u64().unwrap();
    assert!(seen >= u64::from(threads), "{}", told());
}

/// Avoidable sharing as known beforehand: nearly none of three that are free,
/// nearly all of two on siblings and of four in a package, by the mask; none
/// where all CPUs are taken, although all share.
#[track_caller]
fn check_sharing(judged: &Judged, tier: &str) {
    let sharing = |case: &str| {
        let sharing = &judged.record(tier, case)["avoidable_smt_sharing"];
        let figure = |value: &Value| {
            value
                .as_f64()
                .unwrap_or_else(|| panic!("{tier} {case}: {sharing}"))
        };
        let by = &sharing["by"];
        (
            figure(&sharing["percent"]),
            figure(&sharing["shared_percent"]),
            figure(&by["mask_s"]) / figure(&sharing["seconds"]).max(1e-9),
        )
    };
    let (percent, _, _) = sharing("free");
    assert!(percent < 15.0, "{tier} free: {percent} %");
    for case in ["siblings", "package"] {
        let (percent, _, by_mask) = sharing(case);
        assert!(percent > 70.0, "{tier} {case}: {percent} %");
        assert!(by_mask > 0.9, "{tier} {case}: {by_mask} by the mask");
    }
    let (percent, shared, _) = sharing("full");
    assert!(shared > 60.0, "{tier} full: {shared} % shared");
    assert!(percent < 20.0, "{tier} full: {percent} %");
}
