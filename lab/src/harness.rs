//! The cost of a run beyond the command itself, with pinwise, hyperfine and a bare loop of spawn and
//! wait.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Result;

use crate::Setting;
use crate::process::measure;
use crate::rounds::{format_quartiles, median, ratios, take_turns};
use crate::table::Table;
use xtask::programs::find_or_install;

const ROUNDS: usize = 40;
/// Runs in a short and a long call, whose difference does not contain start-up.
const SHORT_CALL_RUNS: usize = 20;
const LONG_CALL_RUNS: usize = 520;

pub(crate) fn run(setting: &Setting) -> Result<()> {
    find_or_install("hyperfine", "hyperfine")?;
    let store = setting.folder.path().join("harness.db");
    let store = format!("sqlite:{}", store.display());
    let tools = [
        "bare loop",
        "hyperfine -N",
        "pinwise --store none",
        "pinwise, every run stored",
    ];
    let times = take_turns(ROUNDS, tools.len(), |tool| match tool {
        0 => measure_bare_loop_us(),
        1 => measure_us(time_hyperfine),
        2 => measure_us(|runs| time_pinwise(setting, runs, "none")),
        _ => measure_us(|runs| time_pinwise(setting, runs, &store)),
    })?;
    let mut table = Table::new(
        "run-cost",
        "tool | µs per run | beyond the bare loop | over hyperfine",
    );
    for (name, own) in tools.iter().zip(&times) {
        let beyond = own.iter().zip(&times[0]).map(|(own, bare)| own - bare);
        table.add_row(format!(
            "{name} | {:.0} | {:+.0} | {}",
            median(own),
            median(&beyond.collect::<Vec<f64>>()),
            format_quartiles(&ratios(own, &times[1]), 2),
        ));
    }
    table.publish()
}

/// Microseconds per run from the difference of a long and a short call.
fn measure_us(call: impl Fn(usize) -> Result<f64>) -> Result<f64> {
    let few = call(SHORT_CALL_RUNS)?;
    let many = call(LONG_CALL_RUNS)?;
    Ok(1e6 * (many - few) / (LONG_CALL_RUNS - SHORT_CALL_RUNS) as f64)
}

fn time_hyperfine(runs: usize) -> Result<f64> {
    let mut command = Command::new("hyperfine");
    command.args(["-N", "-w", "2", "-r", &runs.to_string(), "true"]);
    Ok(measure(&mut command)?.wall.as_secs_f64())
}

/// Two arms, so half of the runs each; a precision that is never reached.
fn time_pinwise(setting: &Setting, runs: usize, store: &str) -> Result<f64> {
    let mut command = Command::new(&setting.pinwise);
    let per_arm = (runs / 2).to_string();
    command.args(["--store", store, "compare", "--self", "--warmup", "1"]);
    command.args([
        "--precision",
        "0.0001%",
        "--max-runs",
        &per_arm,
        "--",
        "true",
    ]);
    Ok(measure(&mut command)?.wall.as_secs_f64())
}

fn measure_bare_loop_us() -> Result<f64> {
    let started = Instant::now();
    for _ in 0..LONG_CALL_RUNS - SHORT_CALL_RUNS {
        Command::new("true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
    }
    Ok(1e6 * started.elapsed().as_secs_f64() / (LONG_CALL_RUNS - SHORT_CALL_RUNS) as f64)
}
