//! A record of 10,000 runs.

use std::process::Command;

use anyhow::Result;

use super::Setting;
use super::process::{measure, median};

const ROUNDS: usize = 9;

pub(super) fn run(setting: &Setting) -> Result<String> {
    let store = format!("sqlite:{}", setting.folder.path().join("many.db").display());
    let compare = |store: &str| {
        let mut command = Command::new(&setting.pinwise);
        command.args(["--machine", "sim:core:2 pu:1", "--store", store, "compare"]);
        command.args(["--place", "os-default", "--place", "cpu:0", "--warmup", "0"]);
        command.args(["--max-runs", "5000", "--precision", "0.0001%", "--", "prog"]);
        command
    };
    let show = || {
        let mut command = Command::new(&setting.pinwise);
        command.args(["--store", &store, "record", "show", "last"]);
        command
    };
    measure(&mut compare(&store))?;
    let mut rows = String::new();
    for (name, command) in [
        ("simulate, analyse at every look, print", compare("none")),
        ("the same, and store every run", compare(&store)),
        ("`pinwise record show` of the record", show()),
    ] {
        let mut command = command;
        let taken = (0..ROUNDS)
            .map(|_| measure(&mut command))
            .collect::<Result<Vec<_>>>()?;
        let wall = median(taken.iter().map(|t| 1e3 * t.wall.as_secs_f64()).collect());
        let peak = taken.iter().map(|t| t.peak_bytes).max().unwrap_or(0);
        rows.push_str(&format!(
            "| {name} | {wall:.0} | {:.0} |\n",
            peak as f64 / 1e6
        ));
    }
    Ok(format!(
        "## A record of 10,000 runs

Two arms of 5,000 runs on a simulated machine; the whole process, medians of
{ROUNDS}.

| | ms | peak MB |
|---|---|---|
{rows}"
    ))
}
