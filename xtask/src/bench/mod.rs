//! pinwise and its peers, measured side by side in one run; the tables go to
//! `docs/benchmarks.md`.
//!
//! Each benchmark writes its section to `target/bench/NAME.md`; those that were
//! not measured stay in the document as they were, so that one can be measured
//! again alone.

mod aa;
mod answers;
mod binding;
mod build;
mod discovery;
mod figures;
mod fleet;
mod gates;
mod harness;
mod history;
mod jitter;
mod kernels;
mod kill;
mod memory;
mod method;
mod noise;
mod page;
mod pages;
mod pairs;
mod placement;
mod power;
mod process;
mod projects;
mod record;
mod rules;
mod sampling;
mod scale;
mod search;
mod spin_replay;
mod topology;
mod tracing;
mod wiring;
mod writers;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::Value;

pub(crate) use tracing::used;

use crate::programs::{output, release_binary, root, step, target};

/// What a benchmark needs.
struct Setting {
    /// The release binary.
    pinwise: PathBuf,
    /// Scratch space on a disk.
    folder: tempfile::TempDir,
}

type Benchmark = fn(&Setting) -> Result<String>;

/// In the order of the document; each returns its section.
const BENCHMARKS: [(&str, Benchmark); 32] = [
    ("method", method::run),
    ("aa", aa::run),
    ("gates", gates::run),
    ("power", power::run),
    ("projects", projects::run),
    ("noise", noise::run),
    ("answers", answers::run),
    ("harness", harness::run),
    ("topology", topology::run),
    ("wiring", wiring::run),
    ("placement", placement::run),
    ("discovery", discovery::run),
    ("search", search::run),
    ("scale", scale::run),
    ("pairs", pairs::run),
    ("memory", memory::run),
    ("kernels", kernels::run),
    ("tracing", tracing::run),
    ("figures", figures::run),
    ("pages", pages::run),
    ("sampling", sampling::run),
    ("jitter", jitter::run),
    ("spin_replay", spin_replay::run),
    ("binding", binding::run),
    ("rules", rules::run),
    ("fleet", fleet::run),
    ("record", record::run),
    ("page", page::run),
    ("history", history::run),
    ("writers", writers::run),
    ("kill", kill::run),
    ("build", build::run),
];

const INTRODUCTION: &str = "\
# Benchmarks

`cargo xtask bench` measures pinwise and its peers in one run and writes this
page; `cargo xtask bench NAME` measures one section again. Absolute times
belong to the machine and the moment named under each table. Ratios were taken
side by side, alternating, and carry over better.
";

/// Runs the named benchmarks, or all.
pub(crate) fn run(names: &[&str]) -> Result<()> {
    let known: Vec<&str> = BENCHMARKS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        bail!(
            "no benchmark is called '{unknown}'; there are {}",
            known.join(", ")
        );
    }
    let setting = Setting {
        pinwise: release_binary()?,
        folder: tempfile::tempdir_in(target())?,
    };
    let sections = target().join("bench");
    std::fs::create_dir_all(&sections)?;
    for (name, benchmark) in BENCHMARKS {
        if names.is_empty() || names.contains(&name) {
            eprintln!("xtask: benchmark {name}");
            let text = benchmark(&setting)?;
            let place = place(&setting.pinwise)?;
            std::fs::write(
                sections.join(format!("{name}.md")),
                format!("{}\n\n{place}\n", text.trim_end()),
            )?;
            println!("{text}");
        }
    }
    assemble(&sections)
}

/// Writes the page. A section that was not measured again stays as it stands
/// there.
fn assemble(sections: &Path) -> Result<()> {
    let page = root().join("docs/benchmarks.md");
    let before = std::fs::read_to_string(&page).unwrap_or_default();
    let mut document = INTRODUCTION.to_owned();
    for (name, _) in BENCHMARKS {
        let measured = std::fs::read_to_string(sections.join(format!("{name}.md")));
        if let Some(text) = measured.ok().or_else(|| section(&before, name)) {
            document += &format!("\n{}\n\n{}\n", mark(name), text.trim());
        }
    }
    std::fs::write(page, document)?;
    eprintln!("xtask: wrote docs/benchmarks.md");
    Ok(())
}

/// What stands before a section, invisible on the page.
fn mark(name: &str) -> String {
    format!("<!-- {name} -->")
}

/// A section of the page.
fn section(page: &str, name: &str) -> Option<String> {
    let (_, after) = page.split_once(&mark(name))?;
    let end = after.find("\n<!-- ").unwrap_or(after.len());
    Some(after[..end].to_owned())
}

/// On what, and when.
fn place(pinwise: &Path) -> Result<String> {
    let mut command = std::process::Command::new(pinwise);
    let text = output(command.args(["topology", "--format", "json"]))?;
    let record: Value = serde_json::from_str(&text)?;
    let machine = |key: &str| record["machine"][key].as_str().unwrap_or("?").to_owned();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().nth(2).unwrap_or("?").to_owned();
    let mut date = std::process::Command::new("date");
    let date = output(date.args(["-u", "+%F"]))?;
    Ok(format!(
        "Measured on {} on {} ({} CPUs, {}, Linux {}), load average {load}.",
        date.trim(),
        machine("cpu_model"),
        record["counts"]["cpus"],
        machine("hypervisor"),
        machine("kernel"),
    ))
}

/// Builds and runs a benchmark of the library, returning what it prints.
fn library_benchmark(name: &str, arguments: &[&str]) -> Result<String> {
    step(&mut crate::programs::cargo(&[
        "bench", "--locked", "--bench", name, "--no-run",
    ]))?;
    let mut command =
        crate::programs::cargo(&["bench", "--locked", "--quiet", "--bench", name, "--"]);
    output(command.args(arguments))
}
