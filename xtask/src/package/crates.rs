//! What a registry would get: every crate that is published, with all files
//! that it is built from.

use anyhow::{Result, bail};

use crate::programs::{cargo, read_output, step, target};

/// The most that crates.io takes, bytes.
const MAX_BYTES: u64 = 10 << 20;

/// Crates that are not published.
const OURS: [&str; 4] = ["pinwise-capi", "pinwise-fuzz", "lab", "xtask"];

/// Packs all crates and looks whether the page is in the one that embeds it.
///
/// The page is built and thus not committed, which Cargo calls dirty.
pub(super) fn check() -> Result<()> {
    let files = read_output(&mut cargo(&[
        "package",
        "--list",
        "--allow-dirty",
        "--package",
        "pinwise-report",
    ]))?;
    if !files.lines().any(|file| file == "page.html") {
        bail!("the crate pinwise-report does not hold page.html: `cargo xtask web` builds it");
    }
    let mut arguments = vec![
        "package",
        "--workspace",
        "--allow-dirty",
        "--no-verify",
        "--quiet",
    ];
    for name in OURS {
        arguments.extend(["--exclude", name]);
    }
    step(&mut cargo(&arguments))?;
    for entry in std::fs::read_dir(target().join("package"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = entry.metadata()?.len();
        if name.ends_with(".crate") && bytes > MAX_BYTES {
            bail!("{name} has {bytes} bytes, {MAX_BYTES} are allowed");
        }
    }
    Ok(())
}
