//! `spin replay`.

use crate::cli::Exit;
use crate::cli::args::{Global, SpinReplayArgs};
use crate::cli::terminal::Terminal;

pub(super) fn replay(
    _global: &Global,
    _args: &SpinReplayArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    anyhow::bail!("spin replay")
}
