//! How long it takes to write a report and to display it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Setting;
use crate::process::measure;
use crate::rounds::{median, take_turns};
use crate::table::Table;
use xtask::programs::read_output;
use xtask::web;

/// Alternating repetitions of each command.
const ROUNDS: usize = 15;

/// Ten arms of a hundred runs; the screening spends more of them on some.
const ARMS: usize = 10;
const RUNS: &str = "100";

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let store = format!("sqlite:{}", setting.folder.path().join("page.db").display());
    store_comparison(setting, &store)?;
    let pinwise = |words: &[&str], to: &str| {
        let mut command = Command::new(&setting.pinwise);
        command.args(["--store", &store]).args(words);
        command.arg("-o").arg(setting.folder.path().join(to));
        command
    };
    let mut export = pinwise(&["record", "show", "last", "--format", "json"], "r.json");
    let mut report = pinwise(&["record", "report", "last"], "r.html");
    let times = take_turns(ROUNDS, 2, |at| {
        let command = if at == 0 { &mut export } else { &mut report };
        Ok(1e3 * measure(command)?.wall.as_secs_f64())
    })?;
    let differences: Vec<f64> = { times[1].iter().zip(&times[0]) }
        .map(|(report, export)| report - export)
        .collect();
    let bytes = |name: &str| read_size(&setting.folder.path().join(name)).map(|bytes| bytes / 1e3);
    let mut table = Table::new("page-written", "command | ms | kB");
    table.add_row(format!(
        "`pinwise record show --format json` | {:.1} | {:.0}",
        median(&times[0]),
        bytes("r.json")?
    ));
    table.add_row(format!(
        "`pinwise record report` | {:.1} | {:.0}",
        median(&times[1]),
        bytes("r.html")?
    ));
    table.add_row(format!(
        "difference, pair by pair | {:.1} | ",
        median(&differences)
    ));
    table.publish()?;
    publish_seen(setting)
}

/// A comparison that uses all its runs.
fn store_comparison(setting: &Setting, store: &str) -> Result<()> {
    let mut command = Command::new(&setting.pinwise);
    command.args(["--machine", "sim:package:1 l3:2 core:8 pu:1"]);
    command.args(["--store", store, "compare", "--seed", "1"]);
    command.args([
        "--max-runs",
        RUNS,
        "--budget",
        "10000s",
        "--precision",
        "0.0001%",
    ]);
    for cpu in 0..ARMS {
        command.arg("--place").arg(format!("cpu:{cpu}"));
    }
    measure(command.args(["--", "prog"]))?;
    Ok(())
}

fn read_size(path: &Path) -> Result<f64> {
    let data = path.metadata();
    let data = data.with_context(|| path.display().to_string())?;
    Ok(data.len() as f64)
}

/// The measurements of the page's own script in a browser, a line of JSON each.
fn publish_seen(setting: &Setting) -> Result<()> {
    let text = read_output(&mut web::bench_command(&setting.pinwise)?)?;
    let mut table = Table::new(
        "page-seen",
        "what a reader waits for | median, ms | 95 of 100 | worst | of",
    );
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let figure: Value = serde_json::from_str(line).context("the page's benchmark")?;
        let what = figure["what"].as_str().unwrap_or_default();
        let ms = |field: &str| figure[field].as_f64().context("a figure without a time");
        table.add_row(format!(
            "{what} | {:.0} | {:.0} | {:.0} | {}",
            ms("ms")?,
            ms("p95")?,
            ms("worst")?,
            figure["count"]
        ));
    }
    table.publish()
}
