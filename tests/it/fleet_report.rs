//! Simulated fleets: their stored records, `fleet report` and `fleet diff`.

use serde_json::Value;

use crate::fleet::Site;
use crate::support::{decode_output, split_words};

/// A store with a simulated fleet `f`.
fn simulate(options: &str) -> Site {
    let site = Site::new("");
    site.run_line(&format!("fleet simulate --id f {options}"));
    site
}

#[test]
fn a_simulated_fleet_is_reported_stored_and_shown() {
    let site = Site::new("");
    let out = site.run_line("fleet simulate --nodes 200 --seed 7 --faults 5%");
    let start = "Stored fleet sim-200-7: 200 nodes with 50 figures each.\n";
    assert!(out.starts_with(start), "{out}");
    assert!(out.contains("Planted 10 faults:\n"), "{out}");
    let report = site.run_line("fleet report -o first.html");
    let first = report.lines().next().unwrap();
    assert!(
        first.contains("of 200 nodes differ from their peers: n"),
        "{first}"
    );
    for part in [
        "Groups of similar nodes",
        "Outliers",
        "Record sim-200-7.report.",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert_eq!(site.run_line("record show sim-200-7.report"), report);
    let plan = site.run_line("record show sim-200-7");
    let start = "Fleet sim-200-7: 200 nodes requested via simulated\n";
    assert!(plan.starts_with(start), "{plan}");
    assert!(plan.contains("  smt-off: "), "{plan}");
    let node = site.run_line("record show sim-200-7.n017");
    assert!(node.starts_with("Node n017 of fleet sim-200-7\n"), "{node}");
    let end = "5 of 5 steps done.\n→ Compare it with its peers: pinwise fleet report sim-200-7";
    assert!(node.trim_end().ends_with(end), "{node}");
    assert!(node.contains("\nSettings\n") && node.contains("memory latency"));
    for line in out.lines().chain(report.lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for text in [out, report, plan, node] {
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    // The page is made from the record. A second report replaces the first record.
    site.run_line("record report sim-200-7.report -o again.html");
    let read = |name: &str| std::fs::read_to_string(site.path(name)).unwrap();
    assert!(read("first.html") == read("again.html"));
    assert!(read("first.html").contains("pinwise.fleet-report/1"));
    assert!(site.run_line("fleet report -o -").starts_with("<!"));
    let kept = site.run_for_json("record history --kind fleet-report");
    assert_eq!(kept["total"], 1);
    // Nodes, of which there may be ten thousand, are listed without figures.
    let count_figures = |line: &Value| line["figures"].as_array().unwrap().len();
    assert_eq!(count_figures(&kept["records"][0]), 2);
    let nodes = site.run_for_json("record history --kind fleet-node --limit 1");
    assert_eq!(nodes["total"], 200);
    assert_eq!(count_figures(&nodes["records"][0]), 0);
}

#[test]
fn an_existing_fleet_is_not_replaced() {
    let site = simulate("--nodes 3 --seed 1");
    let before = site.run_for_json("record show f.n002");
    let again = "fleet simulate --id f --nodes 3 --seed 1 --noise 9%";
    let err = site.check_refusal(&split_words(again));
    assert!(err.contains("'f'") && err.contains("--id"), "{err}");
    assert_eq!(site.run_for_json("record show f.n002"), before);
    // A fleet whose id begins in the same way is another one.
    let out = site.run_line("fleet simulate --id f1 --nodes 3 --seed 1 --faults 0");
    assert!(out.ends_with("No fault was planted.\n"), "{out}");
    assert_eq!(site.run_for_json("record history")["total"], 8);
}

#[test]
fn reports_fail_on_outliers_and_missing_nodes() {
    let site = simulate("--nodes 64 --seed 1 --faults 10%");
    let report = |on: &str| {
        let output = site.run(&["fleet", "report", "--fail-on", on]);
        let (out, err) = decode_output(&output);
        (output.status.code(), out, err)
    };
    let (status, _, err) = report("outlier");
    assert_eq!(status, Some(1));
    assert!(err.contains("--fail-on outlier: "), "{err}");
    assert_eq!(report("missing").0, Some(0));
    // A node whose record is gone is missing.
    execute_sql(&site, "DELETE FROM record WHERE id = 'f.n001'");
    let (status, out, err) = report("missing");
    assert_eq!(status, Some(1), "{err}");
    let words = "--fail-on missing: 1 node without a record";
    assert!(err.contains(words), "{err}");
    assert!(out.contains("1 of 64 nodes has no record"), "{out}");
}

/// Changes one record directly in the store.
fn execute_sql(site: &Site, statement: &str) {
    let store = rusqlite::Connection::open(site.path("store.db")).unwrap();
    assert_eq!(store.execute(statement, []).unwrap(), 1, "{statement}");
}

#[test]
fn two_kinds_of_servers_are_compared() {
    let site = simulate("--nodes 200 --seed 1 --faults 0%");
    let diff = ["fleet", "diff", "f/1", "f/AMD EPYC 97", "--format", "json"];
    let found: Value = serde_json::from_str(&site.run_for_text(&diff)).unwrap();
    assert_eq!(found["schema"], "pinwise.fleet-diff/1");
    let figures = found["figures"].as_array().unwrap();
    let pause = figures.iter().find(|figure| figure["name"] == "PAUSE");
    let ratio = pause.unwrap()["ratio"].as_f64().unwrap();
    assert!((1.8..2.4).contains(&ratio), "{pause:?}");
    let mut settings = found["settings"].as_array().unwrap().iter();
    assert!(settings.any(|setting| setting["name"] == "cpu"));
    let out = site.run_line("fleet diff f/1 f/2");
    assert!(out.contains("Figures, the largest change first"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
}

#[test]
fn records_that_do_not_fit_are_reported_and_left_out() {
    let site = simulate("--nodes 16 --seed 1 --faults 0%");
    let replace = |id: &str, from: &str, to: &str| {
        let set = format!("body = replace(body, '{from}', '{to}')");
        execute_sql(&site, &format!("UPDATE record SET {set} WHERE id = '{id}'"));
    };
    replace("f.n003", "pinwise.fleet-node/1", "pinwise.fleet-node/9");
    replace("f.n005", "\"n005\"", "\"n\\u001b[31m<img src=x>\"");
    let (out, err) = decode_output(&site.run(&["fleet", "report", "f"]));
    let flat = out.split_whitespace().collect::<Vec<&str>>().join(" ");
    let words = "1 record could not be used: f.n003 (";
    assert!(flat.contains(words), "{out}{err}");
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'));
}
