//! The cost of binding a thread: `run --place …/bound`, likwid-pin and unbound threads.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::Setting;
use crate::process::compile;
use crate::rounds::{median, quartiles, take_turns};
use crate::table::Table;
use xtask::programs::read_output;

const ROUNDS: usize = 25;
/// Threads of a run, one after another.
const THREADS: usize = 1000;
/// Threads of a run with likwid-pin, which is slow.
const LIKWID_RUNS: usize = 20;
/// Threads that live at once.
const TOGETHER: usize = 500;

/// The program that binds, and how many threads live at once.
#[derive(Clone, Copy)]
enum BindingCase {
    Native,
    Placed,
    Ours,
    Static,
    StaticNative,
    Likwid,
    TogetherNative,
    Together,
}

const WAYS: [(BindingCase, &str); 8] = [
    (BindingCase::Native, "native, one after another"),
    (BindingCase::Placed, "native, placed by the program itself"),
    (BindingCase::Ours, "pinwise run --place spread/bound"),
    (BindingCase::Likwid, "likwid-pin"),
    (BindingCase::StaticNative, "native, static program"),
    (BindingCase::Static, "pinwise, static program"),
    (BindingCase::TogetherNative, "native, 500 at once"),
    (BindingCase::Together, "pinwise, 500 at once"),
];

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let folder = setting.folder.path();
    let program = compile(folder, "threads.c", "threads", &["-O1", "-pthread"])?;
    let fixed = compile(
        folder,
        "threads.c",
        "threads-static",
        &["-O1", "-pthread", "-static"],
    )?;
    let has_likwid = Command::new("likwid-pin").arg("--version").output().is_ok();
    let times = take_turns(ROUNDS, WAYS.len(), |at| match WAYS[at].0 {
        BindingCase::Likwid if !has_likwid => Ok(None),
        way => measure_us(setting, way, &program, &fixed).map(Some),
    })?;
    let mut table = Table::new(
        "binding",
        "what | µs per thread | beyond native (quartiles) | over native",
    );
    for (at, (way, name)) in WAYS.iter().enumerate() {
        let native = match way {
            BindingCase::Native | BindingCase::Placed | BindingCase::Ours | BindingCase::Likwid => {
                0
            }
            BindingCase::StaticNative | BindingCase::Static => 4,
            BindingCase::TogetherNative | BindingCase::Together => 6,
        };
        let pairs = times[at].iter().zip(&times[native]);
        let pairs = pairs.filter_map(|(own, native)| Some(((*own)?, (*native)?)));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        if pairs.is_empty() {
            table.add_row(format!("{name} | not installed |  | "));
            continue;
        }
        let beyond: Vec<f64> = pairs.iter().map(|(own, native)| own - native).collect();
        let (low, high) = quartiles(&beyond);
        let own: Vec<f64> = pairs.iter().map(|(own, _)| *own).collect();
        let over: Vec<f64> = pairs.iter().map(|(own, native)| own / native).collect();
        table.add_row(format!(
            "{name} | {:.1} | {:+.1} ({low:+.1} to {high:+.1}) | {:.2}",
            median(&own),
            median(&beyond),
            median(&over),
        ));
    }
    table.publish()
}

fn measure_us(setting: &Setting, way: BindingCase, program: &Path, fixed: &Path) -> Result<f64> {
    let number = |many: usize| many.to_string();
    let bound = |program: &Path| {
        let mut command = Command::new(&setting.pinwise);
        command.args(["--quiet", "run", "--place", "spread/bound", "--"]);
        command.arg(program);
        command
    };
    let mut command = match way {
        BindingCase::Native | BindingCase::Placed | BindingCase::TogetherNative => {
            Command::new(program)
        }
        BindingCase::StaticNative => Command::new(fixed),
        BindingCase::Ours | BindingCase::Together => bound(program),
        BindingCase::Static => bound(fixed),
        BindingCase::Likwid => {
            let mut command = Command::new("likwid-pin");
            command.args(["-q", "-c", "N:0-1"]).arg(program);
            command
        }
    };
    match way {
        BindingCase::Likwid => command.arg(number(LIKWID_RUNS)),
        BindingCase::Together | BindingCase::TogetherNative => {
            command.args([&number(TOGETHER), "at-once"])
        }
        BindingCase::Placed => command.args([&number(THREADS), "placed"]),
        _ => command.args([&number(THREADS), "one"]),
    };
    let text = read_output(&mut command)?;
    // likwid-pin prints lines of its own.
    let figure = text.lines().rev().find_map(|line| line.trim().parse().ok());
    figure.with_context(|| format!("{command:?} printed {text:?}"))
}
