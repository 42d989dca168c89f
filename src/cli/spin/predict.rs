//! `spin predict`.

use crate::cli::Exit;
use crate::cli::args::{Global, SpinPredictArgs};
use crate::cli::terminal::Terminal;

pub(super) fn predict(
    _global: &Global,
    _args: &SpinPredictArgs,
    _terminal: &Terminal,
) -> anyhow::Result<Exit> {
    anyhow::bail!("spin predict")
}
