//! Compares placements of a real program on this machine, with the programs of a minimal system only.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::programs::{measure_usage, release_binary, root, target};
use crate::web;

/// Size of the input: enough for GNU sort to start a second thread (about 256,000 lines); a run takes
/// some tenths of a second.
const INPUT_BYTES: usize = 24 << 20;

/// Builds pinwise, makes an input from real files, compares placements of `sort --parallel=2` on it
/// and prints the location of the record.
pub(crate) fn run() -> Result<()> {
    build_web_if_possible();
    let (pinwise, usage) = measure_usage(release_binary);
    let pinwise = pinwise?;
    let minutes = usage.cpu.as_secs_f64() / 60.0;
    eprintln!("xtask: built with {minutes:.1} minutes of CPU time");
    let folder = target().join("demo");
    std::fs::create_dir_all(&folder)?;
    let input = folder.join("input.txt");
    std::fs::write(&input, read_sources()?)?;
    let store = format!("sqlite:{}", folder.join("pinwise.db").display());
    eprintln!(
        "xtask: {} --store {store} compare --budget 30s --env LC_ALL=C -- sort --parallel=2 {}\n",
        pinwise.display(),
        input.display()
    );
    let status = Command::new(&pinwise)
        .args(["--store", &store, "compare", "--budget", "30s"])
        .args(["--tag", "demo", "--env", "LC_ALL=C"])
        .args(["--", "sort", "--parallel=2"])
        .arg(&input)
        .status()
        .context("pinwise cannot be started")?;
    if !status.success() {
        bail!("the comparison failed ({status})");
    }
    println!(
        "\nThe record is the last one in {store}:\n  {pinwise} --store {store} record show last\n  {pinwise} --store {store} record show last --format csv\nNow your own program: {pinwise} compare -- PROGRAM ARGUMENTS",
        pinwise = pinwise.display()
    );
    Ok(())
}

/// The demo needs no page.
fn build_web_if_possible() {
    if let Err(error) = web::build() {
        eprintln!("xtask: without the page: {error:#}");
    }
}

/// The project's sources, repeated up to the size of the input.
fn read_sources() -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut folders = vec![root().join("src"), root().join("crates")];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                text.extend(std::fs::read(&path)?);
            }
        }
    }
    Ok(text.into_iter().cycle().take(INPUT_BYTES).collect())
}
