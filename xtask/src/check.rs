//! The checks that every change must pass.
//!
//! Compiling takes most of the time, so everything is compiled once, by clippy's driver, which is the
//! compiler with more lints.

use std::process::Command;

use anyhow::Result;

use crate::programs::{cargo, find, read_workspace_field, root, step};
use crate::suites::{self, Extent, Tests};
use crate::timing::{Table, Timed};
use crate::{bpf, fuzz, generated, web};

/// Runs all checks: format, lints, tests, documents. Steps after a failed one run as well; failed
/// steps are named at the end, below the table of times.
pub(crate) fn check(extent: Extent) -> Result<()> {
    add_component("rustfmt", "cargo-fmt");
    add_component("clippy", "cargo-clippy");
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

/// The steps of `check --all` only.
const REST: &str = "emulated machines, Slurm, Firefox, libFuzzer, all replays, all documentation \
     and the oldest Rust are tried by `cargo xtask check --all`";

/// Runs tests of the command, of the browser and unit tests side by side: the former mostly wait,
/// unit tests compute.
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
        whole.run(|| built.run_others(extent));
    });
    table.add([units, page, long, whole, browser, examples]);
    if extent == Extent::All {
        table.run("tests that start machines", || built.run_apart());
    }
}

fn format() -> Result<()> {
    step(&mut cargo(&["fmt", "--all", "--check"]))
}

/// The crates whose documentation is for others.
const PUBLISHED: [&str; 4] = [
    "pinwise-format",
    "pinwise-topology",
    "pinwise-placement",
    "pinwise-affinity",
];

fn check_documentation(extent: Extent) -> Result<()> {
    let mut command =
        suites::without_debug_info(cargo(&["doc", "--no-deps", "--locked", "--quiet"]));
    if extent == Extent::All {
        command.args(["--workspace", "--exclude", "pinwise-fuzz"]);
        command.args(["--exclude", "lab", "--exclude", "xtask"]);
    } else {
        command.args(PUBLISHED.iter().flat_map(|name| ["--package", name]));
    }
    step(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Checks the terms, sources and versions of third-party packages against `deny.toml`. Known
/// vulnerabilities need a list from the network: `cargo deny check advisories`.
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

/// Compiles with the oldest supported Rust.
fn check_oldest_rust() -> Result<()> {
    let version = read_workspace_field("rust-version")?;
    let rustup = |words: &[&str]| {
        let mut command = Command::new("rustup");
        command.args(["run", &version]).args(words);
        command.current_dir(root());
        suites::without_debug_info(command)
    };
    if rustup(&["rustc", "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        let check = ["cargo", "check", "--workspace", "--locked", "--quiet"];
        return step(&mut rustup(&check));
    }
    eprintln!(
        "SKIPPED: Rust {version}, the oldest supported one, is not installed \
         (rustup toolchain install --profile minimal {version})"
    );
    Ok(())
}

/// Accepts new snapshots and writes the generated documents.
pub(crate) fn bless() -> Result<()> {
    step(cargo(&["test", "--workspace", "--locked"]).env("INSTA_UPDATE", "always"))?;
    generated::write()
}

/// Adds a component that the toolchain lacks. A failure is reported by the step that needs it.
fn add_component(component: &str, program: &str) {
    if find(program).is_none() && find("rustup").is_some() {
        let _ = step(Command::new("rustup").args(["component", "add", component]));
    }
}
