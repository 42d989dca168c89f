//! `fleet`: runs the same studies on the nodes of a cluster and compares them.

mod cancel;
mod collect;
mod diff;
mod found;
mod launch;
mod node;
mod nodes;
mod report;
mod resume;
mod simulate;
mod status;
mod study;
mod submit;

use super::Exit;
use super::args::{FleetAction, FleetArgs, Global};
use super::terminal::Terminal;

pub(super) fn run_fleet(
    global: &Global,
    args: &FleetArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    match &args.action {
        FleetAction::Submit(args) => submit::submit(global, args, terminal),
        FleetAction::Status(args) => status::show_status(global, args, terminal),
        FleetAction::Collect(args) => collect::collect(global, args, terminal),
        FleetAction::Resume(args) => resume::resume(global, args, terminal),
        FleetAction::Cancel(args) => cancel::cancel(global, args, terminal),
        FleetAction::Report(args) => report::report(global, args, terminal),
        FleetAction::Diff(args) => diff::diff(global, args, terminal),
        FleetAction::Simulate(args) => simulate::simulate(global, args, terminal),
        FleetAction::Node(args) => node::run_node(args, terminal),
    }
}
