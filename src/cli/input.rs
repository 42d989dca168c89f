//! Small files that a user names: read without waiting for a pipe's writer and
//! without taking more memory than such a file can need.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, bail};

/// The text of a regular file of at most this many bytes.
pub(super) fn read_text(path: &Path, most: u64) -> anyhow::Result<String> {
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        bail!("it is not a regular file");
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        bail!("it is larger than {} KiB", most >> 10);
    }
    String::from_utf8(bytes).context("it is not UTF-8")
}
