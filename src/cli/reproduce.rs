//! `reproduce`.

use super::Exit;
use super::args::{Global, ReproduceArgs};
use super::terminal::Terminal;

pub(super) fn reproduce(
    _global: &Global,
    _args: &ReproduceArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    anyhow::bail!("being written")
}
