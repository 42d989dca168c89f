//! The checks that every change must pass.

use std::process::Command;

use anyhow::{Result, bail};

use crate::programs::{cargo, find, step, tests_step};
use crate::{bpf, fuzz, generated, web};

/// Format, lints, tests, documents. What fails does not hide the rest: all are
/// run, and those that failed are named at the end.
pub(crate) fn check() -> Result<()> {
    need_component("rustfmt", "cargo-fmt");
    need_component("clippy", "cargo-clippy");
    let mut failures = Vec::new();
    for check in [
        format as fn() -> Result<()>,
        // Before the rest: the page is compiled into the binary.
        web::build,
        web::unit,
        lints,
        lints_without_features,
        tests,
        fuzz_targets,
        web::in_browser,
        bpf::check,
        documentation,
    ] {
        if let Err(error) = check() {
            eprintln!("xtask: {error:#}");
            failures.push(format!("{error:#}"));
        }
    }
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

fn format() -> Result<()> {
    step(&mut cargo(&["fmt", "--all", "--check"]))
}

fn lints() -> Result<()> {
    step(&mut cargo(&[
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
    step(&mut cargo(&[
        "clippy",
        "--no-default-features",
        "--locked",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))
}

/// All suites, those after a failed one too. A test among them compares the
/// generated reference.
fn tests() -> Result<()> {
    let mut command = cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    tests_step(command.env("INSTA_UPDATE", "no"))
}

fn fuzz_targets() -> Result<()> {
    fuzz::fuzz(None)
}

fn documentation() -> Result<()> {
    let mut command = cargo(&[
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
