//! `record copy`: copies records from one store to another.

use std::collections::BTreeSet;

use anyhow::{Context, anyhow, bail};
use serde_json::json;

use super::Exit;
use super::args::CopyArgs;
use super::opening::{make_spool, parse_location};
use super::terminal::Terminal;
use pinwise_format::count;
use pinwise_store::{Filter, Growth, Location, Spool, Store, StoreError, Stored};

/// The most records, and bytes, that are copied in one transaction.
const MAX_BATCH_RECORDS: usize = 250;
const MAX_BATCH_BYTES: usize = 16 << 20;

/// The result of a copy.
#[derive(Default)]
struct Copied {
    copied: usize,
    /// Records that the target had already.
    existing: usize,
    /// Ids of records that a running pinwise still writes.
    being_written: Vec<String>,
}

pub(super) fn copy(args: &CopyArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let from = parse_argument(&args.from, "FROM")?;
    let to = parse_argument(&args.to, "TO")?;
    if from == to {
        bail!("FROM and TO are the same store, {from}");
    }
    if let Location::Sqlite(path) = &from
        && !path.exists()
    {
        bail!("FROM: no such file: {}", path.display());
    }
    let source = open_store(&from, "FROM", terminal, Store::open_to_read)?;
    let mut target = open_store(&to, "TO", terminal, Store::open_at)?;
    let copied = copy_all(&source, &mut target)?;
    for id in &copied.being_written {
        terminal.warn(&format!(
            "record {id} is skipped: a running pinwise is still writing it; copy again when it has ended"
        ));
    }
    if terminal.is_json() {
        terminal.print_json(&json!({
            "from": from.to_string(), "to": to.to_string(),
            "copied": copied.copied, "already_there": copied.existing, "being_written": copied.being_written,
        }))?;
        return Ok(Exit::Done);
    }
    let many = count(copied.copied, "record");
    let there = match copied.existing {
        0 => String::new(),
        there => format!("; {there} of {} already existed", copied.copied + there),
    };
    terminal.print(&format!("Copied {many}{there}.\n"))?;
    Ok(Exit::Done)
}

/// Parses a location; an error names its argument.
fn parse_argument(text: &str, argument: &str) -> anyhow::Result<Location> {
    parse_location(text).map_err(|error| match error.downcast() {
        Ok(StoreError::Location { text, reason }) => anyhow!("{argument} '{text}': {reason}"),
        Ok(other) => other.into(),
        Err(error) => error,
    })
}

fn open_store(
    location: &Location,
    argument: &'static str,
    terminal: &Terminal,
    open: impl FnOnce(&Location, &Spool) -> Result<Option<Store>, StoreError>,
) -> anyhow::Result<Store> {
    let store = open(location, &make_spool(location, *terminal)?).context(argument)?;
    store.with_context(|| format!("{argument}: 'none' is not a store"))
}

/// Copies all records, the oldest first, so that an interrupted copy has no gaps.
fn copy_all(source: &Store, target: &mut Store) -> anyhow::Result<Copied> {
    let lines = source.find(&Filter::default())?.lines;
    let there = target.find(&Filter::default())?.lines;
    let there: BTreeSet<String> = there.into_iter().map(|line| line.entry.id).collect();
    let mut copied = Copied::default();
    let mut batch: Vec<Stored> = Vec::new();
    let mut bytes = 0;
    for line in lines.into_iter().rev() {
        let entry = line.entry;
        if there.contains(&entry.id) {
            copied.existing += 1;
            continue;
        }
        let is_growing = || matches!(source.growth(&entry.id), Growth::Growing(_));
        if !entry.is_complete && is_growing() {
            copied.being_written.push(entry.id);
            continue;
        }
        let stored = source.load(&entry.id)?;
        bytes += stored.body.len();
        batch.push(stored);
        if batch.len() >= MAX_BATCH_RECORDS || bytes >= MAX_BATCH_BYTES {
            copy_batch(target, &mut batch, &mut copied)?;
            bytes = 0;
        }
    }
    copy_batch(target, &mut batch, &mut copied)?;
    Ok(copied)
}

fn copy_batch(
    target: &mut Store,
    batch: &mut Vec<Stored>,
    copied: &mut Copied,
) -> anyhow::Result<()> {
    let records = std::mem::take(batch);
    let sent = records.len();
    let adopted = target.adopt(records).with_context(|| {
        format!(
            "{} copied so far; the same command copies the rest",
            count(copied.copied, "record")
        )
    })?;
    copied.copied += adopted;
    // Other processes may have copied some meanwhile.
    copied.existing += sent - adopted;
    Ok(())
}
