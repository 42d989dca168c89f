//! The published crates, as a registry would get them.

use anyhow::{Result, bail};

use crate::programs::{cargo, read_output, step, target};

/// The limit of crates.io.
const MAX_BYTES: u64 = 10 << 20;

/// Crates that are not published.
const OURS: [&str; 4] = ["pinwise-capi", "pinwise-fuzz", "lab", "xtask"];

/// Packs all crates and checks that the page is in the one that embeds it.
///
/// The page is generated and not committed, which Cargo calls dirty.
pub(super) fn check() -> Result<()> {
    let mut list = cargo(&["package", "--list", "--allow-dirty"]);
    let files = read_output(list.args(["--package", "pinwise-report"]))?;
    if !files.lines().any(|file| file == "page.html") {
        bail!("the crate pinwise-report does not contain page.html: `cargo xtask web` builds it");
    }
    let mut pack = cargo(&["package", "--workspace", "--allow-dirty"]);
    pack.args(["--no-verify", "--quiet"]);
    step(pack.args(OURS.iter().flat_map(|name| ["--exclude", name])))?;
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
