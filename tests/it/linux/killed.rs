//! pinwise is killed at random moments.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::trial::{Trial, finish, list_runs};
use crate::support::send_signal;

/// Random moments at which pinwise is killed.
const MOMENTS: u64 = 12;

/// A command that writes a line at its start and one at its end. After this many runs, the next
/// one hangs, with a process in a session of its own.
fn hang_after(short_runs: usize) -> String {
    format!(
        "echo >> started; [ $(wc -l < started) -le {short_runs} ] || \
         {{ setsid sleep 1000 & sleep 1000; }}; echo >> done"
    )
}

#[test]
fn nothing_is_lost_and_nothing_is_left() {
    let with_runs = (0..MOMENTS).filter(|seed| kill_at(*seed) > 0).count();
    assert!(
        with_runs >= 4,
        "too few were killed after a run: {with_runs}"
    );
}

/// Kills pinwise some time after a run has started; returns how many runs it had recorded.
fn kill_at(seed: u64) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let short_runs = rng.random_range(2..12);
    let started = rng.random_range(0..=short_runs + 1);
    let wait = Duration::from_micros(rng.random_range(0..20_000));
    let trial = Trial::new();
    let line = hang_after(short_runs);
    let mut child = trial
        .pinwise(&["compare", "--quiet", "--placebo", "--place", "os-default"])
        .args(["--warmup", "1", "--max-runs", "1000"])
        .args(["--shell=sh", "--", &line])
        .spawn()
        .unwrap();
    if started > 0 {
        trial.wait_for_lines("started", started, &mut child);
    }
    std::thread::sleep(wait);
    send_signal(child.id(), "KILL");
    finish(child);
    trial.check_no_process_left();

    let (begun, ended) = (trial.count_lines("started"), trial.count_lines("done"));
    let history = trial.run(&["record", "history", "--format", "json"]);
    let history = history.parse_json();
    let records = history["records"].as_array().unwrap();
    if begun > 0 {
        assert_eq!(records.len(), 1, "seed {seed}: the record is lost");
    }
    let Some(entry) = records.first() else {
        return 0;
    };
    assert_eq!(entry["complete"], false, "seed {seed}");
    assert!(trial.run(&["record", "history"]).out.contains("cut off"));
    trial.run(&["record", "show", "last"]).check_success();
    let record = trial.read_record();
    assert!(record["stopped"].is_null(), "seed {seed}");
    let runs = list_runs(&record);
    // A run may have ended just before pinwise was killed.
    let recorded = runs.len();
    assert!(
        recorded == ended || recorded + 1 == ended,
        "seed {seed}: {recorded} of {ended} runs are in the store"
    );
    for run in &runs {
        assert_eq!(run["exit"], 0, "seed {seed}");
        assert!(run["metric"]["cost"].as_f64().unwrap() > 0.0, "seed {seed}");
    }
    // Reading leaves the journal in place; the next command that writes moves it into the store.
    trial
        .run(&["record", "tag", "last", "--add", "kept"])
        .check_success();
    assert_eq!(list_runs(&trial.read_record()), runs, "seed {seed}");
    let files = trial.files();
    assert!(
        !files.iter().any(|name| name.ends_with(".runs")),
        "{files:?}"
    );
    recorded
}

#[test]
fn other_experiments_use_the_store_of_a_killed_one() {
    let trial = Trial::new();
    let line = hang_after(5);
    let mut child = trial
        .pinwise(&["compare", "--quiet", "--placebo", "--place", "os-default"])
        .args(["--shell=sh", "--", &line])
        .spawn()
        .unwrap();
    trial.wait_for_lines("started", 6, &mut child);
    // Already while it runs, another pinwise may read and write the store.
    trial.compare(&["--", "true"]).check_success();
    assert!(trial.run(&["record", "history"]).out.contains("cut off"));
    send_signal(child.id(), "KILL");
    finish(child);
    trial.compare(&["--", "true"]).check_success();
    let history = trial.run(&["record", "history", "--format", "json"]);
    let history = history.parse_json();
    let records = history["records"].as_array().unwrap();
    assert_eq!(records.len(), 3);
    let cut_off = records.iter().filter(|record| record["complete"] == false);
    let cut_off: Vec<&serde_json::Value> = cut_off.collect();
    assert_eq!(cut_off.len(), 1);
    let id = cut_off[0]["id"].as_str().unwrap();
    let record = trial.run(&["record", "show", id, "--format", "json"]);
    assert_eq!(list_runs(&record.parse_json()).len(), 5);
    trial.check_no_process_left();
}
