//! `spin scan`.

use crate::cli::Exit;
use crate::cli::args::{Global, SpinScanArgs};
use crate::cli::terminal::Terminal;

pub(super) fn scan(
    _global: &Global,
    _args: &SpinScanArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    anyhow::bail!("spin scan")
}
