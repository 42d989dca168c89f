//! The main job on something real: where should a compressor's threads run on
//! this machine?

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::programs::{find_or_install, release_binary, root, target};
use crate::web;

/// Size of the input, so that a run takes some tenths of a second.
const INPUT_BYTES: usize = 4 << 20;

/// Builds pinwise, makes an input of real files, compares placements of
/// `xz -T2` on it and says where the record is.
pub(crate) fn run() -> Result<()> {
    let xz = find_or_install("xz", "xz-utils")?;
    web_or_not();
    let pinwise = release_binary()?;
    let folder = target().join("demo");
    std::fs::create_dir_all(&folder)?;
    let input = folder.join("input.tar");
    std::fs::write(&input, real_bytes(&pinwise)?)?;
    let store = format!("sqlite:{}", folder.join("pinwise.db").display());
    eprintln!(
        "xtask: {} --store {store} compare --budget 30s -- xz -T2 --block-size=1MiB -3 -k -c {}\n",
        pinwise.display(),
        input.display()
    );
    let status = Command::new(&pinwise)
        .args([
            "--store", &store, "compare", "--budget", "30s", "--tag", "demo", "--",
        ])
        .arg(&xz)
        .args(["-T2", "--block-size=1MiB", "-3", "-k", "-c"])
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

/// The page is worth having, but not needed for a verdict.
fn web_or_not() {
    if let Err(error) = web::build() {
        eprintln!("xtask: without the page: {error:#}");
    }
}

/// The project's source text and the compiled program: what people compress.
fn real_bytes(pinwise: &PathBuf) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut folders = vec![root().join("src"), root().join("tests")];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else {
                bytes.extend(std::fs::read(&path)?);
            }
        }
    }
    bytes.extend(std::fs::read(pinwise)?);
    bytes.truncate(INPUT_BYTES);
    Ok(bytes)
}
