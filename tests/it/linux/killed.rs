//! pinwise killed outright, at random moments.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::trial::{Trial, finish, runs_of, signal};

/// Few, to save time.
const MOMENTS: u64 = 12;

/// Every run leaves a line at its start and one at its end; the run after the
/// last short one hangs, with a process in a session of its own.
fn command(short_runs: usize) -> String {
    format!(
        "echo >> started; [ $(wc -l < started) -le {short_runs} ] || \
         {{ setsid sleep 1000 & sleep 1000; }}; echo >> done"
    )
}

#[test]
fn nothing_is_lost_and_nothing_is_left() {
    let mut with_runs = 0;
    for seed in 0..MOMENTS {
        with_runs += usize::from(killed_at(seed) > 0);
    }
    assert!(
        with_runs >= 4,
        "hardly any was killed amid its runs: {with_runs}"
    );
}

/// Kills pinwise some time after a run has started; returns how many runs it had recorded.
fn killed_at(seed: u64) -> usize {
    let mut moment = ChaCha8Rng::seed_from_u64(seed);
    let short_runs = moment.random_range(2..12);
    let started = moment.random_range(0..=short_runs + 1);
    let wait = Duration::from_micros(moment.random_range(0..20_000));
    let trial = Trial::new();
    let line = command(short_runs);
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
    signal(&child, "KILL");
    finish(child);
    trial.leaves_no_process();

    let (begun, ended) = (trial.lines("started"), trial.lines("done"));
    let history = trial.run(&["record", "history", "--format", "json"]);
    history.succeeded();
    let history: serde_json::Value = serde_json::from_str(&history.out).unwrap();
    let records = history["records"].as_array().unwrap();
    if begun > 0 {
        assert_eq!(records.len(), 1, "seed {seed}: the record is lost");
    }
    let Some(entry) = records.first() else {
        return 0;
    };
    assert_eq!(entry["complete"], false, "seed {seed}");
    assert!(trial.run(&["record", "history"]).out.contains("cut off"));
    trial.run(&["record", "show", "last"]).succeeded();
    let record = trial.stored();
    assert!(record["stopped"].is_null(), "seed {seed}");
    let runs = runs_of(&record);
    // A run may have ended at the moment when pinwise was killed.
    let recorded = runs.len();
    assert!(
        recorded == ended || recorded + 1 == ended,
        "seed {seed}: {recorded} of {ended} runs are in the store"
    );
    for run in &runs {
        assert_eq!(run["exit"], 0, "seed {seed}");
        assert!(run["metric"]["cost"].as_f64().unwrap() > 0.0, "seed {seed}");
    }
    // Reading leaves the journal in place; the next writer takes it in.
    trial
        .run(&["record", "tag", "last", "--add", "kept"])
        .succeeded();
    assert_eq!(runs_of(&trial.stored()), runs, "seed {seed}");
    let leftovers: Vec<String> = trial.files();
    let is_journal = |name: &&String| name.ends_with(".runs");
    assert_eq!(
        leftovers.iter().filter(is_journal).count(),
        0,
        "{leftovers:?}"
    );
    recorded
}

/// An aborted run does not hinder the next one.
#[test]
fn the_next_experiment_uses_the_same_store() {
    let trial = Trial::new();
    let line = command(5);
    let mut child = trial
        .pinwise(&["compare", "--quiet", "--placebo", "--place", "os-default"])
        .args(["--shell=sh", "--", &line])
        .spawn()
        .unwrap();
    trial.wait_for_lines("started", 6, &mut child);
    // While it runs another pinwise may read and write the store.
    trial.compare(&["--", "true"]).succeeded();
    assert!(trial.run(&["record", "history"]).out.contains("cut off"));
    signal(&child, "KILL");
    finish(child);
    trial.compare(&["--", "true"]).succeeded();
    let listed = trial.run(&["record", "history", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    let complete: Vec<bool> = listed["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["complete"].as_bool().unwrap())
        .collect();
    assert_eq!(complete.iter().filter(|&&done| done).count(), 2);
    assert_eq!(complete.len(), 3);
    let mut records = listed["records"].as_array().unwrap().iter();
    let cut_off = records.find(|record| record["complete"] == false);
    let id = cut_off.unwrap()["id"].as_str().unwrap().to_owned();
    let export = trial.run(&["record", "show", &id, "--format", "json"]);
    let record: serde_json::Value = serde_json::from_str(&export.out).unwrap();
    assert_eq!(runs_of(&record).len(), 5);
    trial.leaves_no_process();
}
