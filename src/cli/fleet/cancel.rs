//! `fleet cancel`: jobs end; what is done stays.

use super::launch;
use crate::cli::Exit;
use crate::cli::args::{FleetCancelArgs, Global};
use crate::cli::terminal::Terminal;

pub(super) fn cancel(
    global: &Global,
    args: &FleetCancelArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let (folder, record) = launch::found(global, &args.fleet)?;
    launch::refuse_copy(&folder, &record)?;
    let submission = folder.submission()?;
    let launcher = launch::of(&submission)?;
    launcher.cancel(&launch::task(&folder, &record), &record.jobs)?;
    let id = &record.id;
    terminal.print(&format!(
        "Fleet {id}: its jobs are cancelled; what is done stays (pinwise fleet resume {id} goes on).\n"
    ))?;
    Ok(Exit::Done)
}
