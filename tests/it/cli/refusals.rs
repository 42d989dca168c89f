//! Bad input is refused with exit status 2 and one line that names the mistake and the remedy.
//! Nothing is printed on standard output, stored, created or changed.
//!
//! `tests/data/refusals` has a table for each subject. Lines with `!` prepare the folder: they are
//! run by a shell, or by pinwise if they begin with that word. A line with `$` has the arguments,
//! in which `$PID` is a sleeping process. The whole output is below it, with `[..]` for parts that
//! differ between machines. `INSTA_UPDATE=always` writes the present output to the table.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{DirEntry, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{FinishedRun, Stage, check_file};
use crate::support::{Running, read_allowed_cpus, root};

/// A test for each table.
macro_rules! tables {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check_table(stringify!($name));
        })*

        #[test]
        fn every_table_is_checked() {
            let files = std::fs::read_dir(root().join("tests/data/refusals")).unwrap();
            let mut found: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
            found.sort_unstable();
            assert_eq!(found, [$(concat!(stringify!($name), ".txt")),*]);
        }
    };
}

tables! {
    apply bench commands files fleets gate kernels live machines memory metrics
    numbers options outputs placements predictions profile recipes records rules
    search spin stores top traces wiring words
}

#[track_caller]
fn check_table(name: &str) {
    let file = root().join(format!("tests/data/refusals/{name}.txt"));
    let table = std::fs::read_to_string(&file).unwrap();
    let (preparation, cases) = table.split_once("\n\n").unwrap();
    let stage = Stage::new();
    prepare(&stage, preparation);
    let before = read_state(&stage);
    let sleeper = cases.contains("$PID").then(Running::start_sleep);
    let cpus = sleeper
        .as_ref()
        .map(|sleeper| read_allowed_cpus(sleeper.id()));
    let run_case = |case: &str| {
        let (line, expected) = case.split_once('\n').unwrap();
        let id = sleeper.as_ref().map(Running::id);
        let id = id.filter(|_| line.contains("$PID")).unwrap_or_default();
        let ran = run_refused(&stage, &line[2..].replace("$PID", &id));
        let mut output = ran.err.trim_end().to_owned();
        if !id.is_empty() {
            output = output.replace(&id, "$PID");
        }
        if is_match(expected.trim_end(), &output) {
            output = expected.trim_end().to_owned();
        }
        format!("{line}\n{output}")
    };
    let outputs: Vec<String> = cases.split("\n\n").map(run_case).collect();
    assert_eq!(read_state(&stage), before);
    assert_eq!(sleeper.map(|sleeper| read_allowed_cpus(sleeper.id())), cpus);
    let found = format!("{preparation}\n\n{}\n", outputs.join("\n\n"));
    check_file(&file, &table, &found);
}

/// Makes the files of a table. Recipes that root starts run as another user, who may enter the
/// folder whatever the umask.
#[track_caller]
fn prepare(stage: &Stage, preparation: &str) {
    let folder = stage.folder.path();
    std::fs::create_dir(folder.join("tmp")).unwrap();
    for folder in [folder, &folder.join("tmp")] {
        std::fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    for line in preparation.lines().filter_map(|l| l.strip_prefix("! ")) {
        if let Some(arguments) = line.strip_prefix("pinwise ") {
            stage.run_ok(arguments);
            continue;
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(folder);
        let status = shell.env("ROOT", root()).status().unwrap();
        assert!(status.success(), "{line}");
    }
}

/// The number of records in the store, and names and contents of the folder's other files.
#[track_caller]
fn read_state(stage: &Stage) -> (String, BTreeMap<OsString, Option<Vec<u8>>>) {
    let total = stage.run_for_json("record history")["total"].to_string();
    let entries = std::fs::read_dir(stage.folder.path()).unwrap();
    let entries = entries.map(|entry| entry.unwrap());
    let is_kept = |entry: &DirEntry| {
        let name = entry.file_name();
        name != "cache" && !name.to_string_lossy().starts_with("store.db")
    };
    let content = |entry: DirEntry| {
        let is_file = entry.file_type().unwrap().is_file();
        let content = is_file.then(|| std::fs::read(entry.path()).unwrap());
        (entry.file_name(), content)
    };
    (total, entries.filter(is_kept).map(content).collect())
}

/// Runs a line that must be refused. Notes may precede the error.
#[track_caller]
fn run_refused(stage: &Stage, line: &str) -> FinishedRun {
    let folder = stage.folder.path();
    let mut command = stage.command(line);
    command.env("XDG_CACHE_HOME", folder.join("cache"));
    let output = command.env("TMPDIR", folder.join("tmp")).output().unwrap();
    let ran = FinishedRun::new(line, &output, folder.to_str().unwrap());
    assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{ran}");
    let errors = ran.err.lines().filter(|line| line.starts_with("error: "));
    assert_eq!(errors.count(), 1, "{ran}");
    let last = ran.err.lines().last().unwrap();
    assert!(last.starts_with("error: "), "{ran}");
    assert!(!ran.err.contains('\u{1b}'), "{ran}");
    let left = std::fs::read_dir(folder.join("tmp")).unwrap().count();
    assert_eq!(left, 0, "{ran}");
    ran
}

/// Whether a text matches a pattern in which `[..]` stands for any text.
fn is_match(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once("[..]") else {
        return pattern == text;
    };
    text.strip_prefix(start).is_some_and(|text| {
        let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        ends.any(|at| is_match(rest, &text[at..]))
    })
}
