//! Stored records are listed, shown, and found by a part of their ids.

use super::Stage;

/// A store with three records.
fn fill_store() -> Stage {
    let stage = Stage::new();
    for line in [
        "compare --machine sim:slow.toml --seed 1 --place os-default --place cpu:0 --max-runs 12 -- prog",
        "compare --machine sim:programs.toml --seed 3 --max-runs 20 --command './old --input big.dat' --command './new --input big.dat --with-many-more-options'",
        "compare --self --machine sim:same.toml --seed 1 -- prog",
    ] {
        stage.run_ok(line);
    }
    stage
}

#[test]
fn the_newest_record_is_first() {
    let stage = fill_store();
    stage.check_snapshot("history", "record history");
    let all = stage.run_for_json("record history");
    assert_eq!(all["records"].as_array().unwrap().len(), 3);
    assert_eq!(all["records"][0]["title"], "A/A: prog");
    assert_eq!(all["records"][0]["schema"], "pinwise.comparison/1");
    assert_eq!(all["records"][0]["complete"], true);
    let one = stage.run_for_json("record history --limit 1");
    assert_eq!(one["records"].as_array().unwrap().len(), 1);
    assert_eq!(one["records"][0], all["records"][0]);
}

#[test]
fn a_record_is_shown_in_full_as_verbose_prints_it() {
    let stage = Stage::new();
    let line = "compare --machine sim:share.toml --seed 1 --max-runs 12 -- prog";
    let answer = stage.run_ok(line);
    let last = answer.out.lines().last();
    assert!(
        last.is_some_and(|line| line.starts_with("→ Run: ")),
        "{answer}"
    );
    let printed = stage.run_ok(&format!("-v {line}"));
    let shown = stage.run_ok("record show last");
    assert_eq!(printed.out, shown.out);
    assert!(shown.err.is_empty(), "{shown}");
    assert!(answer.out.lines().count() < shown.out.lines().count());
}

#[test]
fn a_failed_experiment_is_kept_and_shown_as_failed() {
    let stage = Stage::new();
    let failed =
        stage.run("compare --machine sim:programs.toml --seed 3 --command old --command broken");
    assert_eq!(failed.status, 2, "{failed}");
    stage.check_snapshot("history-failed", "record history");
    stage.check_snapshot("show-failed", "record show last");
}

#[test]
fn records_are_found_by_the_beginning_or_end_of_their_id() {
    let stage = fill_store();
    let history = stage.run_for_json("record history");
    let id = history["records"][1]["id"].as_str().unwrap();
    let shown = stage.run_ok(&format!("record show {id}"));
    assert!(shown.out.starts_with("./old --input big.dat"), "{shown}");
    for part in [&id[..id.len() - 2], &id[id.len() - 8..]] {
        let found = stage.run_ok(&format!("record show {part}"));
        assert_eq!(found.out, shown.out);
    }
    let several = stage.run("record show 2");
    assert_eq!(several.status, 2);
    assert_eq!(
        several.err,
        "error: '2' could be any of YYYYMMDD-HHMMSS-xxxxxxxx, YYYYMMDD-HHMMSS-xxxxxxxx, YYYYMMDD-HHMMSS-xxxxxxxx\n"
    );
    stage.run_ok("compare --self --machine sim:same.toml --seed 1 --max-runs 6 -- prog");
    let many = stage.run("record show 2");
    assert!(many.err.ends_with("xxxxxxxx and others\n"), "{many}");
}

#[test]
fn empty_and_missing_stores_are_reported() {
    let stage = Stage::new();
    let lines = [
        "record",
        "history",
        "record history --format json",
        "record show last",
        "record show nothing",
        "record show last --format csv",
        "record history --store none",
        "record history --store ./missing.db",
        "record history --store missing",
    ];
    stage.check_transcript("empty-store", &lines);
    // Without a store the experiment is still printed.
    let line = "compare --machine sim:slow.toml --seed 1 --max-runs 8 --store none -- prog";
    stage.run_ok(line);
    assert!(
        stage.run_for_json("record history")["records"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}
