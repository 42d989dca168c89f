//! `fleet collect`: copies records from the fleet's folder into the store.

use anyhow::bail;

use super::{found, launch};
use crate::cli::Exit;
use crate::cli::args::{FleetCollectArgs, Global};
use crate::cli::opening::open_store;
use crate::cli::terminal::Terminal;
use pinwise_fleet::gather::{gather, store_fleet};
use pinwise_format::count;

pub(super) fn collect(
    global: &Global,
    args: &FleetCollectArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let found = found::find_fleet(global, &args.fleet)?;
    let fleet = &found.record;
    let Some(mut store) = open_store(global)? else {
        bail!("--store none: there is nothing to collect into");
    };
    // Fails if the store has another fleet of this id, before anything is queried or copied.
    store_fleet(fleet, &mut store)?;
    let reasons = match found.query_slurm() {
        Ok(states) => launch::list_failure_reasons(&states),
        Err(error) => {
            terminal.note(&format!("Slurm is not asked: {error:#}."));
            std::collections::BTreeMap::new()
        }
    };
    let gathered = gather(&found.folder, fleet, &reasons, &mut store)?;
    for file in &gathered.unusable {
        terminal.warn(&format!("not taken: {file}"));
    }
    let total = gathered.new + gathered.known;
    terminal.print(&format!(
        "Fleet {}: {} of {}, {} new.\n",
        fleet.id,
        count(total, "record"),
        count(gathered.nodes, "node"),
        gathered.new
    ))?;
    Ok(match gathered.unusable.is_empty() {
        true => Exit::Done,
        false => Exit::Error,
    })
}
