//! Colour, closed pipes, terminals, logs, and `doctor` on the real machine.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use super::Stage;
use crate::support::{decode_output, has_program, report_skip, root};

const LINE: &str =
    "compare --machine sim:slow.toml --seed 1 --place os-default --place cpu:0 --max-runs 12";

#[test]
fn colour_is_only_used_if_requested() {
    let stage = Stage::new();
    let is_coloured = |line: &str, no_color: Option<&str>| {
        let mut command = stage.command(line);
        command
            .env_remove("NO_COLOR")
            .envs(no_color.map(|value| ("NO_COLOR", value)));
        let output = command.output().unwrap();
        let has_escape = |bytes: &[u8]| bytes.contains(&0x1b);
        (has_escape(&output.stdout), has_escape(&output.stderr))
    };
    let compare = |option: &str| format!("{LINE} {option} -- prog");
    // Output is not a terminal here.
    assert_eq!(is_coloured(&compare(""), None), (false, false));
    assert!(is_coloured(&compare("--color always"), None).0);
    assert!(!is_coloured(&compare("--color never"), None).0);
    // An option overrides the environment.
    assert!(is_coloured(&compare("--color always"), Some("1")).0);
    let wrong = "--color always compare --machine sim: -- prog";
    assert_eq!(is_coloured(wrong, None), (false, true));
}

#[test]
fn coloured_text_is_the_plain_text_with_escapes() {
    let stage = Stage::new();
    let plain = stage.run_ok(&format!("{LINE} -- prog"));
    let coloured = stage.run_ok(&format!("{LINE} --color always -- prog"));
    let escape = regex_lite::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    assert_eq!(escape.replace_all(&coloured.out, ""), plain.out);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let stage = Stage::new();
    let mut child = stage
        .command("topology --machine 'sim:package:2 l3:2 core:4 pu:2'")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty());
}

#[test]
fn findings_of_doctor_have_evidence_weight_and_advice() {
    let stage = Stage::new();
    let record = stage.run_for_json("doctor");
    assert_eq!(record["schema"], "pinwise.doctor/1");
    for finding in record["findings"].as_array().unwrap() {
        assert!(
            finding["sentence"].as_str().unwrap().ends_with('.'),
            "{finding}"
        );
        assert!(finding["weight"].as_u64().unwrap() <= 10, "{finding}");
        assert!(finding["evidence"].is_object(), "{finding}");
        let severity = finding["severity"].as_str().unwrap();
        assert!(["note", "warning", "problem"].contains(&severity));
        let advice = finding["advice"].as_str().unwrap();
        assert!(severity == "note" || !advice.is_empty(), "{finding}");
    }
    let checks = |key: &str| match &record[key] {
        serde_json::Value::Array(list) => list.len(),
        serde_json::Value::Object(map) => map.len(),
        other => panic!("{key}: {other}"),
    };
    let all = checks("findings") + checks("passed") + checks("unavailable");
    assert!(all >= 20, "{all} checks");
    let text = stage.run_ok("doctor");
    text.check_form();
    assert!(text.out.contains("Checked, fine: ") || text.out.contains("Findings"));
}

/// Runs pinwise on a terminal and returns its output; `None`, with a message, if no terminal can be
/// made.
fn run_on_terminal(stage: &Stage, columns: usize, arguments: &str) -> Option<String> {
    if !has_program("script") || !has_program("stty") {
        report_skip("script and stty, which make a terminal, are not installed");
        return None;
    }
    let program = env!("CARGO_BIN_EXE_pinwise");
    let line = format!("stty cols {columns} rows 24; {program} {arguments}");
    let output = std::process::Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(stage.folder.path())
        .env("LC_ALL", "C.UTF-8")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Some(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

#[test]
fn data_on_a_terminal_have_no_control_characters() {
    let stage = Stage::new();
    let name = "prog\u{1b}[31m\u{202e}";
    stage.run_ok(&format!("{LINE} --export-json one.json -- '{name}'"));
    let stored = std::fs::read_to_string(stage.folder.path().join("one.json")).unwrap();
    assert!(stored.contains('\u{202e}'), "{stored}");
    for format in ["json", "csv", "markdown", "hyperfine"] {
        let arguments = format!("record show one.json --store none --format {format}");
        let Some(text) = run_on_terminal(&stage, 80, &arguments) else {
            return;
        };
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{format}: {text}");
        if format == "json" {
            let shown: serde_json::Value = serde_json::from_str(&text).unwrap();
            let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
            assert_eq!(shown, stored);
        }
        // A file gets the data unchanged.
        let plain = stage.run_ok(&arguments).out;
        assert_eq!(
            plain.contains('\u{202e}'),
            text.contains("\\u202e"),
            "{format}"
        );
    }
}

#[test]
fn texts_are_laid_out_for_the_terminal() {
    let stage = Stage::new();
    let record = root().join("tests/data/records/comparison.json");
    let arguments = format!(
        "record show {} --store none --color never",
        record.display()
    );
    if run_on_terminal(&stage, 80, &arguments).is_none() {
        return;
    }
    let show = |columns| run_on_terminal(&stage, columns, &arguments).unwrap();
    for columns in [40, 60, 120] {
        let text = show(columns);
        // A command for a shell stays on its line.
        let mut lines = text.lines().filter(|line| !line.starts_with('→'));
        assert!(lines.all(|line| line.chars().count() <= columns), "{text}");
    }
    assert!(show(40).contains("\n  one-per-core  −12.2 %  faster\n"));
    assert!(show(120).contains("\n  one-per-core  0,2,4,6,…  165 ms   −12.2 %"));
}

#[test]
fn steps_are_logged_on_standard_error_on_request() {
    let stage = Stage::new();
    let run = |options: &str, level: &str| {
        let mut command = stage.command(&format!("{LINE} {options} -- prog"));
        let output = command.env("PINWISE_LOG", level).output().unwrap();
        let (out, err) = decode_output(&output);
        (out, err, output.status.code())
    };
    let (short, no_log, _) = run("", "");
    assert!(!no_log.contains(" s] "), "{no_log}");
    let (out, err, _) = run("-v", "");
    assert!(err.contains(" s] look after "), "{err}");
    assert!(!err.contains(" block 3: "), "{err}");
    assert!(out.lines().count() > short.lines().count(), "{out}");
    for (options, level) in [("-vv", ""), ("", "debug")] {
        let (_, err, _) = run(options, level);
        assert!(err.contains("os-default, Confirmation block 3: "), "{err}");
    }
    let (_, err, status) = run("", "loud");
    assert_eq!(status, Some(2));
    assert!(
        err.contains("PINWISE_LOG: 'loud' is not a level (off, error, "),
        "{err}"
    );
}

/// Some libraries run `tput` if there is no terminal.
#[test]
fn no_program_is_started_for_the_width() {
    let stage = Stage::new();
    let programs = stage.folder.path().join("programs");
    let marker = stage.folder.path().join("was-run");
    std::fs::create_dir(&programs).unwrap();
    let tput = programs.join("tput");
    std::fs::write(&tput, format!("#!/bin/sh\n: > {}\n", marker.display())).unwrap();
    std::fs::set_permissions(&tput, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = stage.command(&format!("{LINE} -- prog"));
    command.env("PATH", &programs).output().unwrap();
    assert!(!marker.exists());
}
