//! What a run costs beyond the command itself: us, hyperfine, and a bare loop
//! of spawn and wait.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Result;

use super::Setting;
use super::process::{measure, median, quartiles};
use crate::programs::find_or_install;

const ROUNDS: usize = 40;
/// Runs in a short and a long call; their difference leaves start-up out.
const FEW: usize = 20;
const MANY: usize = 520;

pub(super) fn run(setting: &Setting) -> Result<String> {
    find_or_install("hyperfine", "hyperfine")?;
    let mut rows: Vec<[f64; 4]> = Vec::new();
    for round in 0..ROUNDS {
        let mut row = [0.0; 4];
        for step in 0..row.len() {
            let tool = (round + step) % row.len();
            row[tool] = match tool {
                0 => bare_us()?,
                1 => slope_us(hyperfine)?,
                2 => slope_us(|runs| pinwise(setting, runs, "none"))?,
                _ => {
                    let store = setting.folder.path().join("harness.db");
                    let store = format!("sqlite:{}", store.display());
                    slope_us(|runs| pinwise(setting, runs, &store))?
                }
            };
        }
        rows.push(row);
    }
    let column = |tool: usize| rows.iter().map(|row| row[tool]).collect::<Vec<f64>>();
    let ratios = |tool: usize| {
        rows.iter()
            .map(|row| row[tool] / row[1])
            .collect::<Vec<f64>>()
    };
    let beyond = |tool: usize| {
        rows.iter()
            .map(|row| row[tool] - row[0])
            .collect::<Vec<f64>>()
    };
    let line = |name: &str, tool: usize| {
        let (low, high) = quartiles(ratios(tool));
        format!(
            "| {name} | {:.0} | {:+.0} | {:.2} ({low:.2}–{high:.2}) |\n",
            median(column(tool)),
            median(beyond(tool)),
            median(ratios(tool)),
        )
    };
    Ok(format!(
        "## What a run costs

`true`, thousands of times; microseconds per run of the whole tool, start-up
left out by taking the difference of calls with {MANY} and {FEW} runs. The bare
loop is fork, exec and wait by Rust's standard library and measures nothing.
Medians of {ROUNDS} rounds in which all take turns; the ratio is paired, with
its quartiles.

| | µs per run | beyond the bare loop | over hyperfine |
|---|---|---|---|
{}{}{}{}",
        line("bare loop", 0),
        line("hyperfine -N", 1),
        line("pinwise --store none", 2),
        line("pinwise, every run stored", 3),
    ))
}

/// Microseconds per run from the difference of a long and a short call.
fn slope_us(call: impl Fn(usize) -> Result<f64>) -> Result<f64> {
    let few = call(FEW)?;
    let many = call(MANY)?;
    Ok(1e6 * (many - few) / (MANY - FEW) as f64)
}

fn hyperfine(runs: usize) -> Result<f64> {
    let mut command = Command::new("hyperfine");
    command.args(["-N", "-w", "2", "-r", &runs.to_string(), "true"]);
    Ok(measure(&mut command)?.wall.as_secs_f64())
}

/// Two arms, so half of the runs each; a precision that is never reached.
fn pinwise(setting: &Setting, runs: usize, store: &str) -> Result<f64> {
    let mut command = Command::new(&setting.pinwise);
    let per_arm = (runs / 2).to_string();
    command.args([
        "--store",
        store,
        "compare",
        "--self",
        "--warmup",
        "1",
        "--precision",
        "0.0001%",
    ]);
    command.args(["--max-runs", &per_arm, "--", "true"]);
    Ok(measure(&mut command)?.wall.as_secs_f64())
}

fn bare_us() -> Result<f64> {
    let started = Instant::now();
    for _ in 0..MANY - FEW {
        Command::new("true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
    }
    Ok(1e6 * started.elapsed().as_secs_f64() / (MANY - FEW) as f64)
}
