//! The page: how long a report takes to be written and to be seen.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Setting;
use super::process::{measure, median};
use crate::{programs::output, web};

/// Alternating repetitions of each command.
const ROUNDS: usize = 15;

/// Ten arms of a hundred runs; the screening spends more of them on some.
const ARMS: usize = 10;
const RUNS: &str = "100";

pub(super) fn run(setting: &Setting) -> Result<String> {
    let store = format!("sqlite:{}", setting.folder.path().join("page.db").display());
    fill(setting, &store)?;
    let pinwise = |words: &[&str], to: &str| {
        let mut command = Command::new(&setting.pinwise);
        command.args(["--store", &store]).args(words);
        command.arg("-o").arg(setting.folder.path().join(to));
        command
    };
    let mut export = pinwise(&["record", "show", "last", "--format", "json"], "r.json");
    let mut report = pinwise(&["record", "report", "last"], "r.html");
    let mut times = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let exported = 1e3 * measure(&mut export)?.wall.as_secs_f64();
        let reported = 1e3 * measure(&mut report)?.wall.as_secs_f64();
        times.0.push(exported);
        times.1.push(reported);
        times.2.push(reported - exported);
    }
    let bytes = |name: &str| Ok::<_, anyhow::Error>(size(&setting.folder.path().join(name))? / 1e3);
    let rows = seen(setting)?;
    Ok(format!(
        "## The page

A comparison of {ARMS} arms, {RUNS} runs of each on average; whole processes, medians of {ROUNDS}, taken
alternately.

| | ms | kB |
|---|---|---|
| `pinwise record show --format json`: reads the record and writes it | {:.1} | {:.0} |
| `pinwise record report`: the same as one page | {:.1} | {:.0} |
| difference, pair by pair | {:.1} | |

In headless Chromium, without a GPU; the page is a file on disk:

| what a reader waits for | median, ms | 95 of 100 | worst | of |
|---|---|---|---|---|
{rows}
What the page shows beside other tools, and they beside it: [page.md](page.md#beside-other-tools).
",
        median(times.0),
        bytes("r.json")?,
        median(times.1),
        bytes("r.html")?,
        median(times.2),
    ))
}

/// A comparison of this many arms; it takes all its runs.
fn fill(setting: &Setting, store: &str) -> Result<()> {
    let mut command = Command::new(&setting.pinwise);
    command.args([
        "--machine",
        "sim:package:1 l3:2 core:8 pu:1",
        "--store",
        store,
    ]);
    command.args([
        "compare",
        "--seed",
        "1",
        "--max-runs",
        RUNS,
        "--budget",
        "10000s",
    ]);
    command.args(["--precision", "0.0001%"]);
    for cpu in 0..ARMS {
        command.arg("--place").arg(format!("cpu:{cpu}"));
    }
    measure(command.args(["--", "prog"]))?;
    Ok(())
}

fn size(path: &Path) -> Result<f64> {
    let data = path.metadata();
    let data = data.with_context(|| path.display().to_string())?;
    Ok(data.len() as f64)
}

/// What the page's own script measures in a browser: a line of JSON for each
/// figure.
fn seen(setting: &Setting) -> Result<String> {
    let output_text = output(&mut web::bench(&setting.pinwise)?)?;
    let mut rows = String::new();
    for line in output_text.lines().filter(|line| line.starts_with('{')) {
        let figure: Value = serde_json::from_str(line).context("the page's benchmark")?;
        let what = figure["what"].as_str().unwrap_or_default();
        let ms = |field: &str| figure[field].as_f64().context("a figure without a time");
        rows.push_str(&format!(
            "| {what} | {:.0} | {:.0} | {:.0} | {} |\n",
            ms("ms")?,
            ms("p95")?,
            ms("worst")?,
            figure["count"]
        ));
    }
    Ok(rows)
}
