//! `fleet resume`: submits again what is missing, and nothing else.

use std::collections::BTreeSet;

use anyhow::Context;

use super::status::query_status;
use super::submit::submit_and_record;
use super::{found, launch};
use crate::cli::Exit;
use crate::cli::args::{FleetResumeArgs, Global};
use crate::cli::terminal::Terminal;
use pinwise_fleet::hostlist::compress;
use pinwise_fleet::launcher::NodeRequest;
use pinwise_format::count;
use pinwise_record::{FleetStatus, NodeState};

pub(super) fn resume(
    global: &Global,
    args: &FleetResumeArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let found = found::find_fleet(global, &args.fleet)?;
    let (submission, launcher) = found.open_launcher().context("nothing was submitted")?;
    let (status, states) = query_status(&found)?;
    // Running or queued jobs would be submitted twice.
    states.context("nothing was submitted: the scheduler does not answer")?;
    let lacking = Lacking::from_status(&status);
    if lacking.named.is_empty() && lacking.unnamed == 0 {
        let alive = status.running + status.queued;
        let id = &found.record.id;
        terminal.print(&match alive {
            0 => format!("Fleet {id}: nothing is missing.\n"),
            n => format!(
                "Fleet {id}: nothing is missing except from {} running or queued.\n",
                count(n, "node")
            ),
        })?;
        return Ok(Exit::Done);
    }
    let mut record = found.record.clone();
    let mut submitted = 0;
    for request in lacking.choose_nodes_to_request(&submission.to_node_request(), &status) {
        let choice = launcher.choose(&request)?;
        for left in &choice.left_out {
            terminal.warn(&format!("not asked: {left}"));
        }
        if choice.count == 0 {
            continue;
        }
        submitted += choice.count;
        if args.dry_run {
            let plan = launcher.plan(&found.task()?, &request, &choice)?;
            terminal.print(&plan)?;
            continue;
        }
        terminal.print(&found.describe_action(&format!(
            "submitting again through {}: {}",
            launcher.name(),
            match choice.nodes.as_slice() {
                [] => count(choice.count, "node"),
                nodes => launch::list_names(nodes),
            }
        )))?;
        submit_and_record(
            global,
            &found.folder,
            &mut record,
            launcher.as_ref(),
            &request,
            &choice,
        )?;
    }
    if args.dry_run {
        return Ok(Exit::Done);
    }
    let id = &record.id;
    terminal.print(&format!(
        "Fleet {id}: {} submitted again.\n",
        count(submitted, "node")
    ))?;
    Ok(match submitted {
        0 => Exit::Error,
        _ => Exit::Done,
    })
}

/// Nodes with neither all records nor a job.
struct Lacking {
    /// Nodes by name.
    named: Vec<String>,
    /// Number of nodes that the scheduler would have chosen.
    unnamed: usize,
}

impl Lacking {
    fn from_status(status: &FleetStatus) -> Self {
        let lacks = |state| matches!(state, NodeState::Failed | NodeState::Missing);
        let named = status.nodes.iter().filter(|node| lacks(node.state));
        let named: Vec<String> = named.map(|node| node.node.clone()).collect();
        let missing = status.nodes.iter();
        let missing = missing.filter(|node| node.state == NodeState::Missing);
        Self {
            named,
            unnamed: status.missing.saturating_sub(missing.count()),
        }
    }

    /// The requests to the launcher: the named nodes, and for the unnamed ones any others.
    fn choose_nodes_to_request(
        &self,
        first: &NodeRequest,
        status: &FleetStatus,
    ) -> Vec<NodeRequest> {
        let mut requests = Vec::new();
        if !self.named.is_empty() {
            requests.push(NodeRequest {
                count: None,
                list: Some(compress(&self.named)),
                is_array: false,
                ..first.clone()
            });
        }
        if self.unnamed > 0 {
            let known: BTreeSet<String> = status.nodes.iter().map(|n| n.node.clone()).collect();
            requests.push(NodeRequest {
                count: Some(self.unnamed),
                list: None,
                exclude: known.into_iter().collect(),
                ..first.clone()
            });
        }
        requests
    }
}
