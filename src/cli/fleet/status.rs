//! `fleet status`: the state of each node.

use super::found::{self, FoundFleet};
use crate::cli::Exit;
use crate::cli::args::{FleetStatusArgs, Global};
use crate::cli::terminal::Terminal;
use pinwise_fleet::launcher::JobState;
use pinwise_fleet::node_folder::NodeSnapshot;
use pinwise_fleet::state;
use pinwise_machine::linux::time_of_day;
use pinwise_record::FleetStatus;

pub(super) fn show_status(
    global: &Global,
    args: &FleetStatusArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let found = found::find_fleet(global, &args.fleet)?;
    let (status, _) = query_status(&found)?;
    terminal.show(&status, pinwise_report::render_fleet_status)?;
    Ok(Exit::Done)
}

/// Reads the state of a fleet from its folder and from the scheduler, with the scheduler's answer.
pub(super) fn query_status(
    found: &FoundFleet,
) -> anyhow::Result<(FleetStatus, anyhow::Result<Vec<JobState>>)> {
    // Query the scheduler first: a job that ends meanwhile has then written its files.
    let states = found.query_jobs();
    let folders = found.folder.list_nodes()?;
    let snapshots: Vec<NodeSnapshot> = folders
        .nodes
        .iter()
        .map(|node| node.read_all(&found.record))
        .collect::<Result<_, _>>()?;
    let job_states = states.as_ref().ok().map(Vec::as_slice);
    let mut status = state::fleet_status(&found.record, &snapshots, job_states, &time_of_day());
    if let Err(error) = &states {
        let note =
            format!("The scheduler is not asked, so this is from the folder alone: {error:#}.");
        status.notes.insert(0, note);
    }
    status.notes.extend(
        folders
            .unusable
            .into_iter()
            .map(|name| format!("Not usable: {name}")),
    );
    Ok((status, states))
}
