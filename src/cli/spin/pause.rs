//! `spin pause`.

use crate::cli::Exit;
use crate::cli::args::{Global, SpinPauseArgs};
use crate::cli::terminal::Terminal;

pub(super) fn pause(
    _global: &Global,
    _args: &SpinPauseArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    anyhow::bail!("spin pause")
}
