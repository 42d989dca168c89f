//! pinwise killed at random moments: what is left?

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::Setting;
use super::process::apart;
use crate::programs::output;

const KILLS: usize = 200;
const LONGEST_MS: u64 = 600;
const SEED: u64 = 20_261_122;

#[derive(Default)]
struct Left {
    /// Kills after the record had begun.
    begun: usize,
    runs: usize,
    missing: usize,
    unreadable: usize,
    processes: usize,
}

pub(super) fn run(setting: &Setting) -> Result<String> {
    let mut chance = ChaCha8Rng::seed_from_u64(SEED);
    let mut left = Left::default();
    for number in 0..KILLS {
        let folder = setting.folder.path().join(format!("kill-{number}"));
        std::fs::create_dir(&folder)?;
        let after = Duration::from_millis(chance.random_range(0..LONGEST_MS));
        kill_once(setting, &folder, number, after, &mut left)
            .with_context(|| format!("kill {number} after {after:?}"))?;
    }
    Ok(format!(
        "## Killed at random moments

SIGKILL to pinwise at {KILLS} random moments of its first {LONGEST_MS} ms, while it
compares a command that notes each of its runs in a file. A run counts as
missing if the command noted it, later ones were noted too, and the store does
not have it.

| kills | with a record begun | runs noted | missing in the store | stores that do not open | processes left after 2 s |
|---|---|---|---|---|---|
| {KILLS} | {} | {} | {} | {} | {} |
",
        left.begun, left.runs, left.missing, left.unreadable, left.processes
    ))
}

fn kill_once(
    setting: &Setting,
    folder: &Path,
    number: usize,
    after: Duration,
    left: &mut Left,
) -> Result<()> {
    let log = folder.join("log");
    let store = format!("sqlite:{}", folder.join("pinwise.db").display());
    // The odd duration marks the processes of this round.
    let nap = format!("0.01{:07}", 3_000_000 + number);
    let script = format!("sleep {nap}; echo x >> {}", log.display());
    let mut command = Command::new(&setting.pinwise);
    command.args([
        "--store",
        &store,
        "compare",
        "--place",
        "os-default",
        "--place",
        "cpu:0",
    ]);
    command.args(["--warmup", "0", "--", "sh", "-c", &script]);
    let mut child = apart(&mut command).spawn()?;
    std::thread::sleep(after);
    child.kill()?;
    child.wait()?;
    left.processes += usize::from(!all_are_gone(&nap));
    let noted = std::fs::read_to_string(&log)
        .unwrap_or_default()
        .lines()
        .count();
    let mut history = Command::new(&setting.pinwise);
    history.args(["--store", &store, "record", "history", "--format", "json"]);
    let Ok(text) = output(&mut history) else {
        left.unreadable += 1;
        return Ok(());
    };
    let records: Value = serde_json::from_str(&text)?;
    let is_begun = records["records"]
        .as_array()
        .is_some_and(|all| !all.is_empty());
    left.begun += usize::from(is_begun);
    left.runs += noted;
    let stored = if is_begun {
        stored_runs(setting, &store)?
    } else {
        0
    };
    // The last noted run may have been killed before pinwise saw its end.
    left.missing += noted.saturating_sub(1).saturating_sub(stored);
    Ok(())
}

fn stored_runs(setting: &Setting, store: &str) -> Result<usize> {
    let mut show = Command::new(&setting.pinwise);
    show.args([
        "--store", store, "record", "show", "last", "--format", "json",
    ]);
    let record: Value = serde_json::from_str(&output(&mut show)?)?;
    let arms = record["arms"].as_array().context("no arms")?;
    let runs = |arm: &Value, key: &str| arm[key].as_array().map_or(0, Vec::len);
    Ok(arms
        .iter()
        .map(|arm| runs(arm, "runs") + runs(arm, "other_runs"))
        .sum())
}

/// No process has this word in its command line any more, within two seconds.
fn all_are_gone(word: &str) -> bool {
    for _ in 0..40 {
        if !is_running(word) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

fn is_running(word: &str) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return false;
    };
    entries.filter_map(Result::ok).any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let is_this = entry.file_name().to_string_lossy() == std::process::id().to_string();
        !is_this && String::from_utf8_lossy(&line).contains(word)
    })
}
