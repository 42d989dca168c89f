//! What is done with stored records: narrowed, labelled, compared, removed,
//! written as Parquet.

use super::{Stage, check};

const SLOW: &str = "compare --machine sim:slow.toml --place os-default --place cpu:0 --max-runs 12";
const SAME: &str = "compare --machine sim:same.toml --place os-default --place cpu:0 --max-runs 12";

/// Three records: two of `prog`, one of them tagged, and a search.
fn filled() -> Stage {
    let stage = Stage::new();
    stage.succeed(&format!("{SLOW} --seed 1 --tag nightly -- prog --fast"));
    stage.succeed(&format!("{SAME} --seed 2 -- prog"));
    stage.succeed("search --machine sim:share.toml --threads 2 --max-runs 12 --seed 3 -- other");
    stage
}

fn ids(stage: &Stage, line: &str) -> Vec<String> {
    let found = stage.json(line);
    let records = found["records"].as_array().unwrap().iter();
    let ids: Vec<String> = records
        .map(|r| r["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(found["total"].as_u64().unwrap() >= ids.len() as u64);
    ids
}

#[test]
fn the_history_is_narrowed() {
    let stage = filled();
    let all = ids(&stage, "history");
    assert_eq!(all.len(), 3);
    for (options, wanted) in [
        ("--kind search", vec![&all[0]]),
        ("--kind pinwise.search/1", vec![&all[0]]),
        ("--kind comparison", vec![&all[1], &all[2]]),
        ("--tag nightly", vec![&all[2]]),
        ("--tag night", vec![]),
        ("--host sim:same.toml", vec![&all[1]]),
        ("--text 'FAST prog'", vec![&all[2]]),
        ("--text other --kind comparison", vec![]),
    ] {
        assert_eq!(
            ids(&stage, &format!("history {options}"))
                .iter()
                .collect::<Vec<_>>(),
            wanted,
            "{options}"
        );
    }
    let tagged = &stage.json("history --tag nightly")["records"][0];
    assert_eq!(tagged["tags"], serde_json::json!(["nightly"]));
    assert_eq!(tagged["figures"][1]["name"], "cpu:0");
    assert_eq!(tagged["subject"], "comparison · prog --fast · wall");
    let text: String = [
        "history --tag nightly",
        "history --limit 1",
        "history --text no-such-word",
        "history --kind comparision",
    ]
    .iter()
    .map(|line| {
        let ran = stage.run(line);
        ran.check_form();
        ran.to_string()
    })
    .collect();
    check("history-narrowed", &text);
}

#[test]
fn tags_are_changed_and_told() {
    let stage = filled();
    let text: String = [
        "tag last",
        "tag last --add nightly --add 'before upgrade'",
        "tag last --add nightly --remove no-such",
        "tag last --remove nightly",
        "tag last --add ''",
        "tag last --add \"a\tb\"",
        "tag none --add x",
        "tag",
    ]
    .iter()
    .map(|line| {
        let ran = stage.run(line);
        ran.check_form();
        ran.to_string()
    })
    .collect();
    check("tag", &text);
    assert_eq!(ids(&stage, "history --tag 'before upgrade'").len(), 1);
    assert_eq!(
        stage.json("show last")["tags"],
        serde_json::json!(["before upgrade"])
    );
    let long = stage.run(&format!("tag last --add {}", "x".repeat(65)));
    assert_eq!(long.status, 2, "{long}");
    let message = stage.json("tag last --add y");
    assert_eq!(
        message["records"][0]["before"],
        serde_json::json!(["before upgrade"])
    );
    assert_eq!(
        message["records"][0]["tags"],
        serde_json::json!(["before upgrade", "y"])
    );
}

#[test]
fn two_comparisons_are_held_against_each_other() {
    let stage = Stage::new();
    for (name, base_s, effect) in [("machine.toml", 0.5, 1.0), ("later.toml", 0.55, 1.2)] {
        stage.write(
            name,
            &format!("topology = \"package:1 core:2 pu:1\"\n[workload.default]\nbase_s = {base_s}\n[effects]\n\"cpu:0\" = {effect}\n[noise]\nsd = 0.01\n"),
        );
        stage.succeed(&format!("compare --machine sim:{name} --seed 1 --place os-default --place cpu:0 --max-runs 24 --precision 0.01% -- prog"));
    }
    let all = ids(&stage, "history");
    let (a, b) = (&all[1], &all[0]);
    let message = stage.succeed(&format!("diff {a} {b}"));
    message.check_form();
    check("diff", &message.out);
    let record = stage.json(&format!("diff {a} {b}"));
    assert_eq!(record["schema"], "pinwise.diff/1");
    assert_eq!(record["a"]["id"], a.as_str());
    let figure = &record["figures"][0];
    assert_eq!(
        (&figure["name"], &figure["verdict"]),
        (&"cpu:0".into(), &"higher".into())
    );
    assert_eq!(figure["over"], "os-default");
    assert!(figure["low"].as_f64().unwrap() < 1.2 && figure["high"].as_f64().unwrap() > 1.19);
    // The baseline has nothing to be held against.
    let itself = &record["figures"][1];
    assert_eq!(itself["verdict"], "cannot_tell", "{itself}");
    assert!(itself["low"].is_null() && itself["ratio"].as_f64().unwrap() > 1.05);
    assert_eq!(record["machine_changes"][0]["what"], "host");
    let back = stage.json(&format!("diff {b} {a}"));
    assert_eq!(back["figures"][0]["verdict"], "lower");
    // A file of exported JSON stands for its record.
    stage.succeed(&format!("export {a} --json -o a.json"));
    let of_file = stage.json(&format!("diff a.json {b}"));
    assert_eq!(of_file["figures"], record["figures"]);
}

#[test]
fn what_has_no_difference_is_refused() {
    let stage = filled();
    stage.succeed(&format!("{SAME} --seed 2 --metric user -- prog"));
    let all = ids(&stage, "history");
    let text: String = [
        format!("diff {} {}", all[1], all[2]),
        format!("diff {} {}", all[0], all[2]),
        "diff last last".to_owned(),
        "diff last".to_owned(),
        "diff last none".to_owned(),
    ]
    .iter()
    .map(|line| {
        let ran = stage.run(line);
        assert_eq!(ran.status, 2, "{ran}");
        ran.check_form();
        ran.err
    })
    .collect();
    check("diff-refused", &text);
}

#[test]
fn other_kinds_have_figures_without_a_verdict() {
    let stage = Stage::new();
    for seed in [1, 2] {
        stage.succeed(&format!(
            "search --machine sim:share.toml --threads 2 --max-runs 12 --seed {seed} -- prog"
        ));
        stage.succeed(&format!(
            "topology --measure --machine sim:share.toml --wiring-only --seed {seed}"
        ));
    }
    let of = |kind: &str| {
        let all = ids(&stage, &format!("history --kind {kind}"));
        stage.json(&format!("diff {} {}", all[1], all[0]))
    };
    let searches = of("search");
    assert_eq!(searches["schema"], "pinwise.diff/1");
    let figures = searches["figures"].as_array().unwrap();
    assert!(!figures.is_empty());
    for figure in figures {
        assert_eq!(figure["verdict"], "cannot_tell", "{figure}");
        assert!(figure["low"].is_null());
    }
    assert_eq!(of("topology")["schema"], "pinwise.topology-diff/1");
}

#[test]
fn records_are_removed_only_when_told_to() {
    let stage = filled();
    let all = ids(&stage, "history");
    stage.snapshot("prune", "prune --kind comparison --keep 1");
    assert_eq!(ids(&stage, "history"), all);
    let text: String = [
        "prune",
        "prune --yes",
        "prune --older-than 12w",
        "prune --older-than old",
        "prune --untagged --tag x",
    ]
    .iter()
    .map(|line| {
        let ran = stage.run(line);
        ran.check_form();
        ran.to_string()
    })
    .collect();
    check("prune-refused", &text);
    let would = stage.json("prune --kind comparison --keep 1");
    assert_eq!(would["records"], serde_json::json!([all[2]]));
    assert_eq!(would["removed"], false);
    let gone = stage.json("prune --kind comparison --keep 1 --yes");
    assert_eq!(gone["records"], serde_json::json!([all[2]]));
    assert_eq!(ids(&stage, "history"), all[..2]);
    stage.succeed("prune --untagged --yes");
    assert!(ids(&stage, "history").is_empty());
}

#[test]
fn runs_are_written_as_parquet() {
    let stage = filled();
    let id = ids(&stage, "history --kind comparison").remove(0);
    stage.succeed(&format!("export {id} --parquet -o runs.parquet"));
    let path = stage.folder.path().join("runs.parquet");
    let bytes = std::fs::read(path).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let piped = stage
        .command(&format!("export {id} --parquet"))
        .output()
        .unwrap();
    assert!(piped.status.success());
    assert_eq!(piped.stdout, bytes);
    stage.succeed("topology --measure --machine sim:share.toml --wiring-only");
    let machine = stage.run("export last --parquet -o x.parquet");
    assert_eq!(machine.status, 2, "{machine}");
    assert!(machine.err.contains("--json only"), "{machine}");
}
