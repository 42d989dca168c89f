//! A fleet's records as text, and its report as a page.

use std::path::Path;

use serde_json::json;

use crate::support::{pinwise, texts};

const FLEET: &str = "sim-200-4";

/// What pinwise prints in a folder that has the store.
fn run(folder: &Path, arguments: &[&str]) -> String {
    let mut command = pinwise(&folder.join("store.db"));
    let output = command.current_dir(folder).args(arguments).output();
    let output = output.unwrap();
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{arguments:?}: {err}");
    out
}

/// A store with a simulated fleet and its report, which stands in a page, too;
/// the report as it was printed.
fn reported(folder: &Path) -> String {
    run(
        folder,
        &["fleet", "simulate", "--nodes", "200", "--seed", "4"],
    );
    run(folder, &["fleet", "report", FLEET, "-o", "first.html"])
}

#[test]
fn what_a_fleet_left_is_shown_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let printed = reported(folder.path());
    let show = |id: &str| run(folder.path(), &["record", "show", id]);
    assert_eq!(show(&format!("{FLEET}.report")), printed);
    let plan = show(FLEET);
    assert!(plan.starts_with("Fleet sim-200-4: 200 nodes asked, by simulated\n"));
    assert!(plan.contains("  smt-off: 1 node ("), "{plan}");
    let node = show(&format!("{FLEET}.n017"));
    assert!(
        node.starts_with("n017 of fleet sim-200-4: 5 of 5 steps done\n"),
        "{node}"
    );
    assert!(node.contains("\nSettings\n") && node.contains("memory latency"));
    for text in [printed, plan, node] {
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn a_page_holds_the_report_that_the_store_has() {
    let folder = tempfile::tempdir().unwrap();
    reported(folder.path());
    let id = format!("{FLEET}.report");
    run(
        folder.path(),
        &["record", "report", &id, "-o", "again.html"],
    );
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("first.html") == read("again.html"));
    assert!(read("first.html").contains("pinwise.fleet-report/1"));
    let history = run(
        folder.path(),
        &["--format", "json", "record", "history", "--limit", "3"],
    );
    let history: serde_json::Value = serde_json::from_str(&history).unwrap();
    let lines = history["records"].as_array().unwrap();
    let figures = |schema: &str| {
        let line = lines.iter().find(|line| line["schema"] == schema);
        line.unwrap()["figures"].as_array().unwrap().len()
    };
    // Ten thousand nodes are listed without their figures.
    assert_eq!(figures("pinwise.fleet-report/1"), 2);
    assert_eq!(figures("pinwise.fleet-node/1"), 0);
}

#[test]
fn no_string_of_a_node_leaves_the_data_of_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = "</script><img src=x onerror=alert(1)>\u{2028}\u{1b}[2J";
    let report = json!({
        "schema": "pinwise.fleet-report/1", "id": "f.report", "fleet": "f", "sentence": hostile,
        "groups": [{"name": hostile, "identity": {hostile: hostile}, "figures": []}],
        "outliers": [{"node": hostile, "setting": hostile, "sentence": hostile}],
    });
    let node = json!({
        "schema": "pinwise.fleet-node/1", "id": "f.n", "node": hostile,
        "settings": {hostile: hostile}, "steps": [{"name": hostile, "why": hostile}],
    });
    std::fs::write(folder.path().join("report.json"), report.to_string()).unwrap();
    std::fs::write(folder.path().join("node.json"), node.to_string()).unwrap();
    std::fs::write(
        folder.path().join("plain.json"),
        r#"{"schema":"pinwise.fleet/1"}"#,
    )
    .unwrap();
    let page = |inputs: &[&str]| {
        run(
            folder.path(),
            &[&["record", "report", "-o", "-"], inputs].concat(),
        )
    };
    let (printed, plain) = (page(&["report.json", "node.json"]), page(&["plain.json"]));
    assert!(printed.contains("onerror=alert(1)"));
    for markup in ["</script", "<img", "\u{2028}", "\u{1b}"] {
        let times = |page: &str| page.matches(markup).count();
        assert_eq!(times(&printed), times(&plain), "{markup:?}");
    }
}
