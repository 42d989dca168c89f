//! What binding costs a thread: `run --place …/bound`, beside likwid-pin and unbound threads.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::Setting;
use crate::process::compile;
use crate::rounds::{median, quartiles, take_turns};
use crate::table::Table;
use xtask::programs::output;

const ROUNDS: usize = 25;
/// Threads of a run, one after another.
const THREADS: usize = 1000;
/// Runs with likwid-pin, which takes its time.
const LIKWID_RUNS: usize = 20;
/// Threads that live at once.
const TOGETHER: usize = 500;

/// Who binds, and how many threads.
#[derive(Clone, Copy)]
enum Way {
    Native,
    Placed,
    Ours,
    Static,
    StaticNative,
    Likwid,
    TogetherNative,
    Together,
}

const WAYS: [(Way, &str); 8] = [
    (Way::Native, "native, one after another"),
    (Way::Placed, "native, placed by the program itself"),
    (Way::Ours, "pinwise run --place spread/bound"),
    (Way::Likwid, "likwid-pin"),
    (Way::StaticNative, "native, static program"),
    (Way::Static, "pinwise, static program"),
    (Way::TogetherNative, "native, 500 at once"),
    (Way::Together, "pinwise, 500 at once"),
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
    let taken = take_turns(ROUNDS, WAYS.len(), |at| match WAYS[at].0 {
        Way::Likwid if !has_likwid => Ok(None),
        way => microseconds(setting, way, &program, &fixed).map(Some),
    })?;
    let mut table = Table::new(
        "binding",
        "what | µs per thread | beyond native (quartiles) | over native",
    );
    for (at, (way, name)) in WAYS.iter().enumerate() {
        let native = match way {
            Way::Native | Way::Placed | Way::Ours | Way::Likwid => 0,
            Way::StaticNative | Way::Static => 4,
            Way::TogetherNative | Way::Together => 6,
        };
        let pairs = taken[at].iter().zip(&taken[native]);
        let pairs = pairs.filter_map(|(own, native)| Some(((*own)?, (*native)?)));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        if pairs.is_empty() {
            table.row(format!("{name} | not installed |  | "));
            continue;
        }
        let beyond: Vec<f64> = pairs.iter().map(|(own, native)| own - native).collect();
        let (low, high) = quartiles(&beyond);
        let own: Vec<f64> = pairs.iter().map(|(own, _)| *own).collect();
        let over: Vec<f64> = pairs.iter().map(|(own, native)| own / native).collect();
        table.row(format!(
            "{name} | {:.1} | {:+.1} ({low:+.1} to {high:+.1}) | {:.2}",
            median(&own),
            median(&beyond),
            median(&over),
        ));
    }
    table.publish()
}

fn microseconds(setting: &Setting, way: Way, program: &Path, fixed: &Path) -> Result<f64> {
    let number = |many: usize| many.to_string();
    let bound = |program: &Path| {
        let mut command = Command::new(&setting.pinwise);
        command.args(["--quiet", "run", "--place", "spread/bound", "--"]);
        command.arg(program);
        command
    };
    let mut command = match way {
        Way::Native | Way::Placed | Way::TogetherNative => Command::new(program),
        Way::StaticNative => Command::new(fixed),
        Way::Ours | Way::Together => bound(program),
        Way::Static => bound(fixed),
        Way::Likwid => {
            let mut command = Command::new("likwid-pin");
            command.args(["-q", "-c", "N:0-1"]).arg(program);
            command
        }
    };
    match way {
        Way::Likwid => command.arg(number(LIKWID_RUNS)),
        Way::Together | Way::TogetherNative => command.args([&number(TOGETHER), "at-once"]),
        Way::Placed => command.args([&number(THREADS), "placed"]),
        _ => command.args([&number(THREADS), "one"]),
    };
    let text = output(&mut command)?;
    // likwid-pin prints lines of its own.
    let figure = text.lines().rev().find_map(|line| line.trim().parse().ok());
    figure.with_context(|| format!("{command:?} printed {text:?}"))
}
