//! `spin`: the spin-wait laboratory.

mod advise;
mod attach;
mod pause;
mod predict;
mod processor;
mod replay;
mod scan;

use super::Exit;
use super::args::{Global, SpinAction, SpinArgs};
use super::terminal::Terminal;

pub(super) fn run_spin(
    global: &Global,
    args: &SpinArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    match &args.action {
        SpinAction::Pause(args) => pause::pause(global, args, terminal),
        SpinAction::Predict(args) => predict::predict(global, args, terminal),
        SpinAction::Replay(args) => replay::replay(global, args, terminal),
        SpinAction::Attach(args) => attach::attach(global, args, terminal),
        SpinAction::Advise(args) => advise::advise(global, args, terminal),
        SpinAction::Scan(args) => scan::scan(global, args, terminal),
    }
}
