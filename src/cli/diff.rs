//! `diff`: what changed from one stored record to another.

use anyhow::{Context, bail};
use serde_json::value::RawValue;

use super::Exit;
use super::args::{DiffArgs, Global};
use super::named::{self, Reported, reported};
use super::terminal::Terminal;
use pinwise_record::{AnyRecord, Kind, ProfileDiff, Record, TopologyDiff, read};
use pinwise_store::Stored;
use pinwise_study::change::{self, Side};

pub(super) fn diff(global: &Global, args: &DiffArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let (a, b) = (reported(global, &args.a)?, reported(global, &args.b)?);
    let changed = between(&a, &b)?;
    if terminal.is_json() {
        terminal.print(&format!("{}\n", changed.to_json()?))?;
    } else {
        terminal.print(&pinwise_report::text(&changed, terminal.palette()))?;
    }
    Ok(Exit::Done)
}

/// What changed from one record to another, as a page gets it; `None` where
/// they have nothing to compare.
pub(super) fn for_page(a: &Reported, b: &Reported) -> Option<Box<RawValue>> {
    between(a, b).ok()?.to_json().ok()
}

/// The same of two stored records, as JSON for the local site.
pub(super) fn of_stored(a: &Stored, b: &Stored) -> anyhow::Result<String> {
    let (a, b) = (named::of_stored(a)?, named::of_stored(b)?);
    Ok(between(&a, &b)?.to_json()?.get().to_owned())
}

fn between(a: &Reported, b: &Reported) -> anyhow::Result<AnyRecord> {
    if a.entry.id == b.entry.id && a.record.get() == b.record.get() {
        bail!("{} is both A and B: name another", a.entry.id);
    }
    Ok(match (kind(a), kind(b)) {
        (Some(Kind::Topology), Some(Kind::Topology)) => {
            let names = [a.entry.id.as_str(), b.entry.id.as_str()];
            let found = TopologyDiff::between(names, &kept(a)?, &kept(b)?);
            AnyRecord::TopologyDiff(Box::new(found))
        }
        (Some(Kind::Profile), Some(Kind::Profile)) => {
            AnyRecord::ProfileDiff(Box::new(ProfileDiff::between(&kept(a)?, &kept(b)?)?))
        }
        _ => AnyRecord::Diff(Box::new(change::between(side(a), side(b))?)),
    })
}

fn kind(reported: &Reported) -> Option<Kind> {
    Kind::of_schema(&reported.entry.schema).ok()
}

fn kept<R: Record>(reported: &Reported) -> anyhow::Result<R> {
    read(reported.record.get()).with_context(|| reported.entry.id.clone())
}

fn side(reported: &Reported) -> Side<'_> {
    Side {
        entry: &reported.entry,
        summary: &reported.summary,
        record: reported.record.get(),
    }
}
