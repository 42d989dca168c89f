//! The scatter and the cost of estimates of the latency between two CPUs, on an idle machine and on
//! one where every CPU is busy.
//!
//! In a virtual machine the CPUs move, so sorted estimates are first split into states wherever
//! neighbours differ by more than a factor.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::Setting;
use crate::memory::{read_estimate, run_probe};
use crate::process::{BUSY, Group};
use crate::rounds::median;
use crate::table::Table;
use xtask::programs::{cargo, find, step, target};

/// Estimates of one run of pinwise, which takes turns with the peer.
const REPETITIONS: usize = 20;
/// Estimates of one turn of the peer, which takes up to a second for each.
const PEER_REPETITIONS: usize = 5;
const ROUNDS: usize = 10;
const BATCHES: &str = "30";
/// Neighbours that differ by a larger factor belong to different states.
const GAP: f64 = 1.5;
/// Minimum number of a state's estimates for their scatter.
const MIN_STATE_ESTIMATES: usize = 10;

/// Estimates of a tool and their costs.
#[derive(Default)]
struct Series {
    ns: Vec<f64>,
    wall_ms: Vec<f64>,
    cpu_ms: Vec<f64>,
}

pub(crate) fn run(_: &Setting) -> Result<()> {
    let peer = find_or_install_peer();
    let mut table = Table::new(
        "pair-latency",
        "tool | range, ns | states: ns, estimates, p90/p10 | wall, ms | CPU, ms | 120 pairs, s",
    );
    for load in ["idle", "busy"] {
        let busy = if load == "busy" {
            start_on_all_cpus()?
        } else {
            Vec::new()
        };
        let (mut own, mut other) = (Series::default(), Series::default());
        for _ in 0..ROUNDS {
            measure_own(&mut own)?;
            if let Ok(peer) = &peer {
                measure_peer(peer, &mut other)?;
            }
        }
        drop(busy);
        table.add_row(format_row(&format!("pinwise, {load}"), &own)?);
        if peer.is_ok() {
            table.add_row(format_row(
                &format!("core-to-core-latency, {load}"),
                &other,
            )?);
        }
    }
    if let Err(error) = peer {
        println!("\ncore-to-core-latency could not be installed ({error}).");
    }
    table.publish()
}

fn format_row(name: &str, series: &Series) -> Result<String> {
    let mut sorted = series.ns.clone();
    sorted.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else {
        bail!("{name} gave no estimates");
    };
    let states: Vec<String> = sorted
        .chunk_by(|one, next| next / one <= GAP)
        .map(|state| {
            let at = |tenths: usize| state[(state.len() - 1) * tenths / 10];
            let spread = if state.len() < MIN_STATE_ESTIMATES {
                "–".to_owned()
            } else {
                format!("{:.2}", at(9) / at(1))
            };
            format!("{:.1}, {}, {spread}", at(5), state.len())
        })
        .collect();
    let cpu = if series.cpu_ms.is_empty() {
        "–".to_owned()
    } else {
        format!("{:.1}", median(&series.cpu_ms))
    };
    let wall = median(&series.wall_ms);
    let mean = series.wall_ms.iter().sum::<f64>() / series.wall_ms.len() as f64;
    Ok(format!(
        "{name} | {first:.1}–{last:.1} | {} | {wall:.1} | {cpu} | {:.2}",
        states.join("; "),
        0.12 * mean
    ))
}

fn measure_own(series: &mut Series) -> Result<()> {
    for repetition in run_probe(BATCHES, REPETITIONS, "transfer:0:1")? {
        series.ns.push(read_estimate(&repetition)?);
        let time = |key: &str| repetition[key].as_f64().context("no time");
        series.wall_ms.push(time("wall_ms")?);
        series.cpu_ms.push(time("cpu_ms")?);
    }
    Ok(())
}

/// The peer is started once per estimate, as it makes all pairs once.
fn measure_peer(peer: &Path, series: &mut Series) -> Result<()> {
    for _ in 0..PEER_REPETITIONS {
        let started = Instant::now();
        let mut command = Command::new(peer);
        command.args(["1000", "300", "--cores", "0,1", "--csv"]);
        let output = command.stderr(Stdio::null()).output()?;
        series.wall_ms.push(1e3 * started.elapsed().as_secs_f64());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let ns = text
            .split([',', '\n'])
            .find_map(|field| field.trim().parse::<f64>().ok())
            .context("core-to-core-latency printed no figure")?;
        series.ns.push(ns);
    }
    Ok(())
}

/// Path of the peer, built from crates.io if necessary.
fn find_or_install_peer() -> Result<PathBuf> {
    if let Some(found) = find("core-to-core-latency") {
        return Ok(found);
    }
    let folder = target().join("lab/peers");
    let program = folder.join("bin/core-to-core-latency");
    if !program.is_file() {
        let mut install = cargo(&[
            "install",
            "core-to-core-latency@1.2.0",
            "--locked",
            "--root",
        ]);
        step(install.arg(&folder).env_remove("CARGO_TARGET_DIR"))?;
    }
    if !program.is_file() {
        bail!("it was installed elsewhere");
    }
    Ok(program)
}

/// Starts processes that keep all CPUs busy.
fn start_on_all_cpus() -> Result<Vec<Group>> {
    let mut busy = Vec::new();
    for cpu in 0..std::thread::available_parallelism()?.get() {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu.to_string(), "sh", "-c", BUSY]);
        busy.push(Group::start(&mut command)?);
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    Ok(busy)
}
