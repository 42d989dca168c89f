//! The location of pages by `trace` and by `numastat -p`, and the cost of reading it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::Setting;
use crate::process::read_record;
use crate::table::Table;
use xtask::programs::{find_or_install, read_output};

/// Memory of the observed processes, MiB.
const SIZES: [usize; 4] = [16, 256, 1024, 4096];
/// Seconds of a trace.
const SECONDS: &str = "20s";

pub(crate) fn run(setting: &Setting) -> Result<()> {
    find_or_install("numastat", "numactl")?;
    let mut table = Table::new(
        "page-places",
        "memory, MiB | pinwise, MiB | numastat, MiB | difference | looks | own",
    );
    for size in SIZES {
        let holder = Holder::start(size)?;
        let pid = holder.0.id().to_string();
        let mut trace = Command::new(&setting.pinwise);
        trace.args(["-q", "--store", "none", "--format", "json", "trace"]);
        trace.args(["--tier", "proc", "--for", SECONDS, "--pid", &pid]);
        let record = read_record(&mut trace)?;
        let theirs = read_output(Command::new("numastat").args(["-p", &pid]))?;
        let memory = &record["memory"];
        let nodes = memory["nodes"].as_array().context("no nodes")?;
        let ours: u64 = nodes
            .iter()
            .filter_map(|node| node["last_bytes"].as_u64())
            .sum();
        let ours = ours as f64 / f64::from(1 << 20);
        let own = record["cost"]["own_cpu_s"].as_f64().context("no cost")?;
        let elapsed = record["elapsed_s"].as_f64().context("no length")?;
        let theirs = parse_total(&theirs).context("numastat has no total")?;
        table.add_row(format!(
            "{size} | {ours:.2} | {theirs:.2} | {:+.3} % | {} | {:.2} %",
            100.0 * (ours / theirs - 1.0),
            memory["looks"],
            100.0 * own / elapsed,
        ));
    }
    table.publish()
}

/// The last number of numastat's last line.
fn parse_total(table: &str) -> Option<f64> {
    let line = table.lines().rev().find(|line| line.starts_with("Total"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// A process that has written to all of its memory.
struct Holder(Child);

impl Holder {
    fn start(mib: usize) -> Result<Self> {
        let script = format!("held = b'x' * ({mib} << 20); print('held', flush=True); input()");
        let mut child = Command::new("python3")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("python3")?;
        let mut line = String::new();
        let out = child.stdout.take().context("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        Ok(Self(child))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            let _ = input.write_all(b"\n");
        }
        let _ = self.0.wait();
    }
}
