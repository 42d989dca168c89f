//! Files that the user named: read within bounds, and written.

use std::io::Read;
use std::path::Path;

use anyhow::Context;

/// A file that was named, and the option that names it.
pub(super) type Named<'a> = (&'static str, &'a Path);

/// A record as `--export-json` writes it, where a file was asked for.
pub(super) fn write_json(
    path: Option<&Path>,
    record: &impl serde::Serialize,
) -> anyhow::Result<()> {
    match path {
        Some(path) => write_file(path, &format!("{}\n", serde_json::to_string(record)?)),
        None => Ok(()),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "cli writes what the user asked for"
)]
pub(super) fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Longest file read: the largest captures and matrices have a few megabytes,
/// and a device has no end.
const LONGEST_FILE: u64 = 256 << 20;

#[expect(clippy::disallowed_methods, reason = "cli reads what the user names")]
pub(super) fn read_file(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(LONGEST_FILE + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_FILE {
        anyhow::bail!("it is longer than {} MiB", LONGEST_FILE >> 20);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
