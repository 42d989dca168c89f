//! `record copy`: records from one store to another.

use std::collections::BTreeSet;

use anyhow::{Context, anyhow, bail};
use serde_json::json;

use super::Exit;
use super::args::CopyArgs;
use super::opening::{parse_location, spool};
use super::terminal::Terminal;
use pinwise_format::count;
use pinwise_store::{Filter, Growth, Location, Spool, Store, StoreError, Stored};

/// Records that are copied together, and their bytes.
const MAX_RECORDS: usize = 250;
const MAX_BYTES: usize = 16 << 20;

/// What a copy came to.
#[derive(Default)]
struct Copied {
    copied: usize,
    there: usize,
    /// Ids of records that a living pinwise still writes.
    left: Vec<String>,
}

pub(super) fn copy(args: &CopyArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let from = read_argument(&args.from, "FROM")?;
    let to = read_argument(&args.to, "TO")?;
    if from == to {
        bail!("FROM and TO are the same store, {from}");
    }
    if let Location::Sqlite(path) = &from
        && !path.exists()
    {
        bail!("FROM: no such file: {}", path.display());
    }
    let source = open(&from, "FROM", terminal, Store::open_to_read)?;
    let mut target = open(&to, "TO", terminal, Store::open_at)?;
    let copied = copy_all(&source, &mut target)?;
    for id in &copied.left {
        terminal.warn(&format!(
            "record {id} is skipped: a running pinwise is still writing it; copy again when it has ended"
        ));
    }
    if terminal.is_json() {
        terminal.print_json(&json!({
            "from": from.to_string(), "to": to.to_string(),
            "copied": copied.copied, "already_there": copied.there, "being_written": copied.left,
        }))?;
        return Ok(Exit::Done);
    }
    let many = count(copied.copied, "record");
    let there = match copied.there {
        0 => String::new(),
        there => format!("; {there} of {} already existed", copied.copied + there),
    };
    terminal.print(&format!("Copied {many}{there}.\n"))?;
    Ok(Exit::Done)
}

/// Reads a location; an error names its argument.
fn read_argument(text: &str, which: &str) -> anyhow::Result<Location> {
    parse_location(text).map_err(|error| match error.downcast() {
        Ok(StoreError::Location { text, reason }) => anyhow!("{which} '{text}': {reason}"),
        Ok(other) => other.into(),
        Err(error) => error,
    })
}

fn open(
    location: &Location,
    which: &'static str,
    terminal: &Terminal,
    open: impl FnOnce(&Location, &Spool) -> Result<Option<Store>, StoreError>,
) -> anyhow::Result<Store> {
    let store = open(location, &spool(location, *terminal)?).context(which)?;
    store.with_context(|| format!("{which}: 'none' is not a store"))
}

/// Copies the oldest first, so that an interrupted copy is a history without gaps.
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
            copied.there += 1;
            continue;
        }
        let is_growing = || matches!(source.growth(&entry.id), Growth::Growing(_));
        if !entry.is_complete && is_growing() {
            copied.left.push(entry.id);
            continue;
        }
        let stored = source.load(&entry.id)?;
        bytes += stored.body.len();
        batch.push(stored);
        if batch.len() >= MAX_RECORDS || bytes >= MAX_BYTES {
            send(target, &mut batch, &mut copied)?;
            bytes = 0;
        }
    }
    send(target, &mut batch, &mut copied)?;
    Ok(copied)
}

fn send(target: &mut Store, batch: &mut Vec<Stored>, copied: &mut Copied) -> anyhow::Result<()> {
    let records = std::mem::take(batch);
    let sent = records.len();
    let adopted = target.adopt(records).with_context(|| {
        format!(
            "{} copied so far; the same command copies the rest",
            count(copied.copied, "record")
        )
    })?;
    copied.copied += adopted;
    // Others may have brought some meanwhile.
    copied.there += sent - adopted;
    Ok(())
}
