//! Results for other programs: the record as JSON, CSV, Markdown, and in hyperfine's layout.

use serde_json::Value;

use super::{Stage, check_text};

const LINE: &str = "compare --machine sim:slow.toml --seed 1 --place os-default --place cpu:0 --max-runs 12 --tag night --tag build=17";

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_record_has_verdict_figures_and_runs() {
    let stage = Stage::new();
    let record = stage.run_for_json(&format!("{LINE} -- prog"));
    assert_eq!(record["schema"], "pinwise.comparison/1");
    assert_eq!(record["seed"], 1);
    assert_eq!(record["tags"], serde_json::json!(["night", "build=17"]));
    assert_eq!(record["stopped"], "precision");
    assert_eq!(record["verdict"]["kind"], "leave_alone");
    assert_eq!(record["best"], "os-default");
    let arm = &record["arms"][1];
    assert_eq!(arm["name"], "cpu:0");
    assert_eq!(arm["command"], serde_json::json!(["prog"]));
    assert_eq!(arm["cpus"], "0");
    let blocks = record["blocks"].as_u64().unwrap();
    assert_eq!(arm["runs"].as_array().unwrap().len() as u64, blocks);
    // Figures that a simulated machine does not know are null, never 0.
    for key in ["migrations", "context_switches", "cycles", "foreign_cpu_s"] {
        assert!(arm["runs"][0][key].is_null(), "{key}");
    }
    let contrast = &record["contrasts"][0];
    for (low, high) in [("low", "ratio"), ("ratio", "high")] {
        assert!(contrast[low].as_f64() < contrast[high].as_f64());
    }
    assert_eq!(contrast["verdict"], "slower");
    assert!(contrast["sentence"].as_str().unwrap().contains("cpu:0"));
}

#[test]
fn every_export_is_written_and_can_be_written_again() {
    let stage = Stage::new();
    let ran = stage.run_ok(&format!(
        "{LINE} --export-json r.json --export-csv r.csv --export-markdown r.md --export-hyperfine h.json -- prog"
    ));
    ran.check_form();
    for (form, file) in [
        ("json", "r.json"),
        ("csv", "r.csv"),
        ("markdown", "r.md"),
        ("hyperfine", "h.json"),
    ] {
        let line = format!("record show last --format {form}");
        stage.run_ok(&format!("{line} -o again"));
        assert_eq!(stage.read("again"), stage.read(file), "{form}");
        let printed = stage.command(&format!("{line} -o -")).output().unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), stage.read(file));
    }
    stage.run_ok("record report last -o page.html");
    stage.run_ok("record show last --format html -o again");
    assert_eq!(stage.read("again"), stage.read("page.html"));
    check_text("export-markdown", &stage.read("r.md"));
    check_csv_has_a_line_per_run(&stage);
    check_hyperfine_has_what_its_scripts_read(&stage);
}

fn check_csv_has_a_line_per_run(stage: &Stage) {
    let record = parse(&stage.read("r.json"));
    let mut reader = csv::Reader::from_path(stage.folder.path().join("r.csv")).unwrap();
    let headers = reader.headers().unwrap().clone();
    for column in ["arm", "block", "order", "wall_s", "user_s", "exit", "value"] {
        assert!(headers.iter().any(|header| header == column), "{column}");
    }
    let rows = reader.records().map(Result::unwrap).count();
    assert_eq!(rows as u64, 2 * record["blocks"].as_u64().unwrap());
}

fn check_hyperfine_has_what_its_scripts_read(stage: &Stage) {
    let results = parse(&stage.read("h.json"));
    let results = results["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 2);
    for result in results {
        let times = result["times"].as_array().unwrap();
        assert_eq!(times.len(), result["exit_codes"].as_array().unwrap().len());
        for key in ["mean", "stddev", "median", "user", "system", "min", "max"] {
            assert!(result[key].as_f64().unwrap() > 0.0, "{key}");
        }
        assert!(result["command"].is_string());
    }
}

#[test]
fn a_failed_experiment_is_printed_as_json() {
    let ran = Stage::new().run(
        "compare --machine sim:programs.toml --seed 1 --command broken --command broken --format json",
    );
    assert_eq!(ran.status, 2, "{ran}");
    assert_eq!(parse(&ran.out)["stopped"], "failed");
    assert_eq!(parse(&ran.out)["contrasts"], serde_json::json!([]));
    assert!(ran.err.contains("error: No arm could be measured"), "{ran}");
}
