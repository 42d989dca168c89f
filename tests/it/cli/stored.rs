//! Stored records are filtered, tagged, compared and removed.

use super::{Stage, check_text};

const SLOW: &str = "compare --machine sim:slow.toml --place os-default --place cpu:0 --max-runs 12";
const SAME: &str = "compare --machine sim:same.toml --place os-default --place cpu:0 --max-runs 12";

/// Three records: two of `prog`, one of them tagged, and a search.
fn fill_store() -> Stage {
    let stage = Stage::new();
    stage.run_ok(&format!("{SLOW} --seed 1 --tag nightly -- prog --fast"));
    stage.run_ok(&format!("{SAME} --seed 2 -- prog"));
    stage.run_ok("search --machine sim:share.toml --threads 2 --max-runs 12 --seed 3 -- other");
    stage
}

fn list_ids(stage: &Stage, line: &str) -> Vec<String> {
    let found = stage.run_for_json(line);
    let records = found["records"].as_array().unwrap().iter();
    let ids: Vec<String> = records
        .map(|r| r["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(found["total"].as_u64().unwrap() >= ids.len() as u64);
    ids
}

#[test]
fn the_history_is_filtered() {
    let stage = fill_store();
    let all = list_ids(&stage, "record history");
    assert_eq!(all.len(), 3);
    for (options, expected) in [
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
            list_ids(&stage, &format!("record history {options}"))
                .iter()
                .collect::<Vec<_>>(),
            expected,
            "{options}"
        );
    }
    let tagged = &stage.run_for_json("record history --tag nightly")["records"][0];
    assert_eq!(tagged["tags"], serde_json::json!(["nightly"]));
    assert_eq!(tagged["figures"][1]["name"], "cpu:0");
    assert_eq!(tagged["subject"], "comparison · prog --fast · wall");
    let lines = [
        "record history --tag nightly",
        "record history --limit 1",
        "record history --text no-such-word",
        "record history --kind comparision",
    ];
    stage.check_transcript("history-narrowed", &lines);
}

#[test]
fn predictions_and_scans_are_stored() {
    let stage = Stage::new();
    stage.run_ok("spin predict -a go_mutex --chip skylake-sp --cpu-count 4");
    stage.run_ok("spin scan --chip skylake-sp /bin/true");
    let listed = stage.run_for_json("record history");
    let read = |at: usize, field: &str| listed["records"][at][field].as_str().unwrap().to_owned();
    assert_eq!(read(0, "title"), "spin scan /bin/true");
    assert_eq!(read(0, "schema"), "pinwise.spin-scan/1");
    assert_eq!(read(1, "title"), "spin predict on skylake-sp");
    let verdict = read(1, "verdict");
    assert!(
        verdict.contains("CPUs, Go sync.Mutex (go_mutex) is predicted to spin for "),
        "{verdict}"
    );
    let shown = stage.run_ok("record show last~1").out;
    assert!(shown.contains("\nRecord "), "{shown}");
}

#[test]
fn records_before_the_last_have_names() {
    let stage = fill_store();
    let all = list_ids(&stage, "record history");
    for (name, id) in ["last", "last~1", "last~2"].iter().zip(&all) {
        assert_eq!(
            stage.run_for_json(&format!("record show {name}"))["id"],
            **id
        );
    }
    for (name, words) in [
        ("last~3", "the store has fewer records than that"),
        ("last~", "no record has the id 'last~'"),
    ] {
        let ran = stage.run(&format!("record show {name}"));
        assert_eq!(ran.status, 2, "{ran}");
        assert!(ran.err.contains(words), "{ran}");
    }
    let same = stage.run("record diff last~1 last~1");
    assert!(same.err.contains("is both A and B"), "{same}");
}

#[test]
fn defaults_of_the_user_are_read_from_a_file() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.folder.path().join("config/pinwise")).unwrap();
    let file = stage.folder.path().join("config/pinwise/config.toml");
    let run = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let mut command = stage.command("compare --machine sim:slow.toml --max-runs 8 -- prog");
        command.env("XDG_CONFIG_HOME", stage.folder.path().join("config"));
        command.env_remove("PINWISE_CONFIG").output().unwrap()
    };
    let output = run("places = [\"os-default\", \"cpu:0\", \"cpu:1\"]\n");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("cpu:1") && text.contains("cpu:0"), "{text}");
    // A file for another machine: here both placements are the same.
    let output = run("places = [\"cpu:0\", \"cpu:0\"]\n");
    assert_eq!(output.status.code(), Some(0));
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(
        note.contains("places of config.toml do not differ on this machine"),
        "{note}"
    );
    let output = run("\nplaces = [\"nowhere\"]\n");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("config.toml:2: places: 'nowhere': "),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn tags_are_changed_and_reported() {
    let stage = fill_store();
    let lines = [
        "record tag last",
        "record tag last --add nightly --add 'before upgrade'",
        "record tag last --add nightly --remove no-such",
        "record tag last --remove nightly",
        "record tag last --add ''",
        "record tag last --add \"a\tb\"",
        "record tag none --add x",
        "record tag",
    ];
    stage.check_transcript("tag", &lines);
    assert_eq!(
        list_ids(&stage, "record history --tag 'before upgrade'").len(),
        1
    );
    assert_eq!(
        stage.run_for_json("record show last")["tags"],
        serde_json::json!(["before upgrade"])
    );
    let long = stage.run(&format!("record tag last --add {}", "x".repeat(65)));
    assert_eq!(long.status, 2, "{long}");
    let message = stage.run_for_json("record tag last --add y");
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
fn two_comparisons_are_compared_arm_by_arm() {
    let stage = Stage::new();
    for (name, base_s, effect) in [("machine.toml", 0.5, 1.0), ("later.toml", 0.55, 1.2)] {
        stage.write(
            name,
            &format!("topology = \"package:1 core:2 pu:1\"\n[workload.default]\nbase_s = {base_s}\n[effects]\n\"cpu:0\" = {effect}\n[noise]\nsd = 0.01\n"),
        );
        stage.run_ok(&format!("compare --machine sim:{name} --seed 1 --place os-default --place cpu:0 --max-runs 24 --precision 0.01% -- prog"));
    }
    let all = list_ids(&stage, "record history");
    let (a, b) = (&all[1], &all[0]);
    let message = stage.run_ok(&format!("record diff {a} {b}"));
    message.check_form();
    check_text("diff", &message.out);
    let record = stage.run_for_json(&format!("record diff {a} {b}"));
    assert_eq!(record["schema"], "pinwise.diff/1");
    assert_eq!(record["a"]["id"], a.as_str());
    let figure = &record["figures"][0];
    assert_eq!(
        (&figure["name"], &figure["verdict"]),
        (&"cpu:0".into(), &"higher".into())
    );
    assert_eq!(figure["over"], "os-default");
    assert!(figure["low"].as_f64().unwrap() < 1.2 && figure["high"].as_f64().unwrap() > 1.19);
    // Nothing cancels the machine's drift for the baseline.
    let baseline = &record["figures"][1];
    assert_eq!(baseline["verdict"], "cannot_tell", "{baseline}");
    assert!(baseline["low"].is_null() && baseline["ratio"].as_f64().unwrap() > 1.05);
    assert_eq!(record["machine_changes"][0]["what"], "host");
    let back = stage.run_for_json(&format!("record diff {b} {a}"));
    assert_eq!(back["figures"][0]["verdict"], "lower");
    // An exported file can be given instead of an id.
    stage.run_ok(&format!("record show {a} --format json -o a.json"));
    let of_file = stage.run_for_json(&format!("record diff a.json {b}"));
    assert_eq!(of_file["figures"], record["figures"]);
}

#[test]
fn records_without_a_diff_are_refused() {
    let stage = fill_store();
    stage.run_ok(&format!("{SAME} --seed 2 --metric user -- prog"));
    let all = list_ids(&stage, "record history");
    let text: String = [
        format!("record diff {} {}", all[1], all[2]),
        format!("record diff {} {}", all[0], all[2]),
        "record diff last last".to_owned(),
        "record diff last".to_owned(),
        "record diff last none".to_owned(),
    ]
    .iter()
    .map(|line| {
        let ran = stage.run(line);
        assert_eq!(ran.status, 2, "{ran}");
        ran.check_form();
        ran.err
    })
    .collect();
    check_text("diff-refused", &text);
}

#[test]
fn other_kinds_have_figures_without_a_verdict() {
    let stage = Stage::new();
    for seed in [1, 2] {
        stage.run_ok(&format!(
            "search --machine sim:share.toml --threads 2 --max-runs 12 --seed {seed} -- prog"
        ));
        stage.run_ok(&format!(
            "topology --measure --machine sim:share.toml --wiring-only --seed {seed}"
        ));
    }
    let diff = |kind: &str| {
        let all = list_ids(&stage, &format!("record history --kind {kind}"));
        stage.run_for_json(&format!("record diff {} {}", all[1], all[0]))
    };
    let searches = diff("search");
    assert_eq!(searches["schema"], "pinwise.diff/1");
    let figures = searches["figures"].as_array().unwrap();
    assert!(!figures.is_empty());
    for figure in figures {
        assert_eq!(figure["verdict"], "cannot_tell", "{figure}");
        assert!(figure["low"].is_null());
    }
    assert_eq!(diff("topology")["schema"], "pinwise.topology-diff/1");
}

#[test]
fn records_are_removed_only_with_yes() {
    let stage = fill_store();
    let all = list_ids(&stage, "record history");
    stage.check_snapshot("prune", "record prune --kind comparison --keep 1");
    assert_eq!(list_ids(&stage, "record history"), all);
    let lines = [
        "record",
        "prune",
        "record prune --yes",
        "record prune --older-than 12w",
        "record prune --older-than old",
        "record prune --untagged --tag x",
    ];
    stage.check_transcript("prune-refused", &lines);
    let would = stage.run_for_json("record prune --kind comparison --keep 1");
    assert_eq!(would["records"], serde_json::json!([all[2]]));
    assert_eq!(would["removed"], false);
    let gone = stage.run_for_json("record prune --kind comparison --keep 1 --yes");
    assert_eq!(gone["records"], serde_json::json!([all[2]]));
    assert_eq!(list_ids(&stage, "record history"), all[..2]);
    stage.run_ok("record prune --untagged --yes");
    assert!(list_ids(&stage, "record history").is_empty());
}

#[test]
fn synonyms_of_record_commands_are_accepted() {
    let stage = fill_store();
    let all = list_ids(&stage, "record list");
    assert_eq!(all, list_ids(&stage, "record history"));
    let csv = stage.run_ok("record export last~1 --format csv");
    assert!(csv.out.starts_with("arm,"), "{csv}");
    let would = stage.run_ok(&format!("record rm {}", all[1]));
    assert!(would.out.contains("Would remove 1 of 3"), "{would}");
    stage.run_ok("record remove last~1 last --yes");
    assert_eq!(list_ids(&stage, "record ls"), all[2..]);
    let other = stage.run("record rm nothing --yes");
    assert_eq!(other.status, 2, "{other}");
    let version = stage.run_ok("version");
    assert!(version.out.starts_with("pinwise "), "{version}");
}
