//! An arm that does not end within the time-out is slower by at least a known ratio.

use super::Stage;

const HANGS: &str = "topology = \"package:1 core:2 pu:1\"\n[workload.default]\nbase_s = 0.2\n\
    [workload.hang]\nbase_s = 1000.0\n[workload.late]\nbase_s = 0.3\n[noise]\nsd = 0.01\n";

fn new_stage() -> Stage {
    let stage = Stage::new();
    stage.write("hangs.toml", HANGS);
    stage
}

const COMPARE: &str = "compare --machine sim:hangs.toml --seed 1";

#[test]
fn an_arm_that_hangs_is_reported() {
    let stage = new_stage();
    let lines = [
        format!("{COMPARE} --command old --command hang"),
        format!("{COMPARE} --command hang --command old --timeout 5s --fail-if-slower 5%"),
        format!("{COMPARE} --command old --command hang --timeout 5s --fail-if-slower 5%"),
        "record show last".to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    stage.check_transcript("timed-out", &lines);
    let markdown = stage.run_ok("record show last --format markdown").out;
    assert!(markdown.contains("| > 5.00 s | ≥ 2"), "{markdown}");
    assert!(
        markdown.contains("its run did not end within 5 s"),
        "{markdown}"
    );
}

#[test]
fn the_record_has_the_bound_and_no_interval() {
    let stage = new_stage();
    let record = stage.run_for_json(&format!("{COMPARE} --command old --command hang"));
    assert_eq!(record["verdict"]["kind"], "best");
    assert_eq!(record["best"], "old");
    assert_eq!(record["contrasts"].as_array().map(Vec::len), Some(0));
    let arm = &record["arms"][1];
    assert!(arm["invalid"].is_null(), "{arm}");
    assert_eq!(arm["standing"], "slower");
    assert_eq!(arm["timed_out"]["limit_s"], 60.0);
    let at_least = arm["timed_out"]["at_least"].as_f64().unwrap();
    assert!((280.0..320.0).contains(&at_least), "{at_least}");
}

#[test]
fn other_arms_are_compared_if_one_hangs() {
    let stage = new_stage();
    let line = format!("{COMPARE} --command old --command prog --command hang --timeout 5s");
    let ran = stage.run_ok(&line);
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("All arms are the same within ±1.0 %"),
        "{ran}"
    );
    assert!(text.contains("hang is at least 2"), "{ran}");
    assert!(text.contains("(its run did not end within 5 s)"), "{ran}");
    let gate = stage.run(&format!("{line} --fail-if-slower 5%"));
    assert_eq!(gate.status, 1, "{gate}");
}

/// A run may be late by chance, and a time-out says nothing about other metrics.
#[test]
fn a_time_out_near_the_other_arm_or_of_another_metric_proves_nothing() {
    let stage = new_stage();
    for options in [
        "--timeout 250ms --command late",
        "--timeout 5s --metric cpu --command hang",
    ] {
        let ran = stage.run(&format!("{COMPARE} {options} --command old --baseline old"));
        assert_eq!(ran.status, 2, "{ran}");
        assert!(ran.err.contains("took longer than its time-out"), "{ran}");
    }
}
