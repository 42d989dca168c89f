//! `profile`: where CPU time goes, and what changed.

use super::Exit;
use super::args::{Global, ProfileArgs};
use super::terminal::Terminal;

pub(super) fn profile(
    _global: &Global,
    _args: &ProfileArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    anyhow::bail!("profile")
}
