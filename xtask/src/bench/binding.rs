//! What binding costs a thread: `run --place …/bound`, beside likwid-pin and
//! threads that nobody binds.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::Setting;
use super::process::{median, quartiles};
use crate::programs::output;

const ROUNDS: usize = 25;
/// Threads of a run, one after another.
const MANY: usize = 1000;
/// Of those that likwid-pin binds: it takes its time.
const FEW: usize = 20;
/// Threads that live at once.
const TOGETHER: usize = 500;

/// Creates and joins threads, and prints microseconds per thread: `one` after
/// another, `placed` by itself on CPUs 0 and 1 in turn, or all `at-once`.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_barrier_t barrier;

static void *alone(void *unused) { return unused; }

static void *together(void *unused) {
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(int argc, char **argv) {
    long many = atol(argv[1]);
    int at_once = argc > 2 && strcmp(argv[2], "at-once") == 0;
    int placed = argc > 2 && strcmp(argv[2], "placed") == 0;
    struct timespec from, to;
    pthread_t *threads = calloc(many, sizeof *threads);
    pthread_barrier_init(&barrier, NULL, many + 1);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < many; i++) {
        cpu_set_t cpus;
        pthread_attr_t attributes;
        CPU_ZERO(&cpus);
        CPU_SET(i % 2, &cpus);
        pthread_attr_init(&attributes);
        if (placed)
            pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
        if (pthread_create(&threads[i], &attributes, at_once ? together : alone, NULL) != 0)
            return 1;
        if (!at_once)
            pthread_join(threads[i], NULL);
    }
    if (at_once)
        pthread_barrier_wait(&barrier);
    for (long i = 0; at_once && i < many; i++)
        pthread_join(threads[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &to);
    double ns = 1e9 * (to.tv_sec - from.tv_sec) + (to.tv_nsec - from.tv_nsec);
    printf("%.3f\n", ns / 1e3 / many);
    return 0;
}
"#;

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

pub(super) fn run(setting: &Setting) -> Result<String> {
    let source = setting.folder.path().join("threads.c");
    std::fs::write(&source, PROGRAM)?;
    let program = compile(&source, "threads", &[])?;
    let fixed = compile(&source, "threads-static", &["-static"])?;
    let has_likwid = Command::new("likwid-pin").arg("--version").output().is_ok();
    let mut rows: Vec<[Option<f64>; WAYS.len()]> = Vec::new();
    for round in 0..ROUNDS {
        let mut row = [None; WAYS.len()];
        for step in 0..WAYS.len() {
            let at = (round + step) % WAYS.len();
            let way = WAYS[at].0;
            if has_likwid || !matches!(way, Way::Likwid) {
                row[at] = Some(microseconds(setting, way, &program, &fixed)?);
            }
        }
        rows.push(row);
    }
    let mut lines = String::new();
    for (at, (way, name)) in WAYS.iter().enumerate() {
        let native = match way {
            Way::Native | Way::Placed | Way::Ours | Way::Likwid => 0,
            Way::StaticNative | Way::Static => 4,
            Way::TogetherNative | Way::Together => 6,
        };
        let pairs = rows.iter().filter_map(|row| Some((row[at]?, row[native]?)));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        if pairs.is_empty() {
            lines += &format!("| {name} | not installed | | |\n");
            continue;
        }
        let beyond: Vec<f64> = pairs.iter().map(|(own, native)| own - native).collect();
        let (low, high) = quartiles(beyond.clone());
        lines += &format!(
            "| {name} | {:.1} | {:+.1} ({low:+.1} to {high:+.1}) | {:.2} |\n",
            median(pairs.iter().map(|(own, _)| *own).collect()),
            median(beyond),
            median(pairs.iter().map(|(own, native)| own / native).collect()),
        );
    }
    Ok(format!(
        "## What binding costs a thread

A program in C creates and joins {MANY} threads that do nothing, one after
another ({FEW} under likwid-pin), or {TOGETHER} that wait for each other;
microseconds per thread, reported by the program itself. Placed by itself means
`pthread_attr_setaffinity_np`: what a bound thread costs where nobody traces. `run` binds each before its
first instruction and reads its mask and CPU time at its end; likwid-pin binds
from within, by `LD_PRELOAD`, which static programs do not have. Medians of
{ROUNDS} rounds in which all take turns; differences and ratios are paired.

| | µs per thread | beyond native (quartiles) | over native |
|---|---|---|---|
{lines}"
    ))
}

fn compile(source: &Path, name: &str, options: &[&str]) -> Result<std::path::PathBuf> {
    let program = source.with_file_name(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread"]).args(options);
    output(compiler.arg(source).arg("-o").arg(&program))?;
    Ok(program)
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
        Way::Likwid => command.arg(number(FEW)),
        Way::Together | Way::TogetherNative => command.args([&number(TOGETHER), "at-once"]),
        Way::Placed => command.args([&number(MANY), "placed"]),
        _ => command.args([&number(MANY), "one"]),
    };
    let text = output(&mut command)?;
    // likwid-pin prints lines of its own.
    let figure = text.lines().rev().find_map(|line| line.trim().parse().ok());
    figure.with_context(|| format!("{command:?} printed {text:?}"))
}
