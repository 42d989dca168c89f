//! `topology --measure`.

use anyhow::bail;

use crate::cli::Exit;
use crate::cli::args::{Global, TopologyArgs};
use crate::cli::terminal::Terminal;

pub(super) fn measure(
    _global: &Global,
    _args: &TopologyArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    bail!("not built yet")
}
