//! The checks that every change must pass.
//!
//! Compiling takes most of the time, so the tree is compiled once: clippy's driver is
//! the compiler with more lints, and what it makes of the tests is what is run.

use std::process::Command;

use anyhow::{Context, Result};

use crate::programs::{cargo, find, root, step};
use crate::suites::{self, Extent, Tests};
use crate::timing::{Table, Timed};
use crate::{bpf, fuzz, generated, web};

/// What one change must pass: format, lints, tests, documents. A step that fails does
/// not hide the others; those that failed are named at the end, below the table of
/// times.
pub(crate) fn check(extent: Extent) -> Result<()> {
    need_component("rustfmt", "cargo-fmt");
    need_component("clippy", "cargo-clippy");
    let mut table = Table::begin();
    table.run("format", format);
    // The page is compiled into the binary.
    table.run("page", web::build);
    match table.run("lints, and building the tests", Tests::build) {
        Some(built) => run_built(&mut table, &built, extent),
        None => table.leave_out("tests", "they could not be built"),
    }
    table.run("documentation", || check_documentation(extent));
    table.run("BPF program", bpf::check);
    table.run("lock file of libFuzzer", fuzz::check_lock);
    table.run("terms of other packages", check_dependencies);
    if extent == Extent::All {
        table.run("fuzz targets", || fuzz::fuzz(None));
        table.run("oldest Rust", check_oldest_rust);
    } else {
        table.leave_out("the rest", REST);
    }
    table.finish_whole()
}

/// What only `check --all` does.
const REST: &str = "emulated machines, Slurm, Firefox, libFuzzer, all replays, all documentation \
     and the oldest Rust are tried by `cargo xtask check --all`";

/// Tests of the command mostly wait, and the browser's do; the unit tests compute.
fn run_built(table: &mut Table, built: &Tests, extent: Extent) {
    let mut units = Timed::new("unit tests");
    let mut examples = Timed::new("examples in the documentation");
    let mut page = Timed::new("tests of the page");
    let mut browser = Timed::new("page in a browser");
    let mut long = Timed::new("long tests of the command");
    let mut whole = Timed::new("other tests of the command");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            units.run(|| built.run_units(extent));
            examples.run(suites::run_examples);
        });
        scope.spawn(|| {
            page.run(web::check_units);
            browser.run(|| web::check_in_browser(built.command(), extent));
        });
        scope.spawn(|| long.run(|| built.run_long(extent)));
        whole.run(|| built.run_whole(extent));
    });
    table.add([units, page, long, whole, browser, examples]);
    if extent == Extent::All {
        table.run("tests that need the machine", || built.run_apart());
    }
}

fn format() -> Result<()> {
    step(&mut cargo(&["fmt", "--all", "--check"]))
}

/// The crates that others build on are published alone; the rest is read here.
const PUBLISHED: [&str; 4] = [
    "pinwise-format",
    "pinwise-topology",
    "pinwise-placement",
    "pinwise-affinity",
];

fn check_documentation(extent: Extent) -> Result<()> {
    let mut command = suites::lean(cargo(&["doc", "--no-deps", "--locked", "--quiet"]));
    if extent == Extent::All {
        command.args(["--workspace", "--exclude", "pinwise-fuzz"]);
        command.args(["--exclude", "lab", "--exclude", "xtask"]);
    } else {
        command.args(PUBLISHED.iter().flat_map(|name| ["--package", name]));
    }
    step(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Terms, sources and versions of packages of others, as `deny.toml` allows
/// them. Known vulnerabilities need a list from the network: `cargo deny check
/// advisories`.
fn check_dependencies() -> Result<()> {
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
fn check_oldest_rust() -> Result<()> {
    let version = oldest_version()?;
    let rustup = |words: &[&str]| {
        let mut command = Command::new("rustup");
        command.args(["run", &version]).args(words);
        command.current_dir(root());
        suites::lean(command)
    };
    if rustup(&["rustc", "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        let check = ["cargo", "check", "--workspace", "--locked", "--quiet"];
        return step(&mut rustup(&check));
    }
    eprintln!(
        "SKIPPED: Rust {version}, the oldest that is promised, is not installed \
         (rustup toolchain install --profile minimal {version})"
    );
    Ok(())
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
