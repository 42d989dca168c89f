//! The checks that every change must pass.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::programs::{cargo, find, root, step, tests_step};
use crate::{bpf, fuzz, generated, web};

/// Format, lints, tests, documents. What fails does not hide the rest: all are
/// run, and those that failed are named at the end.
pub(crate) fn check() -> Result<()> {
    need_component("rustfmt", "cargo-fmt");
    need_component("clippy", "cargo-clippy");
    let mut failures = run(&[
        format,
        // Before the rest: the page is compiled into the binary.
        web::build,
        web::unit,
        lints,
        lints_without_features,
        tests,
    ]);
    // What mostly waits goes on beside what mostly compiles. The first of these
    // builds in a folder of its own, so that neither waits for the other's lock.
    let compiling: [Check; 5] = [fuzz_targets, bpf::check, documentation, others, oldest_rust];
    let waiting: [Check; 2] = [tests_that_wait, web::in_browser];
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| run(&waiting));
        failures.extend(run(&compiling));
        match beside.join() {
            Ok(more) => failures.extend(more),
            Err(_) => failures.push("what waits has panicked".to_owned()),
        }
    });
    if !failures.is_empty() {
        bail!(
            "{} of the checks failed:\n{}",
            failures.len(),
            failures.join("\n")
        );
    }
    eprintln!("xtask: all checks passed; tests that could not run here are named above as SKIPPED");
    Ok(())
}

type Check = fn() -> Result<()>;

/// What a check builds is used once: without the compiler's notes for the next build and
/// without debug information, the folder takes 4 GB in place of 10.
const LEAN: [(&str, &str); 2] = [
    ("CARGO_INCREMENTAL", "0"),
    ("CARGO_PROFILE_DEV_DEBUG", "false"),
];

fn lean_cargo(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    command.envs(LEAN);
    command
}

/// Runs all and says what failed.
fn run(checks: &[Check]) -> Vec<String> {
    let failed = checks.iter().filter_map(|check| check().err());
    let reported = failed.map(|error| {
        let text = format!("{error:#}");
        eprintln!("xtask: {text}");
        text
    });
    reported.collect()
}

fn format() -> Result<()> {
    step(&mut cargo(&["fmt", "--all", "--check"]))
}

fn lints() -> Result<()> {
    step(&mut lean_cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))
}

/// Tracing without BPF, export without Parquet, PostgreSQL without TLS.
fn lints_without_features() -> Result<()> {
    step(&mut lean_cargo(&[
        "clippy",
        "--no-default-features",
        "--locked",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))
}

/// Tests that wait for a scheduler's timers, minutes in all.
const WAITING: &str = "fleet_slurm::";

/// All suites, those after a failed one too. A test among them compares the
/// generated reference.
fn tests() -> Result<()> {
    let mut command = lean_cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    command.args(["--", "--skip", WAITING]);
    tests_step(command.env("INSTA_UPDATE", "no"))
}

fn tests_that_wait() -> Result<()> {
    let mut command = lean_cargo(&["test", "--locked", "--test", "it", "--", WAITING]);
    tests_step(command.env("INSTA_UPDATE", "no"))
}

fn fuzz_targets() -> Result<()> {
    fuzz::fuzz(None)
}

fn documentation() -> Result<()> {
    let mut command = lean_cargo(&[
        "doc",
        "--workspace",
        "--exclude",
        "pinwise-fuzz",
        "--exclude",
        "xtask",
        "--no-deps",
        "--locked",
        "--quiet",
    ]);
    step(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Terms, sources and versions of packages of others, as `deny.toml` allows
/// them. Known vulnerabilities need a list from the network: `cargo deny check
/// advisories`.
fn others() -> Result<()> {
    if find("cargo-deny").is_none() {
        eprintln!(
            "SKIPPED: terms of other packages: no cargo-deny in PATH \
             (cargo install --locked cargo-deny)"
        );
        return Ok(());
    }
    let checks = ["licenses", "bans", "sources"];
    let mut command = cargo(&["deny", "--locked", "--log-level", "error", "check"]);
    step(command.args(["--hide-inclusion-graph"]).args(checks))
}

/// Compiles with the oldest Rust that is promised.
fn oldest_rust() -> Result<()> {
    let version = oldest_version()?;
    let rustup = |words: &[&str]| {
        let mut command = Command::new("rustup");
        command
            .args(["run", &version])
            .args(words)
            .envs(LEAN)
            .current_dir(root());
        command
    };
    let output = rustup(&["rustc", "--version"]).output();
    let is_there = output.is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!(
            "SKIPPED: Rust {version}, the oldest that is promised, is not installed \
             (rustup toolchain install --profile minimal {version})"
        );
        return Ok(());
    }
    let check = ["cargo", "check", "--workspace", "--locked", "--quiet"];
    step(&mut rustup(&check))
}

/// What `rust-version` of the workspace says.
fn oldest_version() -> Result<String> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml"))?;
    let mut lines = manifest.lines();
    let oldest = lines.find_map(|line| line.strip_prefix("rust-version = "));
    Ok(oldest
        .context("Cargo.toml has no rust-version")?
        .trim_matches('"')
        .to_owned())
}

/// Accepts new snapshots and writes the generated documents.
pub(crate) fn bless() -> Result<()> {
    step(cargo(&["test", "--workspace", "--locked"]).env("INSTA_UPDATE", "always"))?;
    generated::write()
}

/// A toolchain may have been installed without it; what cannot be added is
/// reported by the step that needs it.
fn need_component(component: &str, program: &str) {
    if find(program).is_none() && find("rustup").is_some() {
        let _ = step(Command::new("rustup").args(["component", "add", component]));
    }
}
