//! Kernels: the time of a unit, the gain by instruction sets, and transforms and the Mandelbrot set
//! compared with C.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Setting;
use crate::process::{compile, read_record};
use crate::rounds::{format_quartiles, median, ratios};
use crate::table::Table;
use xtask::programs::read_output;

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

/// Points of a transform, and the transforms of a unit of pinwise's kernel.
const TRANSFORMS: [(usize, usize); 3] = [(1 << 10, 586), (1 << 15, 13), (1 << 20, 1)];
const SIDES: [usize; 2] = [640, 1000];
/// Options of the C compiler.
const FAST: [&str; 2] = ["-O3", "-march=native"];

pub(crate) fn run(setting: &Setting) -> Result<()> {
    publish_units(&setting.pinwise)?;
    publish_beside(&setting.pinwise, setting.folder.path())
}

/// The seconds and the checksum of a run.
fn run_kernel(
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
    let record: Value = read_record(&mut command)?;
    let seconds = record["seconds"].as_f64().context("no seconds")?;
    let checksum = record["checksum"].as_str().context("no checksum")?;
    Ok((seconds, checksum.to_owned()))
}

fn publish_units(pinwise: &Path) -> Result<()> {
    let mut times = vec![(Vec::new(), Vec::new()); NAMES.len()];
    for _ in 0..ROUNDS {
        for (name, (native, ratios)) in NAMES.iter().zip(&mut times) {
            let (baseline, first) = run_kernel(pinwise, name, None, "v1", UNITS)?;
            let (seconds, second) = run_kernel(pinwise, name, None, "native", UNITS)?;
            if first != second {
                bail!("{name} gives another checksum with v1 than with native");
            }
            native.push(seconds * 1e3 / UNITS as f64);
            ratios.push(baseline / seconds);
        }
    }
    let mut table = Table::new("kernels", "kernel | a unit, ms | native over v1");
    for (name, (native, ratios)) in NAMES.iter().zip(times) {
        table.add_row(format!(
            "{name} | {:.1} | {}",
            median(&native),
            format_quartiles(&ratios, 2)
        ));
    }
    table.publish()
}

/// The seconds and the last word that a program prints.
fn run_program(program: &Path, arguments: &[usize]) -> Result<(f64, String)> {
    let mut command = Command::new(program);
    let text = read_output(command.args(arguments.iter().map(usize::to_string)))?;
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
    /// Both must print the same checksum.
    is_checked: bool,
}

fn list_cases(folder: &Path) -> Result<Vec<Case>> {
    let units = usize::try_from(UNITS)?;
    let fft = compile(folder, "fft.c", "fft", &FAST)?;
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
    let variants = [
        ("mandelbrot_plain.c", "mandelbrot-plain", "as defined", None),
        (
            "mandelbrot.c",
            "mandelbrot-exact",
            "same method, -ffp-contract=off",
            Some("-ffp-contract=off"),
        ),
        ("mandelbrot.c", "mandelbrot", "same method, fused", None),
    ];
    for (source, program, variant, options) in variants {
        let options: Vec<&str> = FAST.into_iter().chain(options).collect();
        let program = compile(folder, source, program, &options)?;
        for side in SIDES {
            cases.push(Case {
                name: format!("mandelbrot, {side} × {side}, C {variant}"),
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

fn publish_beside(pinwise: &Path, folder: &Path) -> Result<()> {
    let cases = list_cases(folder)?;
    let mut times = vec![(Vec::new(), Vec::new()); cases.len()];
    for round in 0..ROUNDS {
        for (case, (own, other)) in cases.iter().zip(&mut times) {
            let ours = || run_kernel(pinwise, case.kernel, Some(case.size), "native", UNITS);
            let theirs = || run_program(&case.program, &case.arguments);
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
    let mut table = Table::new(
        "kernels-beside-c",
        "work | pinwise, ms | C, ms | pinwise over C",
    );
    for (case, (own, other)) in cases.iter().zip(times) {
        table.add_row(format!(
            "{} | {:.2} | {:.2} | {}",
            case.name,
            median(&own),
            median(&other),
            format_quartiles(&ratios(&other, &own), 2)
        ));
    }
    table.publish()
}
