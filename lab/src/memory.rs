//! Memory bandwidth: our probes and kernels, the four STREAM loops,
//! likwid-bench and sysbench.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Setting;
use crate::process::{compile, read_record};
use crate::rounds::{format_quartiles, median};
use crate::table::Table;
use xtask::programs::{find_or_install, read_output};

const ROUNDS: usize = 8;
/// Bytes of an array, all threads together: far more than any cache here.
const ARRAY: usize = 256 << 20;
const PASSES: &str = "10";
const BATCHES: &str = "30";
/// Runs of a kernel, of which the best counts, and their units of work per thread: about as much as
/// STREAM's passes.
const KERNEL_RUNS: usize = 5;
const KERNEL_WORK: usize = 6;

/// Our own tools.
const PROBE: &str = "probe";
const KERNEL: &str = "kernel";

/// A loop, its arrays, and the fastest kernels of likwid-bench for it.
const LOOPS: [(&str, usize, [&str; 4]); 4] = [
    (
        "read",
        1,
        ["load_avx", "load_avx512", "load_mem", "load_sse"],
    ),
    (
        "write",
        1,
        [
            "store_mem_avx",
            "store_mem_avx512",
            "store_mem",
            "store_avx512",
        ],
    ),
    (
        "copy",
        2,
        ["copy_mem_avx", "copy_mem_avx512", "copy_mem", "copy_avx512"],
    ),
    (
        "triad",
        3,
        [
            "stream_mem_avx",
            "stream_mem_avx_fma",
            "stream_mem_avx512",
            "stream_mem",
        ],
    ),
];

/// GB/s by tool, in the order of the rounds.
type Figures = BTreeMap<&'static str, Vec<f64>>;

pub(crate) fn run(setting: &Setting) -> Result<()> {
    find_or_install("likwid-bench", "likwid")?;
    find_or_install("sysbench", "sysbench")?;
    let options = ["-O3", "-march=native", "-fopenmp"];
    let stream = compile(setting.folder.path(), "stream.c", "stream", &options)?;
    let mut table = Table::new(
        "memory-bandwidth",
        "loop | threads | probe | kernel | STREAM | likwid-bench | sysbench | \
         probe over best of others | kernel over best of others",
    );
    let cpus = std::thread::available_parallelism()?.get();
    for threads in [1, 2].into_iter().filter(|&threads| threads <= cpus) {
        let kernels = choose_likwid(threads)?;
        let mut figures: [Figures; 4] = Default::default();
        for round in 0..ROUNDS {
            for turn in 0..5 {
                match (round + turn) % 5 {
                    0 => probe_loops(threads, &mut figures)?,
                    4 => measure_kernels(&setting.pinwise, threads, &mut figures)?,
                    1 => measure_openmp_stream(&stream, threads, &mut figures)?,
                    2 => measure_likwid(&kernels, threads, &mut figures)?,
                    _ => measure_sysbench(threads, &mut figures)?,
                }
            }
        }
        for (number, (name, ..)) in LOOPS.iter().enumerate() {
            table.add_row(format_row(name, threads, &figures[number], kernels[number]));
        }
    }
    table.publish()
}

fn format_row(name: &str, threads: usize, figures: &Figures, kernel: &str) -> String {
    let shown = |tool: &str| {
        figures
            .get(tool)
            .map_or("–".to_owned(), |values| format!("{:.1}", median(values)))
    };
    let ratio = |tool: &str| format_quartiles(&ratio_to_best_peer(figures, tool), 2);
    format!(
        "{name} | {threads} | {} | {} | {} | {} ({kernel}) | {} | {} | {}",
        shown(PROBE),
        shown(KERNEL),
        shown("STREAM"),
        shown("likwid-bench"),
        shown("sysbench"),
        ratio(PROBE),
        ratio(KERNEL),
    )
}

/// A tool's figure over the best of the peers', round by round.
fn ratio_to_best_peer(figures: &Figures, tool: &str) -> Vec<f64> {
    let others: Vec<&Vec<f64>> = figures
        .iter()
        .filter(|(tool, _)| ![PROBE, KERNEL].contains(*tool))
        .map(|(_, values)| values)
        .collect();
    let own = figures[tool].iter().enumerate();
    own.map(|(round, own)| {
        let best = others.iter().map(|values| values[round]);
        own / best.fold(0.0, f64::max)
    })
    .collect()
}

/// Runs a probe in a process of its own and returns its repetitions.
pub(crate) fn run_probe(batches: &str, repetitions: usize, probe: &str) -> Result<Vec<Value>> {
    let mut command = Command::new(std::env::current_exe()?);
    let text = read_output(command.args(["probes", batches, &repetitions.to_string(), probe]))?;
    text.lines()
        .map(|line| serde_json::from_str(line).context("probes printed no JSON"))
        .collect()
}

/// The median of a repetition's first probe.
pub(crate) fn read_estimate(repetition: &Value) -> Result<f64> {
    let batches = &repetition["probes"][0];
    let values = batches["values"].as_array().context("no values")?;
    let values: Vec<f64> = values.iter().filter_map(Value::as_f64).collect();
    if values.is_empty() {
        bail!("a probe gave no values: {batches}");
    }
    Ok(median(&values))
}

fn add_figure(figures: &mut Figures, tool: &'static str, value: f64) {
    figures.entry(tool).or_default().push(value);
}

fn list_cpus(threads: usize) -> String {
    format!("0-{}", threads - 1)
}

fn probe_loops(threads: usize, figures: &mut [Figures; 4]) -> Result<()> {
    for (figures, (name, ..)) in figures.iter_mut().zip(LOOPS) {
        let what = format!("{name}:{}:{}", list_cpus(threads), ARRAY / threads);
        let batches = run_probe(BATCHES, 1, &what)?;
        add_figure(figures, PROBE, read_estimate(&batches[0])?);
    }
    Ok(())
}

/// Each kernel in arrays as large as the others', bound to the same CPUs.
fn measure_kernels(pinwise: &Path, threads: usize, figures: &mut [Figures; 4]) -> Result<()> {
    for (figures, (name, arrays, _)) in figures.iter_mut().zip(LOOPS) {
        let mut best: f64 = 0.0;
        for _ in 0..KERNEL_RUNS {
            let mut command = Command::new(pinwise);
            command
                .args(["bench", "kernel", name, "--format", "json"])
                .args(["--threads", &threads.to_string()])
                .args(["--bind", &list_cpus(threads)])
                .args(["--size", &(arrays * ARRAY).to_string()])
                .args(["--work", &(KERNEL_WORK * threads).to_string()]);
            let record: Value = read_record(&mut command)?;
            let speed = record["bytes_per_s"].as_f64();
            best = best.max(speed.context("the kernel reported no bytes")? / 1e9);
        }
        add_figure(figures, KERNEL, best);
    }
    Ok(())
}

fn measure_openmp_stream(stream: &Path, threads: usize, figures: &mut [Figures; 4]) -> Result<()> {
    let mut command = Command::new(stream);
    command
        .args([&ARRAY.to_string(), PASSES])
        .env("OMP_NUM_THREADS", threads.to_string())
        .env("OMP_PROC_BIND", "true")
        .env("OMP_PLACES", "{0},{1}")
        .stderr(Stdio::null());
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for (figures, (name, ..)) in figures.iter_mut().zip(LOOPS) {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let best = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        let best = best.with_context(|| format!("the STREAM loops did not report {name}"))?;
        add_figure(figures, "STREAM", best);
    }
    Ok(())
}

/// The fastest of likwid-bench's kernels for each loop, by two runs each. Kernels with instructions
/// that this CPU lacks fail and are left out.
fn choose_likwid(threads: usize) -> Result<[&'static str; 4]> {
    let mut chosen = [""; 4];
    for (chosen, (name, arrays, kernels)) in chosen.iter_mut().zip(LOOPS) {
        let speed = |kernel: &str| {
            let runs = (0..2).filter_map(|_| measure_likwid_kernel(kernel, arrays, threads).ok());
            runs.fold(0.0, f64::max)
        };
        let best = kernels
            .into_iter()
            .map(|kernel| (speed(kernel), kernel))
            .max_by(|one, other| one.0.total_cmp(&other.0));
        *chosen = best
            .filter(|(speed, _)| *speed > 0.0)
            .with_context(|| format!("likwid-bench runs no kernel for {name}"))?
            .1;
    }
    Ok(chosen)
}

fn measure_likwid(
    kernels: &[&'static str; 4],
    threads: usize,
    figures: &mut [Figures; 4],
) -> Result<()> {
    for ((figures, kernel), (_, arrays, _)) in figures.iter_mut().zip(kernels).zip(LOOPS) {
        add_figure(
            figures,
            "likwid-bench",
            measure_likwid_kernel(kernel, arrays, threads)?,
        );
    }
    Ok(())
}

fn measure_likwid_kernel(kernel: &str, arrays: usize, threads: usize) -> Result<f64> {
    let megabytes = arrays * ARRAY / 1_000_000;
    let mut command = Command::new("likwid-bench");
    command
        .args(["-t", kernel, "-i", PASSES, "-w"])
        .arg(format!("S0:{megabytes}MB:{threads}"))
        .stderr(Stdio::null());
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let speed = text.lines().find_map(|line| line.strip_prefix("MByte/s:"));
    let speed: f64 = speed
        .with_context(|| format!("likwid-bench -t {kernel} failed ({})", output.status))?
        .trim()
        .parse()?;
    Ok(speed / 1e3)
}

/// sysbench has no copy and no triad.
fn measure_sysbench(threads: usize, figures: &mut [Figures; 4]) -> Result<()> {
    for (figures, operation) in figures.iter_mut().zip(["read", "write"]) {
        let mut command = Command::new("taskset");
        command
            .args(["-c", &list_cpus(threads), "sysbench", "memory", "run"])
            .args([
                "--memory-scope=local",
                "--memory-total-size=100T",
                "--time=1",
            ])
            .arg(format!("--memory-oper={operation}"))
            .arg(format!("--memory-block-size={}", ARRAY / threads))
            .arg(format!("--threads={threads}"));
        let text = read_output(&mut command)?;
        let speed = text
            .lines()
            .find_map(|line| line.split_once("transferred (")?.1.split_once(" MiB/sec"))
            .context("sysbench did not report its speed")?;
        let mebibytes: f64 = speed.0.parse()?;
        add_figure(figures, "sysbench", mebibytes * 1.048_576 / 1e3);
    }
    Ok(())
}
