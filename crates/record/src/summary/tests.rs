//! What lists show of a record.

use super::*;
use serde_json::json;

#[test]
fn a_comparison_is_summarised() {
    let record = json!({
        "schema": "pinwise.comparison/1", "tags": ["nightly"],
        "host": {"cpu_model": "EPYC", "shape_hash": "ab", "kernel": "6.1", "microcode": null},
        "metric": {"name": "wall", "unit": "s"},
        "arms": [
            {"name": "os-default", "command": ["xz", "-k"],
             "estimate": {"value": 0.5, "low": 0.4, "high": 0.6}},
            {"name": "cpu:0", "command": ["xz", "-k"], "estimate": null},
        ],
    });
    let summary = Summary::from_json(&record.to_string());
    assert_eq!(summary.tags, ["nightly"]);
    assert_eq!(
        summary.subject.as_deref(),
        Some("comparison · xz -k · wall")
    );
    assert_eq!(
        summary.machine.as_deref(),
        Some("EPYC, shape ab, kernel 6.1")
    );
    assert_eq!(summary.figures.len(), 1);
    assert_eq!(summary.figures[0].low, Some(0.4));
}

#[test]
fn arms_of_a_comparison_have_the_change_that_it_judged() {
    let mut record = json!({
        "schema": "pinwise.comparison/1", "study": "compare", "best": "cpu:0",
        "baseline": "os-default", "metric": {"name": "wall", "unit": "s"},
        "verdict": {"kind": "best", "not_recommended": null},
        "arms": [
            {"name": "os-default", "estimate": {"value": 0.5}},
            {"name": "cpu:0", "estimate": {"value": 0.4}},
        ],
        "contrasts": [{"arm": "cpu:0", "verdict": "faster",
            "effect": {"value": -21.0, "low": -24.0, "high": -18.0}}],
    });
    let summary = Summary::read(&record);
    assert_eq!(summary.best.as_deref(), Some("cpu:0"));
    assert_eq!(summary.baseline.as_deref(), Some("os-default"));
    assert_eq!(summary.figures[0].change, None);
    let change = summary.figures[1].change.as_ref().unwrap();
    assert_eq!((change.value, change.low), (-21.0, Some(-24.0)));
    record["verdict"]["not_recommended"] = json!("failed");
    let summary = Summary::read(&record);
    assert_eq!((summary.best, summary.outcome), (None, None));
    record["study"] = json!("aa");
    let alarm = Summary::read(&record).outcome;
    assert_eq!(alarm.as_deref(), Some("false_alarm"));
    record["contrasts"][0]["verdict"] = json!("undecided");
    let quiet = Summary::read(&record).outcome;
    assert_eq!(quiet.as_deref(), Some("no_alarm"));
}

#[test]
fn a_machine_is_summarised() {
    let record = json!({
        "schema": "pinwise.topology/1",
        "measured": {
            "levels": [{"kind": "smt", "inside_ns": 14.0}],
            "ladder": {"plateaus": [
                {"level": 1, "latency_ns": 1.3}, {"level": null, "latency_ns": 88.0},
            ]},
            "bandwidth": [
                {"stream": "read", "cpus": "0", "node": null, "gb_per_s": {"value": 12.0}},
                {"stream": "read", "cpus": "0-3", "node": null, "gb_per_s": {"value": 40.0}},
                {"stream": "read", "cpus": "0-3", "node": 1, "gb_per_s": {"value": 20.0}},
            ],
            "pause": [{"cpu": 0, "pause_ns": {"value": 20.0}}],
        },
    });
    let figures = Summary::read(&record).figures;
    let listed: Vec<(&str, f64)> = figures.iter().map(|f| (f.name.as_str(), f.value)).collect();
    assert_eq!(
        listed,
        [
            ("latency within smt", 14.0),
            ("memory latency", 88.0),
            ("read bandwidth, 1 CPU", 12.0),
            ("read bandwidth, 4 CPUs", 40.0),
            ("spin-wait hint", 20.0),
        ]
    );
}

#[test]
fn reports_of_fleets_have_figures_and_nodes_have_none() {
    let report = json!({"schema": "pinwise.fleet-report/1", "host": "head", "complete": 7,
        "tags": ["fleet:f"], "outliers": [{"node": "n2"}, {"node": "n2"}, {"node": "n4"}]});
    let summary = Summary::read(&report);
    let listed: Vec<(&str, f64)> = summary
        .figures
        .iter()
        .map(|f| (f.name.as_str(), f.value))
        .collect();
    assert_eq!(listed, [("outlier nodes", 2.0), ("complete nodes", 7.0)]);
    assert_eq!(summary.tags, ["fleet:f"]);
    assert_eq!(summary.machine, None);
    let node = json!({"schema": "pinwise.fleet-node/1", "host": {"cpu_model": "EPYC"},
        "figures": [{"step": "wiring", "name": "memory latency", "unit": "ns", "value": 90}]});
    let summary = Summary::read(&node);
    assert!(summary.figures.is_empty());
    assert_eq!(summary.machine.as_deref(), Some("EPYC"));
}

#[test]
fn programs_are_those_of_the_arms_each_once() {
    let arm = |program: &str| json!({"name": program, "workload": {"program": program}});
    let summary = Summary::read(&json!({"schema": "pinwise.comparison/1",
        "arms": [arm("ab"), arm("ab"), arm("cd"), {"workload": {"program": null}}]}));
    assert_eq!(summary.program.as_deref(), Some("ab, cd"));
    let summary = Summary::read(&json!({"schema": "pinwise.search/1", "arms": [{}],
        "workload": {"program": "ef"}}));
    assert_eq!(summary.program.as_deref(), Some("ef"));
    let unknown = Summary::read(&json!({"schema": "pinwise.search/1", "workload": {}}));
    assert_eq!(unknown.program, None);
}

#[test]
fn traces_of_different_tiers_are_different_questions() {
    let subject = |tier: &str| {
        let record = json!({"schema": "pinwise.trace/1", "tier": tier,
                            "source": {"command": ["make", "-j2"]}});
        Summary::read(&record).subject
    };
    assert_eq!(subject("proc").as_deref(), Some("trace · make -j2 · proc"));
    assert_ne!(subject("proc"), subject("bpf"));
}

#[test]
fn traces_of_different_processes_are_different_questions() {
    let subject = |name: &str| {
        let source = json!({"kind": "process", "pid": 7, "name": name});
        let record = json!({"schema": "pinwise.trace/1", "tier": "bpf", "source": source});
        Summary::read(&record).subject
    };
    assert_eq!(subject("nginx").as_deref(), Some("trace · nginx · bpf"));
}

#[test]
fn a_gate_has_the_change_of_each_benchmark() {
    let change = json!({"unit": "%", "value": 3.0, "low": 1.0, "high": 5.0});
    let summary = Summary::read(
        &json!({"schema": "pinwise.gate/1", "suite": "bench.toml", "benchmarks": [
            {"name": "parse", "effect": change}, {"name": "gone", "effect": null}],
            "verdict": {"decision": "fail", "sentence": "slower"}}),
    );
    assert_eq!(summary.outcome.as_deref(), Some("fail"));
    assert_eq!(summary.subject.as_deref(), Some("gate · bench.toml"));
    let [parse] = &summary.figures[..] else {
        panic!("{:?}", summary.figures)
    };
    assert_eq!((parse.name.as_str(), parse.unit.as_str()), ("parse", "%"));
    assert_eq!((parse.value, parse.high), (3.0, Some(5.0)));
}

#[test]
fn a_summary_of_no_record_is_empty() {
    assert_eq!(Summary::from_json("{\"schema\":"), Summary::default());
    assert_eq!(Summary::from_json("[1]"), Summary::default());
    let strange = Summary::from_json("{\"schema\":\"pinwise.trace/9\",\"totals\":[],\"tags\":3}");
    assert_eq!(strange.tags, Vec::<String>::new());
}

#[test]
fn skipped_fields_are_not_in_the_summary() {
    let interval = json!({"value": 2.0, "low": 1.0, "high": 3.0});
    let records = [
        json!({"schema": "pinwise.gate/1", "suite": "s", "benchmarks": [{"name": "a", "effect": interval}]}),
        json!({"schema": "pinwise.bench/1", "suite": "quick", "kernels": [
            {"kernel": "fft", "baseline": "1", "cells": [{"name": "1", "seconds": interval}]}]}),
        json!({"schema": "pinwise.topology/1", "shape_hash": "ab", "machine": {"kernel": "6"},
            "measured": {"levels": [{"kind": "llc", "inside_ns": 3.5}]}}),
        json!({"schema": "pinwise.trace/1", "source": {"command": ["a"]}, "timeline": [1],
            "totals": {"cpu_s": 1, "migrations": {"a": 2}}, "waits": {"total_s": 1},
            "avoidable_smt_sharing": {"percent": 3}}),
        json!({"schema": "pinwise.search/1", "command": ["a"], "best": "x",
            "metric": {"name": "wall", "unit": "s"},
            "predictions": [{"arm": "x", "predicted": 4.0}]}),
        json!({"schema": "pinwise.profile/1", "total": {"cpu_s": 1}, "tags": ["t"]}),
        json!({"schema": "pinwise.spin-pause/1", "cpus": [{"pause_ns": 40}]}),
        json!({"schema": "pinwise.jitter/1", "cpus": [{"longest_us": 40, "lost_share": 0.1}]}),
        json!({"schema": "pinwise.fleet-report/1", "host": "head", "complete": 7,
            "outliers": [{"node": "n2"}, {"node": "n2"}, {"node": "n4"}]}),
    ];
    for record in records {
        let summary = Summary::from_json(&record.to_string());
        assert_eq!(summary, Summary::read(&record), "{record}");
        assert!(!summary.figures.is_empty(), "{record}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_summarised_without_panic(text in "\\PC{0,60}") {
        let _ = Summary::from_json(&text);
    }
}
