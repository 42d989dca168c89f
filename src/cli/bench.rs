//! `bench`.

use super::Exit;
use super::args::{BenchArgs, Global};
use super::terminal::Terminal;

pub(super) fn bench(
    _global: &Global,
    _args: &BenchArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    anyhow::bail!("being written")
}
