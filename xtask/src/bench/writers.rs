//! Many writers to one PostgreSQL store, beside plain inserts on the same
//! server.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::process::{median, quartiles};
use super::{Setting, library_benchmark};
use crate::programs::{output, root};

const WRITERS: usize = 64;
const RUNS: usize = 1_000;
const ROUNDS: usize = 5;
/// Seconds of a round of single inserts.
const INSERTS_S: &str = "5";

/// A server that is gone with its owner.
struct Server {
    folder: PathBuf,
}

impl Server {
    /// With the settings that a server has when nobody changed any, but for the
    /// number of connections.
    fn start() -> Result<(Self, String)> {
        // Not in the scratch folder: the server's user may not reach that.
        let server = Self {
            folder: tempfile::tempdir()?.keep(),
        };
        let mut up = server.script("up.sh");
        up.args(["fsync=on", "full_page_writes=on"]);
        let url = output(&mut up).context("starting PostgreSQL")?;
        Ok((server, url.trim().to_owned()))
    }

    fn script(&self, name: &str) -> Command {
        let mut command = Command::new(root().join("tests/env/postgres").join(name));
        command.arg(&self.folder);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.script("down.sh").status();
    }
}

pub(super) fn run(setting: &Setting) -> Result<String> {
    let (server, url) = Server::start()?;
    let version = psql(&url, "SHOW server_version")?;
    psql(
        &url,
        "CREATE TABLE peer (record text, number int, arm int, body text)",
    )?;
    let script = setting.folder.path().join("insert.sql");
    let mut rates: [Vec<f64>; 3] = Default::default();
    let mut last = Value::Null;
    for _ in 0..ROUNDS {
        let (writers, runs) = (WRITERS.to_string(), RUNS.to_string());
        let output_text = library_benchmark("writers", &[&url, &writers, &runs])?;
        last = serde_json::from_str(&output_text).with_context(|| output_text.clone())?;
        rates[0].push(last["runs_per_s"].as_f64().unwrap_or_default());
        let bytes = last["run_bytes"].as_u64().unwrap_or_default();
        std::fs::write(
            &script,
            format!("INSERT INTO peer VALUES ('id', 1, 1, repeat('x', {bytes}));\n"),
        )?;
        rates[1].push(single_inserts(&server, &script)?);
        rates[2].push(copied(&url, setting, bytes)?);
    }
    let names = [
        format!("pinwise: {WRITERS} writers, {RUNS} runs each, then the whole record"),
        format!("`pgbench`: {WRITERS} clients, one row per INSERT"),
        "`psql`: one `\\copy` of 64,000 rows".to_owned(),
    ];
    let own = median(rates[0].clone());
    let rows: String = names
        .iter()
        .zip(&rates)
        .map(|(name, rates)| {
            let (low, high) = quartiles(rates.clone());
            let middle = median(rates.clone());
            let ratio = own / middle;
            format!("| {name} | {middle:.0} ({low:.0}–{high:.0}) | {ratio:.2} |\n")
        })
        .collect();
    let figure = |name: &str| last[name].as_f64().unwrap_or_default();
    Ok(format!(
        "## Writers to one PostgreSQL store

{WRITERS} connections to PostgreSQL {version} on this machine, over its Unix socket; fsync on,
default settings but `max_connections`. Each writer begins a record, adds {RUNS} runs
of {} bytes and stores the whole, as measuring commands do. Runs or rows per
second, medians of {ROUNDS} rounds that alternate, with quartiles.

| | per second | pinwise over it |
|---|---|---|
{rows}
A run that is added takes {:.0} μs in the middle, {:.0} μs at the 99th percentile and
{:.0} ms at most, with all {WRITERS} writers on the same CPUs as the server (last round).
",
        figure("run_bytes"),
        figure("median_us"),
        figure("p99_us"),
        figure("longest_us") / 1e3,
    ))
}

fn psql(url: &str, sql: &str) -> Result<String> {
    let mut command = Command::new("psql");
    command.args([
        url,
        "-X",
        "-q",
        "-A",
        "-t",
        "-v",
        "ON_ERROR_STOP=1",
        "-c",
        sql,
    ]);
    Ok(output(&mut command)?.trim().to_owned())
}

/// Transactions per second of clients that insert a row each.
fn single_inserts(server: &Server, script: &Path) -> Result<f64> {
    let clients = WRITERS.to_string();
    let mut command = Command::new(pgbench()?);
    command
        .args([
            "-n", "-c", &clients, "-j", "2", "-T", INSERTS_S, "-U", "postgres", "-h",
        ])
        .arg(&server.folder)
        .arg("-f")
        .arg(script)
        .arg("postgres");
    let output_text = output(&mut command)?;
    let line = output_text
        .lines()
        .find_map(|line| line.strip_prefix("tps = "));
    let rate = line.and_then(|line| line.split(' ').next()?.parse().ok());
    rate.with_context(|| format!("pgbench printed no rate: {output_text}"))
}

fn pgbench() -> Result<PathBuf> {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "command -v pgbench || ls /usr/lib/postgresql/*/bin/pgbench | sort -V | tail -1",
    ]);
    Ok(PathBuf::from(output(&mut command)?.trim()))
}

/// Rows per second of one copy from a file.
fn copied(url: &str, setting: &Setting, bytes: u64) -> Result<f64> {
    const ROWS: usize = 64_000;
    let path = setting.folder.path().join("rows.tsv");
    let length = usize::try_from(bytes)?;
    let row = format!("id\t1\t1\t{}\n", "x".repeat(length));
    std::fs::write(&path, row.repeat(ROWS))?;
    let start = std::time::Instant::now();
    psql(url, &format!("\\copy peer FROM '{}'", path.display()))?;
    Ok(ROWS as f64 / start.elapsed().as_secs_f64())
}
