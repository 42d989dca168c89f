//! `spin advise`.

use crate::cli::Exit;
use crate::cli::args::{Global, SpinAdviseArgs};
use crate::cli::terminal::Terminal;

pub(super) fn advise(
    _global: &Global,
    _args: &SpinAdviseArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    anyhow::bail!("spin advise")
}
