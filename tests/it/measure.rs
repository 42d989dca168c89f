//! `topology --measure` on simulated machines that are wired as they report, or otherwise.

use std::path::Path;

use serde_json::Value;

use crate::support::{decode_output, pinwise, run_for_json, split_words};

/// Measures a machine of this description.
#[track_caller]
fn measure(description: &str, more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.toml");
    std::fs::write(&path, description).unwrap();
    let machine = format!("sim:{}", path.display());
    let mut arguments = vec!["topology", "--measure", "--machine", &machine];
    arguments.extend(["--seed", "1", "--format", "json"]);
    arguments.extend(more);
    run_for_json(&arguments)
}

fn list_groups<'a>(record: &'a Value, kind: &str) -> Vec<&'a str> {
    let levels = record["measured"]["levels"].as_array().unwrap();
    let level = levels.iter().find(|level| level["kind"] == kind);
    let groups = level.and_then(|level| level["groups"].as_array());
    let groups = groups.map_or(&[][..], |groups| groups);
    groups.iter().filter_map(Value::as_str).collect()
}

#[track_caller]
fn check_verdict(record: &Value, level: &str, expected: &str) {
    let verdicts = record["measured"]["verdicts"].as_array().unwrap();
    let found = verdicts.iter().find(|v| v["level"] == level);
    let found = found.unwrap_or_else(|| panic!("no verdict on {level}: {verdicts:?}"));
    assert_eq!(found["verdict"], expected, "{found}");
}

const HONEST: &str = r#"topology = "package:2 [numa(memory=64GB)] l3:2(size=32MB) core:4 pu:2""#;

#[test]
fn a_true_report_is_confirmed_level_by_level() {
    let record = measure(HONEST, &[]);
    for level in ["smt", "llc", "package", "numa"] {
        check_verdict(&record, level, "agrees");
    }
    assert_eq!(record["contradictions"].as_array().unwrap().len(), 0);
    assert_eq!(
        list_groups(&record, "llc"),
        ["0-7", "8-15", "16-23", "24-31"]
    );
    assert_eq!(list_groups(&record, "package"), ["0-15", "16-31"]);
    let measured = &record["measured"];
    assert_eq!(measured["smt_pairs"].as_array().unwrap().len(), 16);
    assert_eq!(measured["effort"]["pairs_measured"], 496);
}

#[test]
fn a_false_report_is_contradicted_with_the_truth() {
    let record = measure(
        r#"
topology = "package:1 l3:1(size=32MB) core:16 pu:1"
[wiring]
topology = "package:1 l3:2(size=16MB) core:4 pu:2"
"#,
        &["--wiring-only"],
    );
    check_verdict(&record, "smt", "contradicted");
    check_verdict(&record, "llc", "contradicted");
    check_verdict(&record, "package", "agrees");
    assert_eq!(list_groups(&record, "smt")[..2], ["0-1", "2-3"]);
    assert_eq!(list_groups(&record, "llc"), ["0-7", "8-15"]);
    let first = &record["contradictions"][0];
    for field in ["claim", "measured", "advice"] {
        assert!(!first[field].as_str().unwrap().is_empty(), "{first}");
    }
    assert!(first["confidence"].as_f64().unwrap() > 0.7);
}

#[test]
fn missing_caches_and_nodes_are_contradicted() {
    let record = measure(
        r#"
topology = "package:2 [numa(memory=64GB)] l3:1(size=32MB) core:4 pu:1"
[wiring]
topology = "package:1 [numa(memory=128GB)] l3:1(size=8MB) core:8 pu:1"
"#,
        &[],
    );
    for level in ["llc", "package", "numa", "cache"] {
        check_verdict(&record, level, "contradicted");
    }
    assert_eq!(record["measured"]["flat"], true);
}

#[test]
fn caches_with_the_same_verdict_share_a_line() {
    let topology = "topology = \"package:1 l3:1(size=32MB) l2:4(size=1MB) core:1 pu:1\"\n";
    let record = measure(topology, &[]);
    let verdicts = record["measured"]["verdicts"].as_array().unwrap();
    let of_caches = verdicts.iter().filter(|v| v["level"] == "cache");
    let of_caches: Vec<&Value> = of_caches.collect();
    assert_eq!(of_caches.len(), 1, "{of_caches:?}");
    let seen = of_caches[0]["measured"].as_str().unwrap();
    assert!(
        seen.contains(" of L2 at ") && seen.contains(" of L3 at "),
        "{seen}"
    );
    let answer = record["measured"]["answer"].as_str().unwrap();
    assert!(
        answer.starts_with("The kernel's picture is right"),
        "{answer}"
    );
}

#[test]
fn a_cache_that_other_programs_may_use_contradicts_no_report() {
    let record = measure(
        r#"
topology = "package:1 l3:1(size=32MB) core:4 pu:1"
[wiring]
topology = "package:1 l3:1(size=8MB) core:4 pu:1"
stacked = ["1,3"]
"#,
        &[],
    );
    check_verdict(&record, "stacked", "contradicted");
    let verdicts = record["measured"]["verdicts"].as_array().unwrap();
    let of_caches = verdicts.iter().filter(|v| v["level"] == "cache");
    let smaller: Vec<&Value> = of_caches.filter(|v| v["verdict"] != "agrees").collect();
    assert_eq!(smaller.len(), 1, "{smaller:?}");
    assert_eq!(smaller[0]["verdict"], "cannot_tell", "{smaller:?}");
    let advice = smaller[0]["advice"].as_str().unwrap();
    assert!(
        advice.contains("Measure again while nothing else runs"),
        "{advice}"
    );
}

#[test]
fn siblings_are_found_that_latency_cannot_show() {
    let record = measure(
        r#"
topology = "package:1 l3:1(size=32MB) core:16 pu:1"
[wiring]
topology = "package:1 l3:1(size=32MB) core:8 pu:2"
smt_ns = 20.0
llc_ns = 20.5
"#,
        &["--wiring-only"],
    );
    check_verdict(&record, "smt", "contradicted");
    assert_eq!(list_groups(&record, "smt").len(), 8);
}

#[test]
fn two_cpus_are_judged_by_figures_of_other_machines() {
    let measure_pair = |latency: &str, truth: &str, options: &[&str]| {
        let description = format!(
            "topology = \"package:1 l3:1(size=32MB) core:2 pu:1\"\n[wiring]\ntopology = \"{truth}\"\n{latency}\n"
        );
        measure(&description, options)
    };
    let alone = &["--wiring-only"][..];
    let same_cache = measure_pair("llc_ns = 30.0", "package:1 l3:1 core:2 pu:1", alone);
    check_verdict(&same_cache, "smt", "agrees");
    check_verdict(&same_cache, "llc", "agrees");
    let siblings = measure_pair("smt_ns = 11.0", "package:1 l3:1 core:1 pu:2", alone);
    check_verdict(&siblings, "smt", "contradicted");
    // One absolute latency contradicts no report: only the latencies of loads on the same machine
    // do.
    let truth = "package:1 l3:2 core:1 pu:1";
    let two_caches = measure_pair("package_ns = 105.0", truth, alone);
    check_verdict(&two_caches, "llc", "cannot_tell");
    check_verdict(&two_caches, "smt", "agrees");
    let two_caches = measure_pair("package_ns = 105.0", truth, &[]);
    check_verdict(&two_caches, "llc", "contradicted");
    // On a large mesh the transfer of a line takes as long, but loads are slow, too.
    let mesh = measure_pair("llc_ns = 66.0", "package:1 l3:1 core:2 pu:1", &[]);
    check_verdict(&mesh, "smt", "agrees");
    let slow = "memory_ns = 150.0\ncaches = [{ bytes = 32768, ns = 1.0 }, { bytes = 1048576, ns = 3.4 }, { bytes = 33554432, ns = 60.0 }]";
    let mesh = format!("llc_ns = 79.0\n{slow}");
    let mesh = measure_pair(&mesh, "package:1 l3:1 core:2 pu:1", &[]);
    check_verdict(&mesh, "llc", "agrees");
    // Other programs slow loads, too: then no latency decides.
    for figures in ["", slow] {
        let busy = format!("package_ns = 123.0\nstolen = 0.2\n{figures}");
        let busy = measure_pair(&busy, truth, &[]);
        check_verdict(&busy, "llc", "cannot_tell");
        check_verdict(&busy, "package", "agrees");
        let text = busy["measured"]["verdicts"].to_string();
        assert!(!text.contains("such CPUs share no cache"), "{text}");
    }
}

#[test]
fn floating_cpus_are_reported_with_their_dwell_times() {
    let record = measure(
        r#"
topology = "package:1 l3:1(size=32MB) core:2 pu:1"
[[wiring.states]]
topology = "package:1 l3:1(size=32MB) core:2 pu:1"
dwell_s = 12.0
[[wiring.states]]
topology = "package:1 l3:2(size=32MB) core:1 pu:1"
dwell_s = 12.0
"#,
        &["--wiring-only", "--watch", "10m"],
    );
    let drift = &record["measured"]["drift"];
    let changes = drift["changes"].as_u64().unwrap();
    assert!((25..=90).contains(&changes), "{changes} changes in 600 s");
    let dwell = drift["median_dwell_s"].as_f64().unwrap();
    assert!(
        (4.0..=16.0).contains(&dwell),
        "median of 12 s × ln 2: {dwell}"
    );
    let states = drift["pairs"][0]["states"].as_array().unwrap();
    assert_eq!(states.len(), 2, "{states:?}");
    check_verdict(&record, "placement", "contradicted");
    assert!(drift["valid_s"].as_f64().unwrap() < 4.0);
}

#[test]
fn findings_before_a_change_of_wiring_contradict_nothing() {
    let record = measure(
        r#"
topology = "package:1 l3:1(size=32MB) core:4 pu:1"
[[wiring.states]]
topology = "package:1 l3:2(size=32MB) core:2 pu:1"
dwell_s = 30.0
[[wiring.states]]
topology = "package:1 l3:1(size=32MB) core:4 pu:1"
dwell_s = 30.0
"#,
        &["--wiring-only", "--watch", "10m"],
    );
    check_verdict(&record, "placement", "contradicted");
    check_verdict(&record, "llc", "cannot_tell");
    assert_eq!(record["contradictions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_stable_machine_is_reported_as_stable_for_the_watched_time() {
    let watched = |time: &str, verdict: &str, bound: &str| {
        let record = measure(HONEST, &["--wiring-only", "--watch", time]);
        check_verdict(&record, "placement", verdict);
        let sentence = record["measured"]["drift"]["sentence"].as_str().unwrap();
        assert!(sentence.contains(bound), "{sentence}");
    };
    watched("4m", "agrees", "less than once in 8");
    // It may change several times during an experiment.
    watched("60s", "cannot_tell", "less than once in 20 s");
}

#[test]
fn cpus_that_take_turns_on_one_hardware_thread_are_found() {
    let record = measure(
        r#"
topology = "package:1 l3:1(size=32MB) core:4 pu:1"
[wiring]
stacked = ["1,3"]
"#,
        &["--wiring-only"],
    );
    check_verdict(&record, "stacked", "contradicted");
    let contradictions = record["contradictions"].as_array().unwrap();
    let measured = contradictions[0]["measured"].as_str().unwrap();
    assert!(measured.contains("CPUs {1,3} never ran"), "{measured}");
    assert_eq!(record["measured"]["latency_ns"][1][3], Value::Null);
    let honest = measure(HONEST, &["--wiring-only"]);
    let verdicts = honest["measured"]["verdicts"].as_array().unwrap();
    assert!(verdicts.iter().all(|v| v["level"] != "stacked"));
}

#[test]
fn a_system_that_ignores_affinity_gets_no_levels() {
    let record = measure(
        r#"
topology = "package:1 l3:1(size=32MB) core:8 pu:1"
[wiring]
ignores_affinity = true
"#,
        &["--wiring-only"],
    );
    let reason = record["measured"]["cannot_tell"].as_str().unwrap();
    assert!(reason.contains("did not stay"), "{reason}");
    check_verdict(&record, "llc", "cannot_tell");
    assert_eq!(record["contradictions"].as_array().unwrap().len(), 0);
}

/// Whether parallel pairs disturb each other or not. A sample of skipped pairs is verified.
#[test]
fn probing_192_cpus_takes_less_than_a_minute() {
    let reported = r#"topology = "package:2 [numa(memory=64GB)] l3:8(size=32MB) core:6 pu:2""#;
    for (wiring, min_skipped) in [("", 0), ("[wiring]\nparallel_disturbance = 1.4\n", 10_000)] {
        let record = measure(&format!("{reported}\n{wiring}"), &["--wiring-only"]);
        let effort = &record["measured"]["effort"];
        assert!(effort["spent_s"].as_f64().unwrap() <= 60.0, "{effort}");
        assert!(
            effort["pairs_skipped"].as_u64().unwrap() >= min_skipped,
            "{effort}"
        );
        assert!(effort["pairs_verified"].as_u64().unwrap() >= 30, "{effort}");
        assert_eq!(list_groups(&record, "smt").len(), 96);
        assert_eq!(list_groups(&record, "llc").len(), 16);
        assert_eq!(list_groups(&record, "package"), ["0-95", "96-191"]);
    }
}

#[test]
fn sixteen_cpus_take_less_than_a_second_of_probing() {
    let record = measure(
        r#"topology = "package:1 l3:2(size=32MB) core:4 pu:2""#,
        &["--wiring-only"],
    );
    let spent = record["measured"]["effort"]["spent_s"].as_f64().unwrap();
    assert!(spent <= 1.0, "{spent} s");
}

#[test]
fn measurements_that_a_short_budget_leaves_out_are_listed() {
    let record = measure(HONEST, &["--budget", "50ms"]);
    let effort = &record["measured"]["effort"];
    assert!(
        !effort["left_out"].as_array().unwrap().is_empty(),
        "{effort}"
    );
    assert!(effort["spent_s"].as_f64().unwrap() < 1.0, "{effort}");
}

/// Runs pinwise with this store; returns both streams as text.
fn run_with_store(store: &Path, arguments: &[&str]) -> (String, String) {
    let output = pinwise(store).args(arguments).output().unwrap();
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{arguments:?}: {err}");
    (out, err)
}

/// Arguments that compare on this machine.
fn compare_on(machine: &str) -> Vec<&str> {
    let options = split_words("compare --max-runs 6 --machine");
    [&options[..], &[machine, "--", "prog"]].concat()
}

/// Arguments that measure this machine.
fn measure_on(machine: &str) -> Vec<&str> {
    let options = split_words("topology --measure --wiring-only --machine");
    [&options[..], &[machine]].concat()
}

#[test]
fn a_measured_map_is_stored_and_used_by_compare() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let path = folder.path().join("machine.toml");
    std::fs::write(
        &path,
        r#"
topology = "package:1 l3:1(size=32MB) core:8 pu:1"
[workload.default]
base_s = 0.1
threads = 2
[wiring]
topology = "package:1 l3:2(size=16MB) core:2 pu:2"
"#,
    )
    .unwrap();
    let machine = format!("sim:{}", path.display());
    let compare = compare_on(&machine);
    let (_, before) = run_with_store(&store, &compare);
    assert!(!before.contains("measurement"), "{before}");
    run_with_store(&store, &measure_on(&machine));
    let (history, _) = run_with_store(&store, &["record", "history"]);
    assert!(
        history.contains("contradicted (SMT siblings): CPUs {0-1}"),
        "{history}"
    );
    let (shown, _) = run_with_store(&store, &["record", "show", "last"]);
    assert!(shown.contains("CONTRADICTED"), "{shown}");
    let (pairs, _) = run_with_store(&store, &["record", "show", "last", "--format", "csv"]);
    let mut lines = pairs.lines();
    assert_eq!(lines.next(), Some("a,b,latency_ns,is_measured"));
    assert_eq!(lines.count(), 8 * 7 / 2, "{pairs}");
    let (table, after) = run_with_store(&store, &compare);
    assert!(after.contains("one-per-core is cpu:0,2,4,6"), "{after}");
    assert!(table.contains("cpu:0-3"), "the first measured LLC: {table}");
}

/// The wiring changes between measurements, as if a hypervisor moved the CPUs.
#[test]
fn differing_maps_of_one_boot_are_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store.db");
    let path = folder.path().join("machine.toml");
    let machine = format!("sim:{}", path.display());
    let measure_with = |caches: usize| -> Value {
        let cores = 8 / caches;
        let description = format!(
            "topology = \"l3:1(size=32MB) core:8 pu:1\"\n[workload.default]\nbase_s = 0.1\nthreads = 2\n[wiring]\ntopology = \"l3:{caches}(size=16MB) core:{cores} pu:1\"\n"
        );
        std::fs::write(&path, description).unwrap();
        let measure = [&measure_on(&machine)[..], &["--format", "json"]].concat();
        let (out, _) = run_with_store(&store, &measure);
        serde_json::from_str(&out).unwrap()
    };
    check_verdict(&measure_with(2), "llc", "contradicted");
    let same = measure_with(2);
    check_verdict(&same, "llc", "contradicted");
    let notes = same["measured"]["notes"].to_string();
    assert!(
        notes.contains("An earlier map of this boot agrees"),
        "{notes}"
    );
    let other = measure_with(1);
    check_verdict(&other, "llc", "cannot_tell");
    check_verdict(&other, "placement", "contradicted");
    assert_eq!(other["contradictions"].as_array().unwrap().len(), 1);
    let verdicts = other["measured"]["verdicts"].to_string();
    let message =
        "Of 3 maps of this boot 1 agrees with the report and 2 contradict it: trust neither";
    assert!(verdicts.contains(message), "{verdicts}");
    let (shown, _) = run_with_store(&store, &["record", "show", "last"]);
    assert!(
        shown.contains("last-level caches: unstable; trust neither"),
        "{shown}"
    );
    // A later map still reports its own result.
    let again = measure_with(2)["measured"]["verdicts"].to_string();
    assert!(
        again.contains("Of 4 maps of this boot 1 agrees with the report and 3 contradict"),
        "{again}"
    );
    let compare = compare_on(&machine);
    let (_, notes) = run_with_store(&store, &compare);
    assert!(!notes.contains("by measurement"), "{notes}");
}
