//! `diff`: what changed from one stored record to another.

use anyhow::{Context, bail};
use serde_json::value::RawValue;

use super::Exit;
use super::args::{DiffArgs, Global};
use super::named::{self, GivenRecord, load_given};
use super::terminal::Terminal;
use pinwise_record::{AnyRecord, Kind, ProfileDiff, Record, TopologyDiff, read};
use pinwise_store::Stored;
use pinwise_study::change::{self, Side};

pub(super) fn diff(global: &Global, args: &DiffArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let (a, b) = (load_given(global, &args.a)?, load_given(global, &args.b)?);
    let difference = compare_records(&a, &b)?;
    if terminal.is_json() {
        terminal.print_data(&format!("{}\n", difference.to_json()?))?;
    } else {
        terminal.print(&pinwise_report::render_record(
            &difference,
            terminal.palette(),
        ))?;
    }
    Ok(Exit::Done)
}

/// What changed from one record to another, in the page's form; `None` if they have nothing to
/// compare.
pub(super) fn diff_for_page(a: &GivenRecord, b: &GivenRecord) -> Option<Box<RawValue>> {
    compare_records(a, b).ok()?.to_json().ok()
}

/// Compares two stored records, as JSON for the local site.
pub(super) fn diff_stored(a: &Stored, b: &Stored) -> anyhow::Result<String> {
    let (a, b) = (named::open_stored(a)?, named::open_stored(b)?);
    Ok(compare_records(&a, &b)?.to_json()?.get().to_owned())
}

fn compare_records(a: &GivenRecord, b: &GivenRecord) -> anyhow::Result<AnyRecord> {
    if a.entry.id == b.entry.id && a.record.get() == b.record.get() {
        bail!("{} is both A and B: name another", a.entry.id);
    }
    Ok(match (kind_of(a), kind_of(b)) {
        (Some(Kind::Topology), Some(Kind::Topology)) => {
            let names = [a.entry.id.as_str(), b.entry.id.as_str()];
            TopologyDiff::compare(names, &read_record(a)?, &read_record(b)?).into()
        }
        (Some(Kind::Profile), Some(Kind::Profile)) => {
            ProfileDiff::between(&read_record(a)?, &read_record(b)?)?.into()
        }
        _ => change::compare_records(to_side(a), to_side(b))?.into(),
    })
}

fn kind_of(record: &GivenRecord) -> Option<Kind> {
    Kind::from_schema(&record.entry.schema).ok()
}

fn read_record<R: Record>(record: &GivenRecord) -> anyhow::Result<R> {
    read(record.record.get()).with_context(|| record.entry.id.clone())
}

fn to_side(record: &GivenRecord) -> Side<'_> {
    Side {
        entry: &record.entry,
        summary: &record.summary,
        record: record.record.get(),
    }
}
