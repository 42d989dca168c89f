//! Field reports are reproduced on simulated machines.

use super::Stage;

#[test]
fn a_report_is_simulated_stored_and_shown_again() {
    let stage = Stage::new();
    let line = "reproduce hyperthread-fill --simulated --seed 1";
    let printed = stage.check_snapshot("reproduce-hyperthread-fill", line);
    assert_eq!(printed.out, stage.run_ok("record show last").out);
    let history = stage.run_for_json("record history --limit 1");
    assert_eq!(history["records"][0]["schema"], "pinwise.reproduction/1");
    let csv = stage.run("record show last --format csv");
    assert!(csv.err.contains("--format text, json or html"), "{csv}");
}

#[test]
fn claims_have_all_fields_and_are_counted() {
    let stage = Stage::new();
    let record = stage.run_for_json("reproduce --all --simulated --seed 2");
    let reports = record["reports"].as_array().unwrap();
    assert_eq!(reports.len(), 5);
    let mut verdicts = std::collections::BTreeMap::new();
    for report in reports {
        for experiment in report["experiments"].as_array().unwrap() {
            for claim in experiment["claims"].as_array().unwrap() {
                for field in ["claim", "reported", "measured", "verdict", "why"] {
                    assert!(claim.get(field).is_some(), "{claim}");
                }
                let verdict = claim["verdict"].as_str().unwrap().to_owned();
                *verdicts.entry(verdict).or_insert(0u64) += 1;
            }
        }
    }
    assert_eq!(
        verdicts["reproduced"],
        record["counts"]["reproduced"].as_u64().unwrap()
    );
    assert_eq!(
        verdicts["given"],
        record["counts"]["given"].as_u64().unwrap()
    );
}
