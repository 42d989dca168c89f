//! `topology diff`: what changed between two captures.

use std::path::Path;

use anyhow::bail;

use crate::cli::Exit;
use crate::cli::terminal::Terminal;

pub(super) fn diff(_a: &Path, _b: &Path, _terminal: &Terminal) -> anyhow::Result<Exit> {
    bail!("not built yet")
}
