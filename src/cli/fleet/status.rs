//! `fleet status`: what each node is at.

use super::launch;
use crate::cli::Exit;
use crate::cli::args::{FleetStatusArgs, Global};
use crate::cli::terminal::Terminal;
use crate::fleet::folder::FleetFolder;
use crate::fleet::launcher::JobState;
use crate::fleet::node_folder::NodeTale;
use crate::fleet::state;
use crate::machine::linux::time_of_day;
use crate::record::{FleetRecord, FleetStatus};
use crate::report;

pub(super) fn status(
    global: &Global,
    args: &FleetStatusArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let (folder, fleet) = launch::found(global, &args.fleet)?;
    let (status, _) = look(&folder, &fleet)?;
    if terminal.is_json() {
        terminal.print_json(&status)?;
    } else {
        terminal.print(&report::fleet_status(&status, terminal.palette()))?;
    }
    Ok(Exit::Done)
}

/// What a fleet is at, by its folder and by the scheduler.
pub(super) fn look(
    folder: &FleetFolder,
    fleet: &FleetRecord,
) -> anyhow::Result<(FleetStatus, Result<Vec<JobState>, String>)> {
    // The scheduler first: what ends meanwhile has its files by then.
    let states = launch::states(folder, fleet);
    let (nodes, strange) = folder.nodes()?;
    let tales: Vec<NodeTale> = nodes
        .iter()
        .map(|node| node.tale(fleet))
        .collect::<Result<_, _>>()?;
    let known = states.as_ref().ok().map(Vec::as_slice);
    let mut status = state::status(fleet, &tales, known, &time_of_day());
    if let Err(note) = &states {
        status.notes.insert(0, note.clone());
    }
    status.notes.extend(
        strange
            .into_iter()
            .map(|name| format!("Not usable: {name}")),
    );
    Ok((status, states))
}
