//! The commands in documents and in help can be run, and print what the documents say. They are run
//! with an empty home, no configuration and the usual tools, as by a new user, and once more by a
//! user who is not root.

mod quick;
mod stage;

use std::path::Path;

use crate::support::{pinwise, report_skip, root, runs_all_replays};
use stage::{SOMEBODY, Stage};

/// Documents whose examples take half of the total time.
const LONG: [&str; 4] = [
    "docs/machine.md",
    "docs/search.md",
    "docs/spin.md",
    "docs/tracing.md",
];

/// A test for each document with examples, so that they run in parallel.
macro_rules! documents {
    ($($test:ident: $path:literal,)*) => {
        const WITH_EXAMPLES: &[&str] = &[$($path),*];

        $(
            #[test]
            fn $test() {
                try_examples($path, &Stage::new());
            }
        )*

        /// As a user who is not root.
        mod as_an_ordinary_user {
            use super::*;

            $(
                #[test]
                fn $test() {
                    // SAFETY: geteuid has no preconditions.
                    #[expect(unsafe_code, reason = "one system call that cannot fail")]
                    let is_root = unsafe { libc::geteuid() } == 0;
                    let is_left_out = LONG.contains(&$path) && !runs_all_replays();
                    match is_root {
                        true if is_left_out => {
                            report_skip("root runs it; `cargo xtask check --all`, a user, too");
                        }
                        true => try_examples($path, &Stage::new_for_user(Some(SOMEBODY))),
                        false => report_skip("only root becomes another user"),
                    }
                }
            )*
        }
    };
}

documents! {
    examples_of_readme_run: "README.md",
    examples_of_apply_run: "docs/apply.md",
    examples_of_devices_run: "docs/devices.md",
    examples_of_fleet_run: "docs/fleet.md",
    examples_of_gate_run: "docs/gate.md",
    examples_of_machine_run: "docs/machine.md",
    examples_of_page_run: "docs/page.md",
    examples_of_records_run: "docs/records.md",
    examples_of_rules_run: "docs/rules.md",
    examples_of_search_run: "docs/search.md",
    examples_of_spin_run: "docs/spin.md",
    examples_of_tracing_run: "docs/tracing.md",
    examples_of_wiring_run: "docs/wiring.md",
}

#[track_caller]
fn try_examples(path: &str, stage: &Stage) {
    let text = read(path);
    let lines = find_blocks(&text, "sh").flat_map(str::lines);
    let lines: Vec<&str> = lines.filter(|line| line.starts_with("pinwise ")).collect();
    for line in lines {
        stage.try_example(line);
    }
}

/// The text of all documents with examples.
fn read_documents_with_examples() -> Vec<String> {
    WITH_EXAMPLES.iter().map(|path| read(path)).collect()
}

/// Paths of the documents in the root of the project and in `docs`.
fn list_documents() -> Vec<String> {
    let mut paths = Vec::new();
    for folder in ["", "docs"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name();
            let path = Path::new(folder).join(name);
            if path.extension().is_some_and(|kind| kind == "md") {
                paths.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    paths
}

#[test]
fn every_document_with_examples_is_tried() {
    for path in list_documents() {
        let text = read(&path);
        let mut lines = find_blocks(&text, "sh").flat_map(str::lines);
        let has_commands = lines.any(|line| line.starts_with("pinwise "));
        let has_output = find_blocks(&text, "console").next().is_some();
        let is_tried = WITH_EXAMPLES.contains(&path.as_str());
        assert_eq!(has_commands || has_output, is_tried, "{path}");
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Fenced blocks of one language.
fn find_blocks<'a>(text: &'a str, language: &'a str) -> impl Iterator<Item = &'a str> {
    text.split("\n```")
        .skip(1)
        .step_by(2)
        .filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
}

#[test]
fn documents_show_the_real_output() {
    let stage = Stage::new();
    let mut seen = 0;
    for block in read_documents_with_examples()
        .iter()
        .flat_map(|text| find_blocks(text, "console"))
    {
        let (command, shown) = block.split_once('\n').unwrap();
        let printed = stage.run(command.strip_prefix("$ ").unwrap());
        let (printed, shown) = (mask_ids(&printed), mask_ids(shown));
        assert_eq!(printed.trim_end(), shown.trim_end(), "{command}");
        seen += 1;
    }
    assert!(seen > 0, "the output has moved");
}

/// Record ids contain the time and random digits.
fn mask_ids(text: &str) -> String {
    let id = regex_lite::Regex::new(r"\d{8}-\d{6}-[0-9a-f]{8}").unwrap();
    id.replace_all(text, "ID").into_owned()
}

/// A test for the examples in the help of some commands. An example may need what an earlier one
/// left.
macro_rules! helps {
    ($($test:ident: $commands:expr,)*) => {
        /// The commands whose examples are tried.
        pub(crate) const HELPS: &[&[&str]] = &[$(&$commands),*];

        $(
            #[test]
            fn $test() {
                try_helps(&$commands);
            }
        )*
    };
}

helps! {
    help_examples_of_questions_and_records_run: [
        "apply", "", "topology", "search", "search predict", "gate", "compare", "record show",
        "run", "completions", "trace", "trace import", "trace tiers", "top", "record history",
        "record tag", "record diff", "record report", "serve", "record prune", "record copy",
    ],
    help_examples_of_spin_run: [
        "spin", "spin pause", "spin predict", "spin replay", "spin attach", "spin advise", "spin scan",
    ],
    help_examples_of_profiles_run: ["profile diff", "profile"],
    help_examples_of_kernels_run: ["bench", "bench kernel", "bench jitter", "bench recipes"],
    help_examples_of_reports_run: ["reproduce"],
    help_examples_of_rules_run: ["apply rules check", "apply rules run", "apply rules unit", "apply restore"],
    help_examples_of_fleets_run: [
        "fleet status", "fleet collect", "fleet resume", "fleet cancel", "fleet simulate",
    ],
}

#[test]
fn help_examples_of_all_commands_are_tried() {
    assert!(HELPS.concat().len() > 40, "the commands have moved");
}

#[track_caller]
fn try_helps(commands: &[&str]) {
    let stage = Stage::new();
    for command in commands {
        let help = stage.run(&format!("pinwise {command} --help"));
        let examples = help.split("Examples:\n").nth(1).expect("examples");
        for line in examples.lines().take_while(|line| !line.trim().is_empty()) {
            // The ids in examples do not exist here.
            let line = line.trim().replace("20261121-2132", "last");
            let line = line.replace("20261122", "last");
            // The commands of other programs before `; ` are omitted.
            let line = line.split("; ").last().unwrap().to_owned();
            // Other tests place running processes.
            let is_tested_elsewhere = line.starts_with("ssh ") || line.contains("--pid 4242");
            if line == "pinwise doctor" || line.contains("search --resume") || is_tested_elsewhere {
                continue;
            }
            stage.try_example(&line);
        }
    }
}

#[test]
fn the_reference_matches_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let output = pinwise(&folder.path().join("store.db"))
        .args(["generate", "reference"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success());
    let fresh = std::fs::read_to_string(folder.path().join("cli.md")).unwrap();
    let existing = read("docs/cli.md");
    assert!(
        fresh == existing,
        "docs/cli.md is old: run `cargo xtask gen`"
    );
}

/// Doc tests compile the examples, but rustdoc adds a missing `main` and hides lines. A user who
/// pastes an example needs it whole.
#[test]
fn rust_examples_are_whole_programs() {
    let guide = read("docs/library.md");
    let examples: Vec<&str> = find_blocks(&guide, "rust").collect();
    assert!(!examples.is_empty(), "the examples have moved");
    for example in examples {
        assert!(example.contains("fn main()"), "{example}");
        let has_hidden = example.lines().any(|line| line.starts_with("# "));
        assert!(!has_hidden, "{example}");
    }
}

#[test]
fn links_lead_somewhere() {
    let link = regex_lite::Regex::new(r"\]\(([^)#]+)").unwrap();
    for document in list_documents() {
        let text = read(&document);
        for target in link.captures_iter(&text).map(|found| found[1].to_owned()) {
            let is_elsewhere = target.contains("://");
            let folder = Path::new(&document).parent().unwrap();
            let path = root().join(folder).join(&target);
            assert!(is_elsewhere || path.exists(), "{document}: {target}");
        }
    }
}
