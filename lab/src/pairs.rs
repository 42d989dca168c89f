//! The latency between two CPUs, measured again and again, on an idle machine
//! and on one where every CPU is busy: how far do the estimates scatter, and
//! what do they cost?
//!
//! In a virtual machine the CPUs move: estimates are sorted into states first,
//! wherever two neighbours in size are more than half as far apart again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::Setting;
use crate::memory::{estimate, probe};
use crate::process::{BUSY, Group};
use crate::rounds::median;
use crate::table::Table;
use xtask::programs::{cargo, find, step, target};

/// Estimates of one run of a program; runs of the two take turns.
const REPETITIONS: usize = 20;
/// The peer takes up to a second for one.
const PEER_REPETITIONS: usize = 5;
const ROUNDS: usize = 10;
const BATCHES: &str = "30";
/// Neighbours further apart belong to different states.
const GAP: f64 = 1.5;
/// A state of fewer estimates says nothing of how they scatter.
const MIN_STATE_ESTIMATES: usize = 10;

/// Estimates of a tool, and what each cost.
#[derive(Default)]
struct Series {
    ns: Vec<f64>,
    wall_ms: Vec<f64>,
    cpu_ms: Vec<f64>,
}

pub(crate) fn run(_: &Setting) -> Result<()> {
    let peer = peer();
    let mut table = Table::new(
        "pair-latency",
        "tool | range, ns | states: ns, estimates, p90/p10 | wall, ms | CPU, ms | 120 pairs, s",
    );
    for load in ["idle", "busy"] {
        let busy = if load == "busy" {
            occupy()?
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
        table.add_row(row(&format!("pinwise, {load}"), &own)?);
        if peer.is_ok() {
            table.add_row(row(&format!("core-to-core-latency, {load}"), &other)?);
        }
    }
    if let Err(error) = peer {
        println!("\ncore-to-core-latency could not be installed ({error}).");
    }
    table.publish()
}

fn row(name: &str, series: &Series) -> Result<String> {
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
    for repetition in probe(BATCHES, REPETITIONS, "transfer:0:1")? {
        series.ns.push(estimate(&repetition)?);
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
        let output_text = command.stderr(Stdio::null()).output()?;
        series.wall_ms.push(1e3 * started.elapsed().as_secs_f64());
        let text = String::from_utf8_lossy(&output_text.stdout).into_owned();
        let ns = text
            .split([',', '\n'])
            .find_map(|field| field.trim().parse::<f64>().ok())
            .context("core-to-core-latency printed no figure")?;
        series.ns.push(ns);
    }
    Ok(())
}

/// Path of the peer, built from crates.io if necessary.
fn peer() -> Result<PathBuf> {
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

/// Keeps all CPUs busy until dropped.
fn occupy() -> Result<Vec<Group>> {
    let mut busy = Vec::new();
    for cpu in 0..std::thread::available_parallelism()?.get() {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu.to_string(), "sh", "-c", BUSY]);
        busy.push(Group::start(&mut command)?);
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    Ok(busy)
}
