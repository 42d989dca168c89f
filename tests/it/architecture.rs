//! Rules that the compiler does not check: which crates may use files, clocks and processes, that
//! the modules of a crate form no cycles, and how large files and functions may be. Each crate's
//! `Cargo.toml` says which others it uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::root;

/// Crates that must use none of [`WORLD`].
const CORE: [&str; 13] = [
    "code",
    "format",
    "nodes",
    "placement",
    "profile",
    "record",
    "report",
    "sched",
    "spin",
    "stats",
    "topology",
    "wiring",
    "workload",
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

/// Without unit tests.
const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 80;
const MEDIAN_FUNCTION: usize = 12;
const P90_FUNCTION: usize = 40;

/// Names of files that have no meaning.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "helpers", "misc", "manager"];

struct Source {
    path: PathBuf,
    /// The folder's name below `crates`; `pinwise` for the command.
    name: String,
    /// The module's path within its crate.
    module: Vec<String>,
    /// Without unit tests and comments.
    lines: Vec<String>,
}

fn read_sources() -> Vec<Source> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let src = folder.join("src");
        collect_sources(&name, &src, &src, &mut found);
    }
    let src = root().join("src");
    collect_sources("pinwise", &src, &src, &mut found);
    assert!(found.len() > 400, "the source has moved");
    found
}

fn collect_sources(name: &str, src: &Path, folder: &Path, found: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect_sources(name, src, &path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && !is_test_file(&path) {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push(Source {
                name: name.to_owned(),
                module: module_path(path.strip_prefix(src).unwrap()),
                lines: strip_tests(&text),
                path,
            });
        }
    }
}

fn module_path(file: &Path) -> Vec<String> {
    let without = file.with_extension("");
    let mut parts: Vec<String> = without
        .iter()
        .map(|part| part.to_str().unwrap().to_owned())
        .collect();
    if parts
        .last()
        .is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str()))
    {
        parts.pop();
    }
    parts
}

fn is_test_file(path: &Path) -> bool {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    ["examples", "golden", "tests"].contains(&stem) || stem.ends_with("_tests")
}

/// The lines before the unit tests.
fn strip_tests(text: &str) -> Vec<String> {
    text.lines()
        .take_while(|line| *line != "#[cfg(test)]")
        .map(str::to_owned)
        .collect()
}

fn strip_comment(line: &str) -> &str {
    let line = line.split("//").next().unwrap_or("");
    line.trim_end()
}

/// Which of its siblings each module of a parent uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

#[test]
fn modules_form_no_cycles() {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    let sources = read_sources();
    for source in &sources {
        crates.entry(&source.name).or_default().push(source);
    }
    let mut cycles = Vec::new();
    for (name, sources) in crates {
        let modules: BTreeSet<&[String]> = sources.iter().map(|s| s.module.as_slice()).collect();
        let mut siblings: BTreeMap<Vec<String>, Uses> = BTreeMap::new();
        for source in sources {
            for used in find_paths(&source.lines.join("\n")) {
                let Some(used) = resolve_path(&used, &source.module, &modules) else {
                    continue;
                };
                let both = source.module.iter().zip(&used);
                let common = both.take_while(|(own, other)| own == other).count();
                if let (Some(own), Some(other)) = (source.module.get(common), used.get(common)) {
                    let uses = siblings.entry(used[..common].to_vec()).or_default();
                    uses.entry(own.clone()).or_default().insert(other.clone());
                }
            }
        }
        for (parent, uses) in siblings {
            for cycle in find_cycles(&uses) {
                let place = [vec![name.to_owned()], parent.clone()].concat().join("::");
                cycles.push(format!("{place}: {}", cycle.join(" ")));
            }
        }
    }
    assert!(cycles.is_empty(), "{cycles:#?}");
}

/// Groups of modules that use each other, directly or through others.
fn find_cycles(uses: &Uses) -> BTreeSet<Vec<&str>> {
    let reached = |from: &str| {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut next: Vec<&str> = uses[from].iter().map(String::as_str).collect();
        while let Some(module) = next.pop() {
            if seen.insert(module) {
                let further = uses.get(module).into_iter().flatten();
                next.extend(further.map(String::as_str));
            }
        }
        seen
    };
    let all: BTreeMap<&str, BTreeSet<&str>> = uses
        .keys()
        .map(|module| (module.as_str(), reached(module)))
        .collect();
    let circular = all.iter().filter(|(module, seen)| seen.contains(*module));
    circular
        .map(|(module, seen)| {
            let group = seen
                .iter()
                .filter(|other| all.get(*other).is_some_and(|back| back.contains(module)));
            group.copied().collect()
        })
        .collect()
}

/// The module to which a path in module `own` leads; `None` for an item of the crate's root.
fn resolve_path(
    path: &[String],
    own: &[String],
    modules: &BTreeSet<&[String]>,
) -> Option<Vec<String>> {
    let mut target = if path[0] == "crate" {
        path[1..].to_vec()
    } else {
        let up = path.iter().take_while(|part| *part == "super").count();
        let base = own.get(..own.len().checked_sub(up)?)?;
        [base, &path[up..]].concat()
    };
    while !target.is_empty() && !modules.contains(target.as_slice()) {
        target.pop();
    }
    (!target.is_empty()).then_some(target)
}

/// All paths that begin with `crate::` or `super::`, also within braces.
fn find_paths(text: &str) -> Vec<Vec<String>> {
    let without_comments: String = text
        .lines()
        .map(|line| format!("{}\n", strip_comment(line)))
        .collect();
    let mut found = Vec::new();
    for begin in ["crate::", "super::"] {
        for (at, _) in without_comments.match_indices(begin) {
            let before = without_comments[..at].chars().next_back();
            let is_inside = before.is_some_and(|c| c.is_alphanumeric() || "_:$".contains(c));
            if !is_inside {
                expand_path(&without_comments[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Adds one path, or several within braces, to `found`; returns the rest of the text.
fn expand_path<'a>(
    text: &'a str,
    before: &mut Vec<String>,
    found: &mut Vec<Vec<String>>,
) -> &'a str {
    let depth = before.len();
    let mut rest = text.trim_start();
    loop {
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside.trim_start();
            while !rest.is_empty() && !rest.starts_with('}') {
                rest = expand_path(rest, before, found).trim_start();
                let end = rest.find([',', '}', '{']).unwrap_or(rest.len());
                rest = rest[end..].strip_prefix(',').unwrap_or(&rest[end..]);
                rest = rest.trim_start();
            }
            rest = rest.strip_prefix('}').unwrap_or(rest);
            break;
        }
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        before.push(rest[..end].to_owned());
        rest = &rest[end..];
        match rest.strip_prefix("::") {
            Some(further) => rest = further,
            None => {
                found.push(before.clone());
                break;
            }
        }
    }
    before.truncate(depth);
    rest
}

#[test]
fn core_uses_no_files_clocks_or_processes() {
    let mut wrong = Vec::new();
    for source in read_sources()
        .iter()
        .filter(|s| CORE.contains(&s.name.as_str()))
    {
        for line in &source.lines {
            for item in WORLD
                .iter()
                .filter(|item| strip_comment(line).contains(**item))
            {
                wrong.push(format!("{}: {item}", source.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_and_functions_stay_small() {
    let mut lengths: Vec<usize> = Vec::new();
    let mut wrong = Vec::new();
    for source in read_sources() {
        if source.lines.len() > MAX_FILE_LINES {
            wrong.push(format!(
                "{}: {} lines",
                source.path.display(),
                source.lines.len()
            ));
        }
        for (name, length) in measure_functions(&source.lines) {
            if length > MAX_FUNCTION_LINES {
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
fn measure_functions(lines: &[String]) -> Vec<(String, usize)> {
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

/// A variable must not make release builds fail.
#[test]
fn faults_are_read_only_with_debug_assertions() {
    let mut seen = 0;
    for source in read_sources() {
        for (at, line) in source.lines.iter().enumerate() {
            if !strip_comment(line).contains("PINWISE_FAULT") {
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

/// With link-time optimisation all crates take the level of the binary: kernels that were compiled
/// for size took up to eight times as long.
#[test]
fn loops_of_release_builds_are_vectorised() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let release = &manifest["profile"]["release"];
    let is_three = |level: &toml::Value| level.as_integer() == Some(3);
    let of_package = |name: &str| release["package"].get(name).map(|own| &own["opt-level"]);
    let own = ["pinwise-kernels", "pinwise-machine", "pinwise-stats"];
    for looping in own.into_iter().chain(["png", "rustfft", "tiff"]) {
        assert!(of_package(looping).is_some_and(is_three), "{looping}");
    }
}

#[test]
fn every_file_has_a_module_comment_and_a_meaningful_name() {
    for source in read_sources() {
        let shown = source.path.display();
        assert!(
            source.lines[0].starts_with("//!"),
            "{shown}: opens without //!"
        );
        let stem = source.path.file_stem().unwrap().to_str().unwrap();
        assert!(
            !EMPTY_NAMES.contains(&stem),
            "{shown}: the name has no meaning"
        );
        for line in &source.lines {
            let is_getter = strip_comment(line).contains("fn get_");
            assert!(!is_getter, "{shown}: functions are verbs, not get_: {line}");
        }
    }
}
