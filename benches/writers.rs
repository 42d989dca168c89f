//! Many writers of runs to one PostgreSQL store, by the path that measuring
//! commands take: `begin`, `add_run` for each run, `finish`.
//!
//! `cargo bench --bench writers -- URL WRITERS RUNS` prints runs per second and
//! what one `add_run` took, as JSON. `cargo xtask bench writers` starts the
//! server and runs the peers beside it.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and prints what it found"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark may fail by panicking"
)]

use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use pinwise_machine::Host;
use pinwise_record::{Comparison, RunRecord};
use pinwise_sim::SimulatedMachine;
use pinwise_store::{Filter, Location, Spool, Store};
use pinwise_study::compare::{self, ComparePlan, Tuning, Unwatched};
use pinwise_workload::Command;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Cargo adds an option of its own.
    let arguments: Vec<&String> = arguments.iter().filter(|a| !a.starts_with("--")).collect();
    let [url, writers, runs] = arguments[..] else {
        println!("writers URL WRITERS RUNS: nothing was measured");
        return;
    };
    let (writers, runs) = (writers.parse().unwrap(), runs.parse().unwrap());
    let location = Location::parse(url).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let base = comparison();
    let all_are_here = Barrier::new(writers + 1);
    let (seconds, mut waits) = std::thread::scope(|scope| {
        let write = |writer| {
            let (location, folder) = (&location, folder.path());
            let (base, all_are_here) = (&base, &all_are_here);
            scope.spawn(move || {
                let mut store = open(location, folder);
                all_are_here.wait();
                write(&mut store, base, writer, runs)
            })
        };
        let started: Vec<_> = (0..writers).map(write).collect();
        all_are_here.wait();
        let start = Instant::now();
        let waits = started.into_iter().flat_map(|w| w.join().unwrap());
        let waits: Vec<f64> = waits.collect();
        (start.elapsed().as_secs_f64(), waits)
    });
    let store = open(&location, folder.path());
    let found = store.find(&Filter::default()).unwrap();
    let whole = found.lines.iter().filter(|line| line.entry.is_complete);
    let stored = whole.count();
    waits.sort_by(f64::total_cmp);
    let at = |per_mille: usize| waits[(waits.len() - 1) * per_mille / 1000];
    println!(
        "{{\"runs_per_s\": {:.0}, \"seconds\": {seconds:.3}, \"records\": {stored}, \"run_bytes\": {}, \"median_us\": {:.1}, \"p99_us\": {:.1}, \"longest_us\": {:.1}}}",
        (writers * runs) as f64 / seconds,
        serde_json::to_string(&base.arms[0].runs[0]).unwrap().len(),
        at(500),
        at(990),
        at(1000),
    );
}

fn open(location: &Location, folder: &Path) -> Store {
    let spool = Spool {
        folder: folder.join("spool"),
        warn: Arc::new(|line| panic!("{line}")),
    };
    Store::open_at(location, &spool).unwrap().unwrap()
}

/// Writes a record as it grows; what each run took, in microseconds.
fn write(store: &mut Store, base: &Comparison, writer: usize, runs: usize) -> Vec<f64> {
    let mut record = base.clone();
    record.id = format!("{}-{writer}", std::process::id());
    let run: RunRecord = base.arms[0].runs[0].clone();
    store.begin(&record).unwrap();
    let add = |number| {
        let start = Instant::now();
        store.add_run(number % 2, &run).unwrap();
        1e6 * start.elapsed().as_secs_f64()
    };
    let waits = (0..runs).map(add).collect();
    // As large as it grew: all runs are in what is written at the end.
    record.arms[0].runs = vec![run; runs];
    store.finish(&record).unwrap();
    waits
}

fn comparison() -> Comparison {
    let mut machine = SimulatedMachine::open("core:2 pu:1", 1).unwrap();
    let (topology, _) = machine.topology().unwrap();
    let placements = ["os-default", "cpu:0"].map(|name| name.parse().unwrap());
    let command = Command::from_line("prog").unwrap();
    let plan = ComparePlan {
        tuning: Tuning {
            max_runs: Some(8),
            ..Tuning::default()
        },
        ..ComparePlan::of_placements(command, &topology, &placements).unwrap()
    };
    compare::run(&plan, &mut machine, &mut Unwatched).unwrap()
}
