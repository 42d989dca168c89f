//! `fleet cancel`: cancels the jobs; finished records stay.

use anyhow::Context;

use super::{found, launch};
use crate::cli::Exit;
use crate::cli::args::{FleetCancelArgs, Global};
use crate::cli::terminal::Terminal;
use pinwise_format::count;

pub(super) fn cancel(
    global: &Global,
    args: &FleetCancelArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let found = found::find_fleet(global, &args.fleet)?;
    let (_, launcher) = found.open_launcher().context("nothing was cancelled")?;
    let record = &found.record;
    let jobs = record.jobs.iter().map(|job| match &job.node {
        Some(node) => format!("{} ({node})", job.id),
        None => job.id.clone(),
    });
    terminal.print(&found.describe_action(&format!(
        "cancelling {} through {}: {}",
        count(record.jobs.len(), "job"),
        launcher.name(),
        launch::list_names(&jobs.collect::<Vec<_>>())
    )))?;
    launcher.cancel(&found.task()?, &record.jobs)?;
    let id = &record.id;
    terminal.print(&format!(
        "Fleet {id}: its jobs are cancelled; finished records stay (pinwise fleet resume {id} continues).\n"
    ))?;
    Ok(Exit::Done)
}
