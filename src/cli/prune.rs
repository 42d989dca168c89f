//! `record prune`: removes stored records.

use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde_json::json;

use super::Exit;
use super::args::{Global, PruneArgs};
use super::history::{to_filter, to_line};
use super::opening::open_store_to_change;
use super::opening::store_location;
use super::terminal::Terminal;
use pinwise_format::{bytes, count};
use pinwise_machine::linux::time_of_day;
use pinwise_report::Line;
use pinwise_store::{ListedRecord, Location, Store, StoreError};

/// The most records that the text lists; of the others it gives the number.
const MAX_LISTED: usize = 20;

pub(super) fn prune(
    global: &Global,
    args: &PruneArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let mut store = open_store_to_change(global)?;
    let found = store.find(&to_filter(&args.narrowing)?)?;
    let all = store.find(&pinwise_store::Filter {
        limit: Some(0),
        ..Default::default()
    })?;
    let named: Vec<String> = args
        .ids
        .iter()
        .map(|id| Ok(store.load(id)?.entry.id))
        .collect::<anyhow::Result<_>>()?;
    let chosen = choose_records(found.lines, args, &named)?;
    let mut size: u64 = 0;
    for listed in &chosen {
        size += store.bytes_of(&listed.entry.id)?;
    }
    if args.yes {
        let is_server = matches!(store_location(global)?, Location::Postgres(_));
        return remove(&mut store, &chosen, is_server, terminal);
    }
    if terminal.is_json() {
        let ids: Vec<&str> = chosen
            .iter()
            .map(|listed| listed.entry.id.as_str())
            .collect();
        terminal.print_json(&json!({ "removed": false, "records": ids, "bytes": size }))?;
        return Ok(Exit::Done);
    }
    if chosen.is_empty() {
        terminal.print("No matching records.\n")?;
        return Ok(Exit::Done);
    }
    let shown: Vec<Line<'_>> = chosen.iter().take(MAX_LISTED).map(to_line).collect();
    let mut text = pinwise_report::render_history(&shown);
    if chosen.len() > shown.len() {
        text.push_str(&format!("and {} more\n", chosen.len() - shown.len()));
    }
    text.push_str(&format!(
        "Would remove {} of {} ({}). Run again with --yes.\n",
        chosen.len(),
        count(all.total, "record"),
        bytes(size as f64)
    ));
    terminal.print(&text)?;
    Ok(Exit::Done)
}

/// Chooses the records that meet all conditions; they come newest first.
fn choose_records(
    lines: Vec<ListedRecord>,
    args: &PruneArgs,
    named: &[String],
) -> anyhow::Result<Vec<ListedRecord>> {
    let oldest_kept = args.older_than.map(time_before).transpose()?;
    let spared = args.keep.unwrap_or(0);
    let fits = lines
        .into_iter()
        .filter(|listed| named.is_empty() || named.contains(&listed.entry.id))
        .filter(|listed| !args.untagged || listed.summary.tags.is_empty());
    let chosen = fits.skip(spared);
    Ok(chosen
        .filter(|listed| {
            oldest_kept
                .as_ref()
                .is_none_or(|oldest_kept| listed.entry.time < *oldest_kept)
        })
        .collect())
}

/// The time this long ago, in the format of records, whose texts sort by time.
fn time_before(age: Duration) -> anyhow::Result<String> {
    let now: SystemTime = humantime::parse_rfc3339(&time_of_day()).context("the time of day")?;
    let then = now
        .checked_sub(age)
        .filter(|then| *then >= SystemTime::UNIX_EPOCH);
    let then = then.context("--older-than: that is before the first possible record")?;
    Ok(humantime::format_rfc3339_seconds(then).to_string())
}

fn remove(
    store: &mut Store,
    chosen: &[ListedRecord],
    is_server: bool,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let ids: Vec<String> = chosen
        .iter()
        .map(|listed| listed.entry.id.clone())
        .collect();
    let removed = store.remove(&ids)?;
    // If another process is reading now, new records will reuse the space.
    let freed = match removed.gone.is_empty() {
        true => Ok(0),
        false => store.reclaim_space(),
    };
    for id in &removed.being_written {
        terminal.warn(&format!(
            "record {id} is kept: a running pinwise is still writing it"
        ));
    }
    if !removed.of_others.is_empty() {
        terminal.warn(&format!(
            "{} of other database users are kept: {}",
            count(removed.of_others.len(), "record"),
            removed.of_others.join(", ")
        ));
    }
    if let Err(error) = &freed {
        let hint = match error {
            StoreError::Locked { .. } => "another process uses the store".to_owned(),
            other => other.to_string(),
        };
        terminal.warn(&format!(
            "the file keeps its size, its free space serves new records: {hint}"
        ));
    }
    let freed = freed.ok();
    if terminal.is_json() {
        terminal.print_json(&json!({
            "removed": true, "records": removed.gone, "freed_bytes": freed,
            "being_written": removed.being_written, "of_others": removed.of_others,
        }))?;
        return Ok(Exit::Done);
    }
    let space = match freed {
        _ if is_server => "; the server gives their space back when it vacuums".to_owned(),
        Some(freed) => format!("; the store's file is {} smaller", bytes(freed as f64)),
        None => String::new(),
    };
    let many = count(removed.gone.len(), "record");
    terminal.print(&format!("Removed {many}{space}.\n"))?;
    Ok(Exit::Done)
}
