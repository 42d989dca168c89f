//! Stores that cannot be used are reported before a command runs, if possible; otherwise no
//! measured run is lost.

use std::path::Path;
use std::process::Command;

use rusqlite::Connection;

use super::trial::{Ended, Trial, finish, list_runs};
use crate::support::report_skip;

/// Compares a command that creates the file `ran`.
fn compare_into(trial: &Trial, store: &str) -> Ended {
    trial.compare(&["--store", store, "--", "touch", "ran"])
}

/// Checks that all commands that use a store refuse it, before any command is run.
#[track_caller]
fn check_refused(trial: &Trial, store: &str, words: &[&str]) {
    compare_into(trial, store).check_refused(words);
    for command in [
        &["compare", "--self", "--store", store, "--", "touch", "ran"][..],
        &["record", "history", "--store", store],
        &["record", "show", "last", "--store", store],
    ] {
        trial.run(command).check_refused(words);
    }
    assert!(!trial.path("ran").exists(), "{store}: the command was run");
}

#[test]
fn store_none_keeps_nothing_and_has_no_history() {
    let trial = Trial::new();
    compare_into(&trial, "none").check_success();
    assert_eq!(trial.files(), ["ran"]);
    trial
        .run(&["record", "history", "--store", "none"])
        .check_refused(&["--store none"]);
}

#[test]
fn damaged_and_newer_stores_are_refused_and_not_changed() {
    let trial = Trial::new();
    std::fs::write(trial.path("text"), "this is not a database. ".repeat(100)).unwrap();
    check_refused(
        &trial,
        "sqlite:text",
        &["the store text is damaged", "move it away"],
    );

    trial.compare(&["--", "true"]).check_success();
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
    std::fs::write(trial.path("overwritten.db"), &bytes).unwrap();
    // The first page is intact: the damage shows only when the record is stored.
    let ended = compare_into(&trial, "overwritten.db");
    assert_eq!(ended.status.code(), Some(2), "{}", ended.err);
    assert!(ended.out.contains("Undecided"), "{}", ended.out);
    let last = ended.err.lines().last().unwrap();
    assert!(
        last.starts_with("error: the store overwritten.db is damaged"),
        "{last}"
    );
    let history = trial.run(&["record", "history", "--store", "overwritten.db"]);
    history.check_refused(&["the store overwritten.db is damaged", "move it away"]);
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
    trial.compare(&["--", "true"]).check_success();
    let other = Connection::open(trial.path("store.db")).unwrap();
    other
        .pragma_update(None, "locking_mode", "EXCLUSIVE")
        .unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let ended = trial.compare(&["--", "touch", "ran"]);
    ended.check_refused(&["store.db is locked by another process", "--store"]);
    assert!(!trial.path("ran").exists());
}

#[test]
fn while_another_process_writes_to_the_store_records_are_exported_but_not_stored() {
    let trial = Trial::new();
    trial.compare(&["--", "true"]).check_success();
    let other = Connection::open(trial.path("store.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    trial.run(&["record", "history"]).check_success();
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
    assert_eq!(list_runs(&kept).len(), 2);
}

#[test]
fn a_record_is_stored_if_the_lock_is_gone_at_the_end() {
    let trial = Trial::new();
    trial.compare(&["--", "true"]).check_success();
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
    ended.check_success();
    assert!(ended.err.contains("is locked"), "{}", ended.err);
    assert!(!ended.err.contains("error"), "{}", ended.err);
    let record = trial.read_record();
    assert_eq!(record["stopped"], "runs");
    assert_eq!(list_runs(&record).len(), 2);
}

/// A small file system that is unmounted when it is dropped.
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
fn runs_written_before_the_disk_was_full_are_kept() {
    let trial = Trial::new();
    let at = trial.path("disk");
    let disk = match SmallDisk::mount(&at, "160k") {
        Ok(disk) => disk,
        Err(reason) => {
            report_skip(&format!("no small disk: {reason}"));
            return;
        }
    };
    let store = ["--store", "disk/store.db"];
    // It never reaches this precision, and so does not stop early.
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

    let count_runs = || {
        let history = trial.run(&[&["record", "history"][..], &store].concat());
        history.check_success();
        assert!(history.out.contains("cut off"), "{}", history.out);
        let show = ["record", "show", "last", "--format", "json"];
        let record = trial.run(&[&show[..], &store].concat()).parse_json();
        list_runs(&record).len()
    };
    // They can be read on the full disk, and when there is room again.
    let before = count_runs();
    assert!(before > 20 && before < 500, "{before} runs");
    disk.resize("8m");
    assert_eq!(count_runs(), before);
    // The next command that writes moves them from the journal into the store.
    let tag = [&["record", "tag", "last", "--add", "kept"][..], &store].concat();
    trial.run(&tag).check_success();
    assert_eq!(count_runs(), before);
    let mut names = std::fs::read_dir(&at)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(!names.any(|name| name.to_string_lossy().ends_with(".runs")));
}
