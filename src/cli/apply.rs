//! `apply`: prints a placement for other tools, or moves running programs to it.

mod answer;
mod emit;
mod joint;
mod live;

pub(super) use answer::{ArmChoice, NOTHING_TO_APPLY, answer_from_comparison};
pub(super) use emit::print;
pub(super) use live::find_target;

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
            "--memory moves the memory of a running program; give --pid, --unit or --cgroup (use /mem=bind for a program to start)"
        );
    }
    if !args.irqs.is_empty() {
        bail!(
            "--irq moves interrupts while a program runs; give --pid, --unit or --cgroup (compare moves them for its own runs)"
        );
    }
    match joint::apply(global, args, terminal)? {
        Some(exit) => Ok(exit),
        None => emit::apply(global, args, terminal),
    }
}
