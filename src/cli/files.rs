//! Reads files that the user names, up to a maximum size, and writes them.

use std::io::Read;
use std::path::Path;

use anyhow::Context;

/// A file that an option names.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedFile<'a> {
    pub(super) option: &'static str,
    pub(super) path: &'a Path,
}

/// Writes a record as JSON, if a file was requested.
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

/// The longest record that is read, in bytes.
const MAX_RECORD_BYTES: u64 = 256 << 20;
/// The longest machine or matrix that is read, in bytes: the largest have a few megabytes, and
/// parsing takes several times as much memory.
const MAX_MACHINE_BYTES: u64 = 32 << 20;

/// Reads a record, or another file of up to `MAX_RECORD_BYTES`.
pub(super) fn read_file(path: &Path) -> anyhow::Result<String> {
    read_up_to(path, MAX_RECORD_BYTES)
}

/// Reads the description of a machine, or a matrix.
pub(super) fn read_machine_file(path: &Path) -> anyhow::Result<String> {
    read_up_to(path, MAX_MACHINE_BYTES)
}

#[expect(clippy::disallowed_methods, reason = "cli reads what the user names")]
fn read_up_to(path: &Path, max_bytes: u64) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(max_bytes + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        anyhow::bail!("it is longer than {} MiB", max_bytes >> 20);
    }
    // Valid text is not copied a second time.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}
