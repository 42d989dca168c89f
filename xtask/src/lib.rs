//! The commands of developers, `cargo xtask COMMAND`; continuous integration runs nothing else. A
//! library, since `lab` starts programs in the same way.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are scripts: they start programs, read and write files, and print"
)]

mod bpf;
mod changed;
mod check;
mod demo;
mod fuzz;
mod generated;
mod package;
pub mod programs;
mod records;
mod release;
mod suites;
mod timing;
pub mod web;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
Usage: cargo xtask COMMAND

  demo              build pinwise and compare placements of a real program
  check             format, lints, tests, documents: what CI runs; ends with what
                    each step took
  check --all       the same, and what takes long: emulated machines, Slurm, Firefox,
                    libFuzzer, all replays, all documentation, the oldest Rust
  check --changed [COMMIT]
                    lints and tests of the packages that differ from a commit, HEAD by
                    default, and of those that depend on them
  fuzz [SECONDS]    run every fuzz target under libFuzzer, 10 s each by default
  bless             accept the output that tests saw as the one they expect
  gen [--check]     write docs/cli.md and schema/, and to target/generated the fields of
                    records, man pages and completions (or check docs/cli.md)
  web               build the page of reports and `serve` (with Node)
  bpf [--check]     compile the BPF program of traces (or check the object)
  package [--try]   binaries, archives, Debian packages, the C library and crates, in
                    target/dist (--try: then install and use them in clean roots;
                    --only-try: those that are there)
  release VERSION   version, changelog, commit and tag of a release
  notices           the third-party code in the binaries, with its licences
  capture NAME      save this machine's topology as tests/data/machines/NAME

`cargo lab` measures pinwise and its peers.";

/// Runs the command that the arguments name.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Result<()> {
    match arguments {
        ["demo"] => demo::run(),
        ["check"] => check::check(suites::Extent::Change),
        ["check", "--all"] => check::check(suites::Extent::All),
        ["check", "--changed"] => changed::check("HEAD"),
        ["check", "--changed", commit] => changed::check(commit),
        ["fuzz"] => fuzz::fuzz(None),
        ["fuzz", seconds] => {
            let seconds: u64 = seconds.parse().context("SECONDS is a whole number")?;
            fuzz::fuzz(Some(Duration::from_secs(seconds.max(1))))
        }
        ["bless"] => check::bless(),
        ["gen"] => generated::write(),
        ["gen", "--check"] => generated::check(),
        ["web"] => web::build(),
        ["bpf"] => bpf::write(),
        ["bpf", "--check"] => bpf::check(),
        ["package", options @ ..] => package::run(options),
        ["release", version] => release::release(version),
        ["notices"] => package::write_notices(),
        ["capture", name] => generated::capture(name),
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        other => bail!("'{}' is not a command\n\n{USAGE}", other.join(" ")),
    }
}
