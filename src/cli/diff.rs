//! `diff`: what changed from one stored record to another.

use anyhow::{Context, bail};
use serde_json::value::{RawValue, to_raw_value};

use super::Exit;
use super::args::{DiffArgs, Global};
use super::report::{Reported, reported};
use super::terminal::Terminal;
use crate::record::{
    DiffRecord, PROFILE_SCHEMA, ProfileDiff, ProfileRecord, SchemaName, TOPOLOGY_SCHEMA,
    TopologyDiff, TopologyRecord, read,
};
use crate::report;
use crate::store::Stored;
use crate::study::change::{self, Side};

/// Functions of two profiles that are told.
const MOST_FUNCTIONS: usize = 15;

/// What changed, in the form that fits the records.
enum Changed {
    Figures(Box<DiffRecord>),
    Machines(TopologyDiff),
    Profiles(Box<ProfileDiff>),
}

pub(super) fn diff(global: &Global, args: &DiffArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let (a, b) = (reported(global, &args.a)?, reported(global, &args.b)?);
    let changed = between(&a, &b)?;
    if terminal.is_json() {
        terminal.print(&format!("{}\n", changed.json()?))?;
        return Ok(Exit::Done);
    }
    let palette = terminal.palette();
    terminal.print(&match &changed {
        Changed::Figures(record) => report::record_diff(record, palette),
        Changed::Machines(record) => report::topology_diff(record, palette),
        Changed::Profiles(record) => report::profile_diff(record, MOST_FUNCTIONS, palette),
    })?;
    Ok(Exit::Done)
}

/// What changed from one record to another, as a page gets it; `None` where
/// they have nothing to compare.
pub(super) fn for_page(a: &Reported, b: &Reported) -> Option<Box<RawValue>> {
    between(a, b).and_then(|changed| changed.json()).ok()
}

/// The same of two stored records, as JSON for the local site.
pub(super) fn of_stored(a: &Stored, b: &Stored) -> anyhow::Result<String> {
    let (a, b) = (super::report::of_stored(a)?, super::report::of_stored(b)?);
    Ok(between(&a, &b)?.json()?.get().to_owned())
}

fn between(a: &Reported, b: &Reported) -> anyhow::Result<Changed> {
    if a.entry.id == b.entry.id && a.record.get() == b.record.get() {
        bail!("{} is both A and B: name another", a.entry.id);
    }
    if is_of(a, TOPOLOGY_SCHEMA) && is_of(b, TOPOLOGY_SCHEMA) {
        let names = [a.entry.id.as_str(), b.entry.id.as_str()];
        let machines: [TopologyRecord; 2] = [kept(a, TOPOLOGY_SCHEMA)?, kept(b, TOPOLOGY_SCHEMA)?];
        let found = TopologyDiff::between(names, &machines[0], &machines[1]);
        return Ok(Changed::Machines(found));
    }
    if is_of(a, PROFILE_SCHEMA) && is_of(b, PROFILE_SCHEMA) {
        let profiles: [ProfileRecord; 2] = [kept(a, PROFILE_SCHEMA)?, kept(b, PROFILE_SCHEMA)?];
        let found = ProfileDiff::between(&profiles[0], &profiles[1])?;
        return Ok(Changed::Profiles(Box::new(found)));
    }
    let found = change::between(side(a), side(b))?;
    Ok(Changed::Figures(Box::new(found)))
}

fn is_of(reported: &Reported, schema: &str) -> bool {
    let name = |text| SchemaName::parse(text).map(|schema| schema.name.to_owned());
    name(&reported.entry.schema) == name(schema)
}

fn kept<T: serde::de::DeserializeOwned>(
    reported: &Reported,
    schema: &'static str,
) -> anyhow::Result<T> {
    read(reported.record.get(), schema).with_context(|| reported.entry.id.clone())
}

fn side(reported: &Reported) -> Side<'_> {
    Side {
        entry: &reported.entry,
        outline: &reported.outline,
        record: reported.record.get(),
    }
}

impl Changed {
    fn json(&self) -> anyhow::Result<Box<RawValue>> {
        Ok(match self {
            Self::Figures(record) => to_raw_value(record)?,
            Self::Machines(record) => to_raw_value(record)?,
            Self::Profiles(record) => to_raw_value(record)?,
        })
    }
}
