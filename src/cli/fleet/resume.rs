//! `fleet resume`: what is missing is submitted again, and nothing else.

use std::collections::BTreeSet;

use super::launch;
use super::status::look;
use super::submit::start;
use crate::cli::Exit;
use crate::cli::args::{FleetResumeArgs, Global};
use crate::cli::terminal::Terminal;
use crate::fleet::hostlist::compress;
use crate::fleet::launcher::Wanted;
use crate::record::{FleetStatus, NodeState};
use crate::stats::verdict::count;

pub(super) fn resume(
    global: &Global,
    args: &FleetResumeArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let (folder, mut record) = launch::found(global, &args.fleet)?;
    let (status, states) = look(&folder, &record)?;
    // What runs or waits would be submitted a second time.
    states.map_err(|note| anyhow::anyhow!("{note}").context("nothing was submitted"))?;
    let submission = folder.submission()?;
    let launcher = launch::of(&submission)?;
    let lacking = Lacking::of(&status);
    if lacking.named.is_empty() && lacking.unnamed == 0 {
        let alive = status.running + status.queued;
        terminal.print(&match alive {
            0 => format!("Fleet {}: nothing is missing.\n", record.id),
            n => format!(
                "Fleet {}: nothing is missing but of {} that run or wait.\n",
                record.id,
                count(n, "node")
            ),
        })?;
        return Ok(Exit::Done);
    }
    let mut submitted = 0;
    for wanted in lacking.wanted(&submission.wanted(), &status) {
        let choice = launcher.choose(&wanted)?;
        for left in &choice.left_out {
            terminal.warn(&format!("not asked: {left}"));
        }
        if choice.count == 0 {
            continue;
        }
        submitted += choice.count;
        if args.dry_run {
            let plan = launcher.plan(&launch::task(&folder, &record), &wanted, &choice)?;
            terminal.print(&plan)?;
            continue;
        }
        start(
            global,
            &folder,
            &mut record,
            launcher.as_ref(),
            (&wanted, &choice),
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

/// What has neither all records nor a job.
struct Lacking {
    /// Nodes by name.
    named: Vec<String>,
    /// Nodes that the scheduler would have chosen.
    unnamed: usize,
}

impl Lacking {
    fn of(status: &FleetStatus) -> Self {
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

    /// What to ask the launcher for: nodes by name, and others that are none
    /// of those that are known.
    fn wanted(&self, first: &Wanted, status: &FleetStatus) -> Vec<Wanted> {
        let mut all = Vec::new();
        if !self.named.is_empty() {
            all.push(Wanted {
                count: None,
                list: Some(compress(&self.named)),
                is_array: false,
                ..first.clone()
            });
        }
        if self.unnamed > 0 {
            let known: BTreeSet<String> = status.nodes.iter().map(|n| n.node.clone()).collect();
            all.push(Wanted {
                count: Some(self.unnamed),
                list: None,
                exclude: known.into_iter().collect(),
                ..first.clone()
            });
        }
        all
    }
}
