//! `recipes`.

use super::Exit;
use super::args::{Global, RecipesArgs};
use super::terminal::Terminal;

pub(super) fn recipes(
    _global: &Global,
    _args: &RecipesArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    anyhow::bail!("being written")
}
