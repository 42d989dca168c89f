//! Stores that cannot be used: reported before anything is run if possible, and otherwise nothing
//! that was measured is lost.

use std::path::Path;
use std::process::Command;

use rusqlite::Connection;

use super::trial::{Ended, Trial, finish, runs_of};
use crate::support::skipped;

/// A comparison whose command leaves a file when it runs.
fn compare_into(trial: &Trial, store: &str) -> Ended {
    trial.compare(&["--store", store, "--", "touch", "ran"])
}

/// Refused by all that use a store, before any command is run.
#[track_caller]
fn check_refused(trial: &Trial, store: &str, words: &[&str]) {
    compare_into(trial, store).is_refused(words);
    trial
        .run(&["compare", "--self", "--store", store, "--", "touch", "ran"])
        .is_refused(words);
    trial
        .run(&["record", "history", "--store", store])
        .is_refused(words);
    trial
        .run(&["record", "show", "last", "--store", store])
        .is_refused(words);
    assert!(!trial.path("ran").exists(), "{store}: the command was run");
}

#[test]
fn no_store_is_a_store() {
    let trial = Trial::new();
    compare_into(&trial, "none").succeeded();
    assert_eq!(trial.files(), ["ran"]);
    trial
        .run(&["record", "history", "--store", "none"])
        .is_refused(&["--store none"]);
}

#[test]
fn damaged_and_newer_stores() {
    let trial = Trial::new();
    std::fs::write(trial.path("text"), "no database at all. ".repeat(100)).unwrap();
    check_refused(
        &trial,
        "sqlite:text",
        &["the store text is damaged", "move it away"],
    );

    trial.compare(&["--", "true"]).succeeded();
    let whole = Connection::open(trial.path("store.db")).unwrap();
    whole.pragma_update(None, "journal_mode", "DELETE").unwrap();
    drop(whole);
    let mut bytes = std::fs::read(trial.path("store.db")).unwrap();
    std::fs::write(trial.path("cut.db"), &bytes[..bytes.len() / 2]).unwrap();
    check_refused(
        &trial,
        "cut.db",
        &["the store cut.db is damaged", "move it away"],
    );
    bytes[4096..].fill(0x5a);
    std::fs::write(trial.path("trampled.db"), &bytes).unwrap();
    // The first page is well: only its use shows the damage.
    let ended = compare_into(&trial, "trampled.db");
    assert_eq!(ended.status.code(), Some(2), "{}", ended.err);
    assert!(ended.out.contains("Undecided"), "{}", ended.out);
    let last = ended.err.lines().last().unwrap();
    assert!(
        last.starts_with("error: the store trampled.db is damaged"),
        "{last}"
    );
    let history = trial.run(&["record", "history", "--store", "trampled.db"]);
    history.is_refused(&["the store trampled.db is damaged", "move it away"]);
    std::fs::remove_file(trial.path("ran")).unwrap();

    let newer = Connection::open(trial.path("newer.db")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let before = std::fs::read(trial.path("newer.db")).unwrap();
    check_refused(
        &trial,
        "newer.db",
        &[
            "the store newer.db has schema 99",
            "use the pinwise that wrote it",
        ],
    );
    let after = std::fs::read(trial.path("newer.db")).unwrap();
    assert!(after == before, "a newer store is left as it was");
}

#[test]
fn a_locked_store_is_reported() {
    let trial = Trial::new();
    trial.compare(&["--", "true"]).succeeded();
    let other = Connection::open(trial.path("store.db")).unwrap();
    other
        .pragma_update(None, "locking_mode", "EXCLUSIVE")
        .unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let ended = trial.compare(&["--", "touch", "ran"]);
    ended.is_refused(&["store.db is locked by another process", "--store"]);
    assert!(!trial.path("ran").exists());
}

/// Reading goes on; an experiment is carried out, printed and exported, and
/// says that it could not be stored.
#[test]
fn a_store_that_another_process_writes_to() {
    let trial = Trial::new();
    trial.compare(&["--", "true"]).succeeded();
    let other = Connection::open(trial.path("store.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    trial.run(&["record", "history"]).succeeded();
    let ended = trial.compare(&["--export-json", "kept.json", "--", "true"]);
    assert_eq!(ended.status.code(), Some(2), "{}", ended.err);
    assert!(ended.out.contains("Undecided"), "{}", ended.out);
    let last = ended.err.lines().last().unwrap();
    assert!(last.starts_with("error: "), "{}", ended.err);
    assert!(
        last.contains("is locked") && last.contains("--export-json"),
        "{last}"
    );
    let kept = std::fs::read_to_string(trial.path("kept.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(runs_of(&kept).len(), 2);
}

/// The lock is gone when the experiment ends: then it is stored after all.
#[test]
fn a_store_that_was_locked_at_first() {
    let trial = Trial::new();
    trial.compare(&["--", "true"]).succeeded();
    let other = Connection::open(trial.path("store.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let line = "echo >> started; until [ -e go ]; do sleep 0.01; done";
    let mut child = trial
        .pinwise(&["compare", "--quiet", "--place", "os-default", "--placebo"])
        .args(["--warmup", "0", "--max-runs", "1", "--shell=sh", "--", line])
        .spawn()
        .unwrap();
    trial.wait_for_lines("started", 1, &mut child);
    other.execute_batch("ROLLBACK").unwrap();
    std::fs::write(trial.path("go"), "").unwrap();
    let ended = finish(child);
    ended.succeeded();
    assert!(ended.err.contains("is locked"), "{}", ended.err);
    assert!(!ended.err.contains("error"), "{}", ended.err);
    let record = trial.stored();
    assert_eq!(record["stopped"], "runs");
    assert_eq!(runs_of(&record).len(), 2);
}

/// A small file system that is gone with its owner.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(at: &'a Path, size: &str) -> Result<Self, String> {
        std::fs::create_dir(at).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(at)
            .output()
            .map_err(|error| format!("mount: {error}"))?;
        if mounted.status.success() {
            return Ok(Self(at));
        }
        Err(String::from_utf8_lossy(&mounted.stderr).trim().to_owned())
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        let mut mount = Command::new("mount");
        let status = mount.args(["-o", &options]).arg(self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn a_disk_that_fills_up() {
    let trial = Trial::new();
    let at = trial.path("disk");
    let disk = match SmallDisk::mount(&at, "160k") {
        Ok(disk) => disk,
        Err(reason) => {
            skipped(&format!("no small disk: {reason}"));
            return;
        }
    };
    let store = ["--store", "disk/store.db"];
    // No precision is ever enough for it to stop early.
    let long = ["--max-runs", "250", "--precision", "0.0001%", "--", "true"];
    let ended = trial.compare(&[&store[..], &long].concat());
    assert_eq!(ended.status.code(), Some(2), "{}", ended.err);
    assert!(ended.out.contains("250 blocks"), "{}", ended.out);
    let full = "No space left on device";
    assert!(ended.err.contains(full), "{}", ended.err);
    assert_eq!(
        ended.err.matches("continues without it").count(),
        1,
        "{}",
        ended.err
    );
    let last = ended.err.lines().last().unwrap();
    assert!(last.starts_with("error: "), "{}", ended.err);
    assert!(last.contains("results below are complete"), "{last}");

    let runs_kept = || {
        let listed = trial.run(&[&["record", "history"][..], &store].concat());
        listed.succeeded();
        assert!(listed.out.contains("cut off"), "{}", listed.out);
        let export =
            trial.run(&[&["record", "show", "last", "--format", "json"][..], &store].concat());
        export.succeeded();
        runs_of(&serde_json::from_str(&export.out).unwrap()).len()
    };
    // What was written before can be read on the full disk, and when there is
    // room again it is still there.
    let before = runs_kept();
    assert!(before > 20 && before < 500, "{before} runs");
    disk.resize("8m");
    assert_eq!(runs_kept(), before);
    // The next to write takes them in.
    let tag = [&["record", "tag", "last", "--add", "kept"][..], &store].concat();
    trial.run(&tag).succeeded();
    assert_eq!(runs_kept(), before);
    assert_eq!(journals(&at), 0);
}

fn journals(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name());
    names
        .filter(|name| name.to_string_lossy().ends_with(".runs"))
        .count()
}
