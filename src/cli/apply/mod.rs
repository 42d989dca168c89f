//! `apply`: an answer printed for other tools, or applied to what runs.

mod answer;
mod emit;
mod live;

pub(super) use answer::of_comparison;
pub(super) use emit::{print, targets};
pub(super) use live::target;

use anyhow::bail;

use super::Exit;
use super::args::{ApplyArgs, Global};
use super::terminal::Terminal;

pub(super) fn apply(
    global: &Global,
    args: &ApplyArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let is_live = args.pid.is_some() || args.unit.is_some() || args.cgroup.is_some();
    if is_live {
        return live::apply(global, args, terminal);
    }
    if args.memory {
        bail!(
            "--memory: it moves what runs already; give --pid, --unit or --cgroup (a program that is started takes /mem=bind)"
        );
    }
    if !args.irqs.is_empty() {
        bail!(
            "--irq: it moves interrupts while something runs; give --pid, --unit or --cgroup (compare moves them for its own runs)"
        );
    }
    emit::apply(global, args, terminal)
}
