//! `--help`: whole, within 80 columns, with examples at the end.

use super::{Stage, WIDTH};

const COMMANDS: [&str; 17] = [
    "compare",
    "search",
    "search predict",
    "bench",
    "bench kernel",
    "bench jitter",
    "topology",
    "doctor",
    "run",
    "apply",
    "apply restore",
    "record history",
    "record show",
    "record tag",
    "record diff",
    "record prune",
    "record copy",
];

// What each command's help says stands in docs/cli.md, which a test compares.
#[test]
fn help_shows_the_commands_in_groups() {
    Stage::new().snapshot("help", "--help");
}

#[test]
fn completions_of_a_shell_are_printed() {
    let stage = Stage::new();
    for (shell, words) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef pinwise"),
        ("fish", "complete -c pinwise"),
    ] {
        let ran = stage.succeed(&format!("completions {shell}"));
        assert!(ran.out.contains(words), "{shell}");
    }
}

#[test]
fn help_ends_with_examples_that_name_the_command() {
    let stage = Stage::new();
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let ran = stage.succeed(&format!("{command} {flag}"));
            let (_, end) = ran.out.split_once("\nExamples:\n").expect("examples");
            assert!(!end.contains("Options:"), "{ran}");
            let examples: Vec<&str> = end.lines().take_while(|line| !line.is_empty()).collect();
            assert!(!examples.is_empty(), "{ran}");
            for example in examples {
                assert!(example.starts_with("  pinwise "), "{example}");
                assert!(example.contains(command), "{example}");
            }
        }
    }
}

#[test]
fn the_short_help_fits_and_is_shorter() {
    let stage = Stage::new();
    for command in COMMANDS {
        let (short, long) = (
            stage.succeed(&format!("{command} -h")),
            stage.succeed(&format!("{command} --help")),
        );
        short.check_form();
        // One screen, and two.
        assert!(short.out.lines().count() <= 52, "{short}");
        assert!(short.out.lines().count() < long.out.lines().count());
        assert!(long.out.lines().count() <= 2 * 52, "{long}");
    }
}

#[test]
fn the_short_help_has_a_line_for_an_option_and_no_broken_bracket() {
    let stage = Stage::new();
    for command in COMMANDS {
        let ran = stage.succeed(&format!("{command} -h"));
        for line in ran.out.lines() {
            assert_eq!(
                line.matches('[').count(),
                line.matches(']').count(),
                "{ran}"
            );
            assert!(
                !line.ends_with([':', ';', ',', '(']) || !line.starts_with("  "),
                "{ran}"
            );
        }
    }
    let compare = stage.succeed("compare -h");
    let place = "      --place <PLACEMENT>        Where the command runs; repeat for each arm\n";
    assert!(compare.out.contains(place), "{compare}");
    let default = "Time for everything [default: 60s or --max-runs]\n";
    assert!(compare.out.contains(default), "{compare}");
}

#[test]
fn help_uses_no_more_than_the_terminal() {
    let stage = Stage::new();
    for (columns, most) in [("60", 60), ("200", WIDTH)] {
        let output = stage
            .command("record history -h")
            .env("COLUMNS", columns)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (options, _) = text.split_once("Examples:").unwrap();
        for line in options.lines() {
            assert!(line.chars().count() <= most, "{line}");
        }
    }
}

#[test]
fn version_and_no_arguments() {
    let stage = Stage::new();
    let version = stage.succeed("--version");
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
fn help_is_asked_for_as_elsewhere() {
    let stage = Stage::new();
    for (asked, same) in [
        ("help", "--help"),
        ("help compare", "compare --help"),
        ("help spin attach", "spin attach --help"),
    ] {
        assert_eq!(stage.succeed(asked).out, stage.succeed(same).out, "{asked}");
    }
}

#[test]
fn a_command_of_commands_alone_prints_its_own_help() {
    let stage = Stage::new();
    for command in ["spin", "fleet", "record", "apply rules"] {
        let ran = stage.run(command);
        assert_eq!(ran.status, 2, "{ran}");
        let usage = format!("Usage: pinwise {command}");
        assert!(ran.err.contains(&usage), "{ran}");
    }
}

/// What users of other tools type first, and a part of the answer.
const WORDS: [(&str, &str); 62] = [
    ("lstopo", "pinwise topology"),
    ("lscpu", "pinwise topology"),
    ("likwid-topology -g", "pinwise topology"),
    ("taskset -c 0 prog", "pinwise run --place"),
    ("numactl --cpunodebind=0 prog", "pinwise run --place"),
    ("hyperfine a b", "pinwise compare"),
    ("time prog", "pinwise compare"),
    ("show last", "pinwise record show"),
    ("restore", "pinwise apply restore"),
    ("kernel fft", "pinwise bench kernel"),
    ("predict", "pinwise search predict"),
    ("aa -- prog", "pinwise compare --self"),
    ("perf stat prog", "pinwise trace"),
    ("stat prog", "pinwise trace"),
    ("list", "pinwise record history"),
    ("latency", "pinwise topology --measure"),
    ("compare -m 10 a b", "-r N"),
    ("compare -M 10 a b", "-r N"),
    ("compare --min-runs 10 a b", "-r N"),
    ("compare --setup make a b", "-p"),
    ("compare -s make a b", "-p"),
    ("compare -S bash a b", "--shell=SHELL"),
    ("compare -u millisecond a b", "--format json"),
    ("compare --parameter-scan n 1 8 a", "-P NAME=1..8"),
    ("compare --reference a b", "--baseline ARM"),
    ("run -c 0-3 prog", "--place 0-3"),
    ("run --cpunodebind=0 prog", "--place one-numa:0"),
    ("compare --export-asciidoc f a b", "--export-markdown"),
    ("compare --style basic a b", "--color"),
    (
        "compare --sort command a b",
        "order in which they are given",
    ),
    ("compare --min-benchmarking-time 3 a b", "--budget"),
    ("compare -D 1 a", "-P NAME=1..8"),
    ("lstopo out.svg", "pinwise topology"),
    ("hwloc-ls", "pinwise topology"),
    ("topology --of xml", "--format xml"),
    ("topology --whole-io", "--format xml"),
    ("topology -p", "kernel's numbers"),
    ("topology --only core", "--format xml"),
    ("--hardware", "pinwise topology"),
    ("-H", "pinwise topology"),
    ("-s", "pinwise topology"),
    ("--show", "pinwise topology"),
    ("-c 0-1 prog", "pinwise run --place"),
    ("-C 0 prog", "pinwise run --place"),
    ("--physcpubind=0 prog", "pinwise run --place"),
    ("--cpunodebind=0 --membind=0 prog", "mem=bind"),
    ("--interleave=all prog", "mem=bind"),
    ("-p 1", "pinwise apply --pid"),
    ("-pc 0 1", "pinwise apply --pid"),
    ("hwloc-bind core:0 -- prog", "pinwise run --place"),
    ("likwid-pin -c 0 prog", "pinwise run --place"),
    ("hwloc-distances", "pinwise topology"),
    ("cyclictest", "pinwise doctor"),
    ("prog -t 2", "pinwise compare -- PROGRAM"),
    ("./prog", "pinwise compare -- PROGRAM"),
    ("compar a b", "try pinwise compare"),
    ("topolgy", "try pinwise topology"),
    ("trace sleep", "pinwise trace -- sleep"),
    ("profile ./prog", "pinwise profile -- ./prog"),
    ("trace -p 1", "--pid PID"),
    ("trace -a", "--all"),
    ("topology --svg", "pinwise record report"),
];

#[test]
fn words_of_other_tools_lead_to_the_command() {
    let stage = Stage::new();
    for (line, words) in WORDS {
        let ran = stage.run(line);
        assert_eq!(ran.status, 2, "{ran}");
        assert!(ran.err.contains(words), "{ran}");
        assert_eq!(ran.err.lines().count(), 1, "{ran}");
    }
    // What means the same here is taken.
    for line in [
        "compare --machine sim:same.toml -r 2 --output=null -- prog",
        "compare --machine sim:same.toml -r 2 --shell=none -- prog",
        "compare --machine sim:same.toml --runs 2 -w 1 -N -i prog",
        "compare --machine sim:same.toml -r 2 -n one prog -n two 'prog -x'",
        "compare --machine sim:same.toml -r 2 -p prog -c prog prog",
        "compare --machine sim:same.toml -r 2 -L n 1,2 'prog {n}'",
        "compare --machine sim:same.toml -r 2 --export-json - prog",
    ] {
        stage.succeed(line);
    }
    // Not where the command lacks what would be advised.
    for line in ["topology -c 0", "record history -s x"] {
        let ran = stage.run(line);
        assert_eq!(ran.status, 2, "{ran}");
        assert!(ran.err.contains("unexpected argument"), "{ran}");
    }
}
