//! Kernels of numbers: time of a unit, what instruction sets are worth, and
//! transforms and the Mandelbrot set beside C.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Setting;
use super::process::{median, quartiles};
use crate::programs::{find, output, root, step};

const ROUNDS: usize = 11;
/// Units of a run: about a tenth of a second.
const UNITS: u64 = 10;
const NAMES: [&str; 20] = [
    "integer",
    "fibonacci",
    "napierian",
    "eratosthenes",
    "quicksort",
    "mean-sd",
    "whetstone",
    "fft",
    "mandelbrot",
    "pi",
    "chase",
    "shared-counter",
    "producer-consumer",
    "tree",
    "tiff-rotate90",
    "tiff-rotate",
    "tiff-blur",
    "png-rotate90",
    "png-rotate",
    "png-blur",
];

/// Points of a transform, and the sequences of a unit of pinwise's kernel.
const TRANSFORMS: [(usize, usize); 3] = [(1 << 10, 586), (1 << 15, 13), (1 << 20, 1)];
const SIDES: [usize; 2] = [640, 1000];

pub(super) fn run(setting: &Setting) -> Result<String> {
    let units = units(&setting.pinwise)?;
    let beside = beside(&setting.pinwise, setting.folder.path())?;
    Ok(format!(
        "## Kernels

One thread, medians of {ROUNDS} rounds in which all take turns; ratios are taken
within a round and shown with their quartiles. A unit is meant to take about
10 ms. The last column is the rate of `--isa native` over that of `--isa v1`.

| kernel | a unit, ms | native over v1 |
|---|---|---|
{units}
The same work in C (`xtask/src/bench/fft.c`, `mandelbrot.c`, `gcc -O3
-march=native`), speed of pinwise over that of C. *fft*: Stockham's transform of
radix 4 with tables against rustfft; the checksums are equal. *mandelbrot*: as
it is defined, one point after the other, and by pinwise's own method, several
points at once in arrays. pinwise counts the same on every machine and therefore
never fuses a multiplication with an addition; gcc does, unless
given `-ffp-contract=off`, which saves it two of seven operations.

| work | pinwise, ms | C, ms | pinwise over C |
|---|---|---|---|
{beside}"
    ))
}

/// Seconds of a run, and its checksum.
fn kernel(
    pinwise: &Path,
    name: &str,
    size: Option<usize>,
    isa: &str,
    units: u64,
) -> Result<(f64, String)> {
    let mut command = Command::new(pinwise);
    command
        .args(["bench", "kernel", name, "--isa", isa, "--format", "json"])
        .args(["--work", &units.to_string()]);
    if let Some(size) = size {
        command.args(["--size", &size.to_string()]);
    }
    let record: Value = serde_json::from_str(&output(&mut command)?)?;
    let seconds = record["seconds"].as_f64().context("no seconds")?;
    let checksum = record["checksum"].as_str().context("no checksum")?;
    Ok((seconds, checksum.to_owned()))
}

fn shown_ratio(ratios: Vec<f64>) -> String {
    let (low, high) = quartiles(ratios.clone());
    format!("{:.2} ({low:.2}–{high:.2})", median(ratios))
}

fn units(pinwise: &Path) -> Result<String> {
    let mut taken = vec![(Vec::new(), Vec::new()); NAMES.len()];
    for _ in 0..ROUNDS {
        for (name, (native, ratios)) in NAMES.iter().zip(&mut taken) {
            let (baseline, first) = kernel(pinwise, name, None, "v1", UNITS)?;
            let (seconds, second) = kernel(pinwise, name, None, "native", UNITS)?;
            if first != second {
                bail!("{name} gives another checksum with v1 than with native");
            }
            native.push(seconds * 1e3 / UNITS as f64);
            ratios.push(baseline / seconds);
        }
    }
    let rows = NAMES.iter().zip(taken).map(|(name, (native, ratios))| {
        format!(
            "| {name} | {:.1} | {} |\n",
            median(native),
            shown_ratio(ratios)
        )
    });
    Ok(rows.collect())
}

fn compile(folder: &Path, source: &str, name: &str, options: &[&str]) -> Result<PathBuf> {
    let compiler = find("gcc").or_else(|| find("cc"));
    let compiler = compiler.context("gcc is missing: install it with `apt-get install gcc`")?;
    let program = folder.join(name);
    let mut command = Command::new(compiler);
    command
        .args(["-O3", "-march=native"])
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(root().join("xtask/src/bench").join(source))
        .arg("-lm");
    step(&mut command)?;
    Ok(program)
}

/// Seconds that a program says, and what it says last.
fn output_text(program: &Path, arguments: &[usize]) -> Result<(f64, String)> {
    let mut command = Command::new(program);
    let text = output(command.args(arguments.iter().map(usize::to_string)))?;
    let mut words = text.split_whitespace();
    let seconds = words.next().context("the C program printed nothing")?;
    let last = words.next_back().unwrap_or_default();
    Ok((seconds.parse()?, last.to_owned()))
}

/// One line of the comparison with C.
struct Case {
    name: String,
    kernel: &'static str,
    size: usize,
    program: PathBuf,
    arguments: Vec<usize>,
    /// Must both print the same checksum?
    is_checked: bool,
}

fn cases(folder: &Path) -> Result<Vec<Case>> {
    let units = usize::try_from(UNITS)?;
    let fft = compile(folder, "fft.c", "fft", &[])?;
    let mut cases: Vec<Case> = TRANSFORMS
        .into_iter()
        .map(|(points, rounds)| Case {
            name: format!("fft, {points} points"),
            kernel: "fft",
            size: points,
            program: fft.clone(),
            arguments: vec![points, rounds, units],
            is_checked: true,
        })
        .collect();
    let ways: [(&str, &str, &str, &[&str]); 3] = [
        ("mandelbrot_plain.c", "mandelbrot-plain", "as defined", &[]),
        (
            "mandelbrot.c",
            "mandelbrot-exact",
            "same method, -ffp-contract=off",
            &["-ffp-contract=off"],
        ),
        ("mandelbrot.c", "mandelbrot", "same method, fused", &[]),
    ];
    for (source, program, way, options) in ways {
        let program = compile(folder, source, program, options)?;
        for side in SIDES {
            cases.push(Case {
                name: format!("mandelbrot, {side} × {side}, C {way}"),
                kernel: "mandelbrot",
                size: side,
                program: program.clone(),
                arguments: vec![side, units],
                is_checked: false,
            });
        }
    }
    Ok(cases)
}

fn beside(pinwise: &Path, folder: &Path) -> Result<String> {
    let cases = cases(folder)?;
    let mut taken = vec![(Vec::new(), Vec::new()); cases.len()];
    for round in 0..ROUNDS {
        for (case, (own, other)) in cases.iter().zip(&mut taken) {
            let ours = || kernel(pinwise, case.kernel, Some(case.size), "native", UNITS);
            let theirs = || output_text(&case.program, &case.arguments);
            let (ours, theirs) = if round % 2 == 0 {
                (ours()?, theirs()?)
            } else {
                let theirs = theirs()?;
                (ours()?, theirs)
            };
            if case.is_checked && ours.1 != theirs.1 {
                bail!("{}: C gives another checksum than pinwise", case.name);
            }
            own.push(ours.0 * 1e3 / UNITS as f64);
            other.push(theirs.0 * 1e3 / UNITS as f64);
        }
    }
    let rows = cases.iter().zip(taken).map(|(case, (own, other))| {
        let ratios = own.iter().zip(&other).map(|(own, other)| other / own);
        format!(
            "| {} | {:.2} | {:.2} | {} |\n",
            case.name,
            median(own.clone()),
            median(other.clone()),
            shown_ratio(ratios.collect())
        )
    });
    Ok(rows.collect())
}
