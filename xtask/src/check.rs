//! The checks that every change must pass.

use std::process::Command;

use anyhow::Result;

use crate::programs::{cargo, find, step};
use crate::{bpf, generated, web};

/// Format, lints, tests, documents.
pub(crate) fn check() -> Result<()> {
    need_component("rustfmt", "cargo-fmt");
    need_component("clippy", "cargo-clippy");
    step(&mut cargo(&["fmt", "--all", "--check"]))?;
    // First: the page is compiled into the binary.
    web::build()?;
    web::unit()?;
    step(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    // The library alone, as programs that place their own threads have it.
    step(&mut cargo(&[
        "clippy",
        "--no-default-features",
        "--lib",
        "--locked",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    // A test among them compares the reference.
    step(cargo(&["test", "--workspace", "--locked"]).env("INSTA_UPDATE", "no"))?;
    web::in_browser()?;
    bpf::check()?;
    step(cargo(&["doc", "--no-deps", "--locked", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    eprintln!("xtask: all checks passed; tests that could not run here are named above as SKIPPED");
    Ok(())
}

/// Accepts new snapshots and writes the generated documents.
pub(crate) fn bless() -> Result<()> {
    step(cargo(&["test", "--workspace", "--locked"]).env("INSTA_UPDATE", "always"))?;
    generated::write()
}

/// A toolchain may have been installed without it; what cannot be added is
/// told by the step that needs it.
fn need_component(component: &str, program: &str) {
    if find(program).is_none() && find("rustup").is_some() {
        let _ = step(Command::new("rustup").args(["component", "add", component]));
    }
}
