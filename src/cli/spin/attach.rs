//! `spin attach`.

use crate::cli::Exit;
use crate::cli::args::{Global, SpinAttachArgs};
use crate::cli::terminal::Terminal;

pub(super) fn attach(
    _global: &Global,
    _args: &SpinAttachArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    anyhow::bail!("spin attach")
}
