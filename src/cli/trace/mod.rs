//! `trace`: what the scheduler did with a command, a process, a file's
//! threads.

mod export;
mod import;

use anyhow::bail;

use super::Exit;
use super::args::{Global, TraceAction, TraceArgs};
use super::terminal::Terminal;

pub(super) fn trace(
    global: &Global,
    args: &TraceArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    match &args.action {
        Some(TraceAction::Import(args)) => return import::import(global, args, terminal),
        Some(TraceAction::Tiers { .. }) => bail!("not yet"),
        None => {}
    }
    bail!("not yet")
}
