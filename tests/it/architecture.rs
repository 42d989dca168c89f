//! The house rules that a compiler does not check: which module may use which,
//! and how large files and functions may be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::support::root;

/// What each module may use of the others; `format` all of them may.
const ARROWS: [(&str, &[&str]); 19] = [
    ("format", &[]),
    ("topology", &[]),
    ("workload", &[]),
    ("stats", &[]),
    ("placement", &["topology"]),
    ("threads", &["topology", "placement"]),
    ("trace", &["topology"]),
    ("code", &[]),
    ("spin", &["code"]),
    ("profile", &["code"]),
    (
        "record",
        &[
            "topology",
            "workload",
            "stats",
            "placement",
            "trace",
            "code",
            "spin",
            "profile",
        ],
    ),
    ("kernels", &[]),
    (
        "machine",
        &[
            "topology",
            "workload",
            "stats",
            "placement",
            "trace",
            "code",
            "spin",
            "profile",
            "kernels",
            "threads",
        ],
    ),
    ("store", &["topology", "record"]),
    ("fleet", &["topology", "workload", "record", "store"]),
    (
        "study",
        &[
            "topology",
            "workload",
            "stats",
            "placement",
            "trace",
            "code",
            "spin",
            "profile",
            "record",
            "machine",
            "kernels",
        ],
    ),
    (
        "report",
        &[
            "topology",
            "workload",
            "stats",
            "placement",
            "trace",
            "code",
            "spin",
            "profile",
            "record",
        ],
    ),
    ("web", &["record", "store", "report"]),
    (
        "cli",
        &[
            "topology",
            "workload",
            "stats",
            "placement",
            "trace",
            "code",
            "spin",
            "profile",
            "record",
            "kernels",
            "machine",
            "store",
            "fleet",
            "study",
            "report",
            "web",
        ],
    ),
];

/// Modules that must not touch the world, and what would.
const CORE: [&str; 11] = [
    "format",
    "topology",
    "workload",
    "stats",
    "placement",
    "trace",
    "code",
    "spin",
    "profile",
    "record",
    "report",
];
const WORLD: [&str; 7] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::env",
    "Instant",
    "SystemTime",
];

/// Lines of a file that are code under the limit of 500, tests left out.
const LONGEST_FILE: usize = 500;
const LONGEST_FUNCTION: usize = 80;
const MEDIAN_FUNCTION: usize = 12;
const P90_FUNCTION: usize = 40;

/// Names that say nothing.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "helpers", "misc", "manager"];

struct Source {
    path: PathBuf,
    module: String,
    /// Without unit tests and comments.
    lines: Vec<String>,
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    collect(&root().join("src"), &mut found);
    assert!(found.len() > 40, "the source has moved");
    found
}

fn collect(folder: &Path, found: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && !is_test_file(&path) {
            let inside = path.strip_prefix(root().join("src")).unwrap();
            let first = inside.iter().next().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            found.push(Source {
                module: first.trim_end_matches(".rs").to_owned(),
                lines: without_tests(&text),
                path,
            });
        }
    }
}

fn is_test_file(path: &Path) -> bool {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    stem == "tests" || stem.ends_with("_tests") || stem == "golden"
}

/// Everything before the unit tests.
fn without_tests(text: &str) -> Vec<String> {
    text.lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .map(str::to_owned)
        .collect()
}

fn code(line: &str) -> &str {
    let line = line.split("//").next().unwrap_or("");
    line.trim_end()
}

#[test]
fn arrows_point_inwards() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(may_use) = allowed.get(source.module.as_str()) else {
            assert!(
                ["lib", "main"].contains(&source.module.as_str()),
                "{}: give the module its arrows in this test",
                source.path.display()
            );
            continue;
        };
        for line in &source.lines {
            for piece in code(line).split("crate::").skip(1) {
                let used: String = piece
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                let is_known = allowed.contains_key(used.as_str());
                if is_known
                    && used != "format"
                    && used != source.module
                    && !may_use.contains(&used.as_str())
                {
                    wrong.push(format!(
                        "{}: {} uses {used}",
                        source.path.display(),
                        source.module
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn core_does_not_touch_the_world() {
    let mut wrong = Vec::new();
    for source in sources()
        .iter()
        .filter(|s| CORE.contains(&s.module.as_str()))
    {
        for line in &source.lines {
            for door in WORLD.iter().filter(|door| code(line).contains(**door)) {
                wrong.push(format!("{}: {door}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_and_functions_stay_small() {
    let mut lengths: Vec<usize> = Vec::new();
    let mut wrong = Vec::new();
    for source in sources() {
        if source.lines.len() > LONGEST_FILE {
            wrong.push(format!(
                "{}: {} lines",
                source.path.display(),
                source.lines.len()
            ));
        }
        for (name, length) in functions(&source.lines) {
            if length > LONGEST_FUNCTION {
                wrong.push(format!(
                    "{}: {name} has {length} lines",
                    source.path.display()
                ));
            }
            lengths.push(length);
        }
    }
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    let p90 = lengths[lengths.len() * 9 / 10];
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        median <= MEDIAN_FUNCTION,
        "the median function has {median} lines"
    );
    assert!(
        p90 <= P90_FUNCTION,
        "a tenth of the functions has over {p90} lines"
    );
}

/// Names and lengths of functions: from `fn` to the brace at its indentation.
fn functions(lines: &[String]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| *word == "fn") else {
            continue;
        };
        let is_comment = line.trim_start().starts_with("//");
        if is_comment || words.len() < at + 2 {
            continue;
        }
        let has_body = lines[start..]
            .iter()
            .find(|l| l.contains('{') || l.trim_end().ends_with(';'))
            .is_some_and(|l| l.contains('{'));
        if !has_body {
            continue;
        }
        let end = lines[start..].iter().position(|l| {
            l.trim_start().starts_with('}') && l.len() - l.trim_start().len() == indent
        });
        if let Some(end) = end {
            found.push((words[at + 1].to_owned(), end + 1));
        }
    }
    found
}

/// Release builds, which users have, are never told by a variable to fail.
#[test]
fn faults_are_read_only_with_debug_assertions() {
    let mut seen = 0;
    for source in sources() {
        for (at, line) in source.lines.iter().enumerate() {
            if !code(line).contains("PINWISE_FAULT") {
                continue;
            }
            seen += 1;
            let before = source.lines[..at].iter().rev();
            let item = before.take_while(|line| !line.is_empty());
            let is_for_tests = item
                .into_iter()
                .any(|line| line == "#[cfg(debug_assertions)]");
            assert!(is_for_tests, "{}: {line}", source.path.display());
        }
    }
    assert!(seen > 0, "the variable has another name");
}

#[test]
fn every_file_says_what_it_is_for_and_names_say_something() {
    for source in sources() {
        let shown = source.path.display();
        assert!(
            source.lines[0].starts_with("//!"),
            "{shown}: opens without //!"
        );
        let stem = source.path.file_stem().unwrap().to_str().unwrap();
        assert!(
            !EMPTY_NAMES.contains(&stem),
            "{shown}: the name says nothing"
        );
        for line in &source.lines {
            let is_getter = code(line).contains("fn get_");
            assert!(!is_getter, "{shown}: functions are verbs, not get_: {line}");
        }
    }
}
