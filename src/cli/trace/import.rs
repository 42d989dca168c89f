//! `trace import`: files that perf and ftrace made.

use anyhow::bail;

use crate::cli::Exit;
use crate::cli::args::{Global, TraceImportArgs};
use crate::cli::terminal::Terminal;

pub(super) fn import(
    _global: &Global,
    _args: &TraceImportArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    bail!("not yet")
}
