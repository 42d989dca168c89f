//! `topology replay`: the inference on a recorded latency matrix.

use std::path::Path;

use anyhow::bail;

use crate::cli::Exit;
use crate::cli::terminal::Terminal;

pub(super) fn replay(_file: &Path, _terminal: &Terminal) -> anyhow::Result<Exit> {
    bail!("not built yet")
}
