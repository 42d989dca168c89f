//! `compare --trace` shows what the scheduler did, on machines whose scheduler is known.

use serde_json::Value;

use super::Stage;

const LINE: &str = "compare --machine sim:blind.toml --seed 5 --max-runs 12";

#[test]
fn the_report_has_what_the_scheduler_did() {
    let stage = Stage::new();
    let places = "--place os-default --place cpu:0,2 --place one-core";
    stage.run_ok(&format!(
        "{LINE} {places} --trace --export-markdown r.md -- prog"
    ));
    super::check_text("trace-compared-markdown", &stage.read("r.md"));
}

#[test]
fn runs_are_the_same_with_traces() {
    let stage = Stage::new();
    let arms = |more: &str| {
        let line = format!("{LINE} --place os-default --place one-core {more} -- prog");
        let mut record = stage.run_for_json(&line);
        for arm in record["arms"].as_array_mut().unwrap() {
            arm["trace"] = Value::Null;
        }
        record["arms"].clone()
    };
    assert_eq!(arms("--trace"), arms(""));
}

#[test]
fn the_record_has_the_figures_of_each_arm() {
    let stage = Stage::new();
    let record = stage.run_for_json(&format!(
        "{LINE} --place os-default --place one-core --place cpu:3 --trace -- prog"
    ));
    let trace = |arm: usize| &record["arms"][arm]["trace"];
    assert_eq!(trace(0)["tier"], "simulated");
    // Threads on one CPU never migrate; those on one core share it.
    assert_eq!(record["arms"][2]["name"], "cpu:3");
    for level in ["smt", "core", "llc", "numa", "package"] {
        assert_eq!(trace(2)["totals"]["migrations"][level], 0, "{level}");
    }
    let percent = |arm: usize| {
        trace(arm)["avoidable_smt_sharing"]["percent"]
            .as_f64()
            .unwrap()
    };
    assert!(percent(1) > 90.0 && percent(2) < 1.0, "{record}");
    let by = &trace(1)["avoidable_smt_sharing"]["by"];
    assert!(by["mask_s"].as_f64() > by["scheduler_s"].as_f64(), "{by}");
    assert!(
        trace(2)["waits"]["total_s"].as_f64().unwrap() > 0.3,
        "{}",
        trace(2)
    );
    let package = trace(0)["totals"]["migrations"]["package"]
        .as_u64()
        .unwrap();
    assert!(package > 10, "{}", trace(0)["totals"]);
}

#[test]
fn without_a_scheduler_the_experiment_is_kept_without_traces() {
    let stage = Stage::new();
    let line = "compare --machine sim:share.toml --seed 1 --max-runs 8 --place os-default --place one-core --trace -- prog";
    let ran = stage.run_ok(line);
    assert!(ran.out.contains("--trace: no arm could be traced"), "{ran}");
    assert!(!ran.out.contains("What the scheduler did"), "{ran}");
}

#[test]
fn only_finalists_of_many_arms_are_traced() {
    let stage = Stage::new();
    let places = [
        "os-default",
        "one-core",
        "cpu:0,2",
        "cpu:0,4",
        "cpu:1,3",
        "cpu:0,1,4",
        "cpu:2,5,7",
        "cpu:0-5",
    ];
    let places = places.map(|place| format!("--place {place}")).join(" ");
    let record = stage.run_for_json(&format!("{LINE} {places} --trace -- prog"));
    let arms = record["arms"].as_array().unwrap();
    let dropped = arms.iter().filter(|arm| arm["eliminated"] == true).count();
    assert!(dropped > 0, "{record}");
    for arm in arms {
        let is_traced = !arm["trace"].is_null();
        assert_eq!(is_traced, arm["eliminated"] == false, "{}", arm["name"]);
    }
}
