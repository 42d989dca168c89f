//! `top`: a live view of threads on CPUs.

use anyhow::bail;

use super::Exit;
use super::args::{Global, TopArgs};
use super::terminal::Terminal;

pub(super) fn top(_global: &Global, _args: &TopArgs, _terminal: &Terminal) -> anyhow::Result<Exit> {
    bail!("not yet")
}
