//! Measurements of pinwise: `cargo lab NAME`. Error rates on known truth, the costs of a run, a trace
//! or a list, and those of similar programs in the same run.
//! [docs/benchmarks.md](../../docs/benchmarks.md) has the results and explains each table.
//!
//! Nothing is asserted here; `tests/it` does that.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it starts programs, reads the clock and files, and prints"
)]

mod aa;
mod analysis;
mod answers;
mod binding;
mod discovery;
mod figures;
mod fleet;
mod gates;
mod harness;
mod history;
mod hwloc;
mod jitter;
mod kernels;
mod memory;
mod method;
mod noise;
mod page;
mod pages;
mod pairs;
mod placement;
mod power;
mod probes;
mod process;
mod projects;
mod record;
mod rounds;
mod rules;
mod sampling;
mod scale;
mod search;
mod share;
mod spin_replay;
mod spins;
mod table;
mod topology;
mod tracing;
mod wiring;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
// Modules shared with the tests use this name.
use xtask::programs as support;
use xtask::programs::{read_output, release_binary, target};

/// The setting of a benchmark of the command.
struct Setting {
    /// The release binary.
    pinwise: PathBuf,
    /// Scratch space on a disk.
    folder: tempfile::TempDir,
}

enum Benchmark {
    /// Starts the command.
    Command(fn(&Setting) -> Result<()>),
    /// Calls the library, and takes arguments.
    Library(fn(&[String]) -> Result<()>),
}

use Benchmark::{Command, Library};

/// In the order of `docs/benchmarks.md`.
const BENCHMARKS: [(&str, Benchmark); 32] = [
    ("method", Library(method::run)),
    ("aa", Command(aa::run)),
    ("gates", Command(gates::run)),
    ("power", Command(power::run)),
    ("projects", Command(projects::run)),
    ("noise", Command(noise::run)),
    ("answers", Command(answers::run)),
    ("harness", Command(harness::run)),
    ("topology", Command(topology::run)),
    ("hwloc", Library(hwloc::run)),
    ("wiring", Library(wiring::run)),
    ("placement", Library(placement::run)),
    ("discovery", Library(discovery::run)),
    ("search", Library(search::run)),
    ("scale", Command(scale::run)),
    ("pairs", Command(pairs::run)),
    ("memory", Command(memory::run)),
    ("kernels", Command(kernels::run)),
    ("tracing", Command(tracing::run)),
    ("analysis", Library(analysis::run)),
    ("figures", Command(figures::run)),
    ("pages", Command(pages::run)),
    ("sampling", Command(sampling::run)),
    ("jitter", Command(jitter::run)),
    ("spins", Command(spins::run)),
    ("spin_replay", Command(spin_replay::run)),
    ("binding", Command(binding::run)),
    ("rules", Command(rules::run)),
    ("fleet", Command(fleet::run)),
    ("record", Command(record::run)),
    ("page", Command(page::run)),
    ("history", Command(history::run)),
];

const USAGE: &str = "\
Usage: cargo lab NAME [ARGUMENT…]

Prints tables, and writes each to target/lab as CSV. docs/benchmarks.md says what the
tables mean; `cargo lab all` makes them all, in several hours. Arguments, to make a part:

  method [REPLAYS [FILTER]]           FILTER: text that the cell's first columns contain,
                                      several joined by '+'; 'builds', 'sessions', 'fleets'
  search [SEEDS [FILTER [RIVALS]]]    FILTER: WORLD/NOISE; RIVALS: random, exhaustive,
                                      racing, thompson, halving, joined by '+'

  hwloc FOLDER                        the folder tests/hwloc of hwloc's sources
  probes BATCHES REPETITIONS PROBE…   single probes of this host (lab/src/probes.rs)

Names:";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    match arguments.split_first() {
        // For `tracing` itself.
        Some((name, [note, command @ ..])) if name == "used" => tracing::note_usage(note, command),
        Some((name, arguments)) if name == "probes" => probes::run(arguments),
        Some((name, [])) if name == "all" => {
            for (name, benchmark) in &BENCHMARKS {
                measure(name, benchmark, &[])?;
            }
            Ok(())
        }
        Some((name, arguments)) if !name.starts_with('-') => {
            let (name, benchmark) = { BENCHMARKS.iter() }
                .find(|(known, _)| known == name)
                .with_context(|| format!("no benchmark is called '{name}'"))?;
            measure(name, benchmark, arguments)
        }
        _ => {
            let names = BENCHMARKS.map(|(name, _)| name);
            println!("{USAGE} {}", names.join(", "));
            Ok(())
        }
    }
}

fn measure(name: &str, benchmark: &Benchmark, arguments: &[String]) -> Result<()> {
    eprintln!("lab: {name}");
    match benchmark {
        Command(run) => run(&Setting {
            pinwise: release_binary()?,
            folder: tempfile::tempdir_in(target())?,
        })?,
        Library(run) => run(arguments)?,
    }
    println!("\n{}", describe_machine()?);
    Ok(())
}

/// The machine and the date.
fn describe_machine() -> Result<String> {
    let line = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = line("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("?", |name| name.trim_start_matches([' ', '\t', ':']));
    let load = line("/proc/loadavg");
    let date = read_output(std::process::Command::new("date").args(["-u", "+%F"]))?;
    Ok(format!(
        "Measured on {} on {model} ({} CPUs, Linux {}), load average {}.",
        date.trim(),
        std::thread::available_parallelism()?,
        line("/proc/sys/kernel/osrelease").trim(),
        load.split_whitespace().nth(2).unwrap_or("?"),
    ))
}
