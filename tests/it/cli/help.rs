//! `--help` fits 80 columns and ends with examples.

use super::{Stage, WIDTH};
use crate::support::{decode_output, has_program, report_skip};

// Each command's help is in docs/cli.md, which a test compares.
#[test]
fn help_shows_the_commands_in_groups() {
    Stage::new().check_snapshot("help", "--help");
}

#[test]
fn completions_of_a_shell_are_printed() {
    let stage = Stage::new();
    for (shell, words) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef pinwise"),
        ("fish", "complete -c pinwise"),
    ] {
        let ran = stage.run_ok(&format!("completions {shell}"));
        let names = ["one-per-core", "max-rss", "p99", "data-loader", "taskset"];
        for words in names.into_iter().chain([words]) {
            assert!(ran.out.contains(words), "{shell}: {words}");
        }
    }
}

#[test]
fn fish_completes_the_value_of_an_option_before_the_command() {
    let stage = Stage::new();
    let script = stage.run_ok("completions fish").out;
    // This part of clap's script was replaced. It is checked even if fish is not installed.
    assert!(script.contains("-- $before 2>/dev/null"));
    if !has_program("fish") {
        return report_skip("fish is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pinwise.fish");
    std::fs::write(&file, script).unwrap();
    let complete = |line: &str| {
        let output = std::process::Command::new("fish")
            .args(["--no-config", "-c"])
            .arg(format!("source {}; complete -C '{line}'", file.display()))
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .output()
            .unwrap();
        decode_output(&output).0
    };
    assert!(complete("pinwise --color ").contains("always\t"));
    assert!(complete("pinwise --color always com").contains("compare\t"));
    assert!(complete("pinwise doctor --format ").contains("json\t"));
    assert!(!complete("pinwise doctor --format ").contains("markdown"));
}

/// Lines of a tall screen: the limit of `-h`. `--help` may fill two.
const SCREEN_LINES: usize = 52;

#[test]
fn every_help_fits_and_ends_with_examples() {
    let stage = Stage::new();
    for command in crate::docs::HELPS.concat().into_iter().chain(["doctor"]) {
        let short = stage.run_ok(&format!("{command} -h"));
        let long = stage.run_ok(&format!("{command} --help"));
        for ran in [&short, &long] {
            ran.check_form();
            let (_, end) = ran.out.split_once("\nExamples:\n").expect("examples");
            assert!(!end.contains("Options:"), "{ran}");
            let examples = end.lines().take_while(|line| !line.is_empty());
            let own = format!("pinwise {command}");
            assert!(examples.clone().any(|line| line.contains(&own)), "{ran}");
            assert!(examples.clone().all(|l| l.contains("pinwise ")), "{ran}");
        }
        assert!(short.out.lines().count() <= SCREEN_LINES, "{short}");
        assert!(short.out.lines().count() < long.out.lines().count());
        assert!(long.out.lines().count() <= 2 * SCREEN_LINES, "{long}");
        // Each option has a line, without a broken bracket.
        for line in short.out.lines() {
            let [open, close] = ['[', ']'].map(|bracket| line.matches(bracket).count());
            assert_eq!(open, close, "{short}");
            let is_cut = line.starts_with("  ") && line.ends_with([':', ';', ',', '(']);
            assert!(!is_cut, "{short}");
        }
    }
    let compare = stage.run_ok("compare -h");
    let place = "      --place <PLACEMENT>        Where the command runs; repeat for each arm\n";
    assert!(compare.out.contains(place), "{compare}");
    let default = "Maximum runs per arm [alias: --runs]\n";
    assert!(compare.out.contains(default), "{compare}");
}

#[test]
fn help_names_every_placement_and_metric() {
    let stage = Stage::new();
    let help = stage.run_ok("topology --help").out;
    for name in pinwise_placement::known_names() {
        let name = name.split(':').next().unwrap();
        // Some are listed as in `one-per-core, -llc, -numa`.
        let end = name.rsplit('-').next().unwrap();
        let is_named = help.contains(&format!("  {name}")) || help.contains(&format!(", -{end}"));
        assert!(is_named || help.contains(&format!(", {name}")), "{name}");
    }
    let help = stage.run_ok("compare --help").out;
    for name in pinwise_workload::Metric::names() {
        assert!(help.contains(name), "{name}");
    }
}

#[test]
fn help_is_no_wider_than_the_terminal_and_80_columns() {
    let stage = Stage::new();
    for (columns, max) in [("60", 60), ("200", WIDTH)] {
        let output = stage
            .command("record history -h")
            .env("COLUMNS", columns)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (options, _) = text.split_once("Examples:").unwrap();
        for line in options.lines() {
            assert!(line.chars().count() <= max, "{line}");
        }
    }
}

#[test]
fn the_version_is_printed_and_no_arguments_are_an_error() {
    let stage = Stage::new();
    let version = stage.run_ok("--version");
    assert_eq!(
        version.out,
        format!("pinwise {}\n", env!("CARGO_PKG_VERSION"))
    );
    // Without a command the help is an error, printed on standard error.
    let ran = stage.run("");
    assert_eq!(ran.status, 2);
    assert!(ran.out.is_empty());
    assert!(ran.err.contains("Usage: pinwise"), "{ran}");
}

#[test]
fn usual_spellings_of_help_are_accepted() {
    let stage = Stage::new();
    for (line, same) in [
        ("help", "--help"),
        ("help compare", "compare --help"),
        ("help spin attach", "spin attach --help"),
    ] {
        assert_eq!(stage.run_ok(line).out, stage.run_ok(same).out, "{line}");
    }
}

#[test]
fn a_command_without_its_subcommand_prints_its_help() {
    let stage = Stage::new();
    for command in ["spin", "fleet", "record", "apply rules"] {
        let ran = stage.run(command);
        assert_eq!(ran.status, 2, "{ran}");
        let usage = format!("Usage: pinwise {command}");
        assert!(ran.err.contains(&usage), "{ran}");
    }
}

#[test]
fn options_of_other_tools_are_accepted() {
    let stage = Stage::new();
    for options in [
        "-r 2 --output=null -- prog",
        "-r 2 --shell=none -- prog",
        "--runs 2 -w 1 -N -i prog",
        "-r 2 -n one prog -n two 'prog -x'",
        "-r 2 -p prog --conclude prog prog",
        "-r 2 -L n 1,2 'prog {n}'",
    ] {
        stage.run_ok(&format!("compare --machine sim:same.toml {options}"));
    }
}

#[test]
fn a_command_called_by_another_name_has_that_name_in_its_usage() {
    let stage = Stage::new();
    for (line, usage) in [
        (
            "record remove --help",
            "Usage: pinwise record remove [OPTIONS]",
        ),
        ("record rm -h", "Usage: pinwise record rm [OPTIONS]"),
        (
            "record prune --help",
            "Usage: pinwise record prune [OPTIONS]",
        ),
    ] {
        let help = stage.run_ok(line).out;
        assert!(help.contains(usage), "{help}");
    }
}
