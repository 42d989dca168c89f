//! Files that the user named: read within bounds, and written.

use std::io::Read;
use std::path::Path;

use anyhow::Context;

/// A file that was named, and the option that names it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedFile<'a> {
    pub(super) option: &'static str,
    pub(super) path: &'a Path,
}

/// A record as `--export-json` writes it, if a file was requested.
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

/// Longest record read, bytes.
const MAX_RECORD_BYTES: u64 = 256 << 20;
/// Longest machine or matrix that is read, bytes: the largest have a few megabytes, and parsing
/// takes several times as much memory.
const MAX_MACHINE_BYTES: u64 = 32 << 20;

/// Reads a record, or another file of up to `LONGEST_RECORD` bytes.
pub(super) fn read_file(path: &Path) -> anyhow::Result<String> {
    read_up_to(path, MAX_RECORD_BYTES)
}

/// The text of a machine or a matrix.
pub(super) fn read_machine_file(path: &Path) -> anyhow::Result<String> {
    read_up_to(path, MAX_MACHINE_BYTES)
}

#[expect(clippy::disallowed_methods, reason = "cli reads what the user names")]
fn read_up_to(path: &Path, most: u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(most + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        anyhow::bail!("it is longer than {} MiB", most >> 20);
    }
    // Without a second copy of valid text.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}
