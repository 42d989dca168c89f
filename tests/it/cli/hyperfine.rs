//! Command lines of hyperfine mean the same here, or are refused with the option to use instead.
//!
//! `tests/data/hyperfine.txt` has a line with `$` for each idiom. The lines below it are the
//! warnings and the measured arms, or else the error. `INSTA_UPDATE=always` writes the present
//! results to the file.

use serde_json::Value;

use super::{Stage, check_file};
use crate::support::{decode_output, root};

#[test]
fn lines_of_hyperfine_keep_their_meaning_or_are_refused() {
    let file = root().join("tests/data/hyperfine.txt");
    let table = std::fs::read_to_string(&file).unwrap();
    let (head, cases) = table.trim_end().split_once("\n\n").unwrap();
    let stage = Stage::new();
    stage.write("in.txt", "");
    let outputs = cases.split("\n\n").map(|case| {
        let line = case.lines().next().unwrap();
        format!("{line}\n{}", describe_meaning(&stage, line))
    });
    let found = format!("{head}\n\n{}\n", outputs.collect::<Vec<_>>().join("\n\n"));
    check_file(&file, &table, &found);
}

/// The measured arms with their settings; the error if nothing is measured.
#[track_caller]
fn describe_meaning(stage: &Stage, line: &str) -> String {
    let command = "compare --machine sim:same.toml --store none --quiet --seed 1 --format json";
    let line = line.replacen("$ hyperfine", command, 1);
    let output = stage.command(&line).output().unwrap();
    let (out, err) = decode_output(&output);
    if output.status.code() == Some(2) {
        assert_eq!(out, "", "{line}");
        return err.trim_end().to_owned();
    }
    assert!(output.status.success(), "{line}: {err}");
    let record: Value = serde_json::from_str(&out).unwrap();
    let warnings = err.lines().filter(|line| line.contains("syntax"));
    let arms = record["arms"].as_array().unwrap().iter().map(describe_arm);
    let lines: Vec<String> = warnings.map(str::to_owned).chain(arms).collect();
    lines.join("\n")
}

fn describe_arm(arm: &Value) -> String {
    let words = arm["command"].as_array().unwrap().iter();
    let command = shell_words::join(words.map(|word| word.as_str().unwrap()));
    let name = arm["name"].as_str().unwrap();
    let workload = &arm["workload"];
    let parts = ["prepare", "conclude", "input", "environment"].map(|key| match &workload[key] {
        Value::String(text) => format!("; {key}: {text}"),
        Value::Array(pairs) if !pairs.is_empty() => format!("; {key}: {}", workload[key]),
        _ => String::new(),
    });
    let runs = arm["runs"].as_array().unwrap().len();
    format!("{name}: {command}{}; {runs} runs", parts.concat())
}
