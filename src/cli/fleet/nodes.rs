//! The nodes of a fleet that an argument names: of the store, or of its folder.

use std::io;
use std::path::Path;

use anyhow::{Context, bail};

use super::launch::{self, Found, LAST};
use crate::cli::args::Global;
use crate::cli::opening::needed_store;
use pinwise_fleet::folder::{FleetFolder, FolderError};
use pinwise_machine::linux::effective_user;
use pinwise_record::{FLEET_NODE_SCHEMA, FLEET_SCHEMA, FleetNode, FleetRecord, SchemaName, read};
use pinwise_store::{Filter, Store};
use pinwise_study::fleet::Nodes;

/// Fleets named where one must be chosen.
const MOST_NAMES: usize = 8;

/// A fleet and its nodes.
pub(super) struct Loaded {
    pub(super) id: String,
    /// `None` where the store has only its nodes.
    pub(super) record: Option<FleetRecord>,
    pub(super) nodes: Nodes,
}

/// The fleet of an id, its beginning, `last`, or a folder.
pub(super) fn loaded(global: &Global, name: &str) -> anyhow::Result<Loaded> {
    if let Some((path, is_path)) = launch::folder_of(name) {
        return of_folder(&path, is_path);
    }
    of_store(&needed_store(global)?, name)
}

/// Is this the name of a folder?
pub(super) fn is_folder(name: &str) -> bool {
    name != LAST && Path::new(name).join("fleet.json").is_file()
}

fn of_folder(path: &Path, is_path: bool) -> anyhow::Result<Loaded> {
    let Found { folder, record, .. } = Found::at(path, is_path)?;
    let mut nodes = Nodes::new();
    let (folders, strange) = folder.nodes()?;
    for what in strange {
        nodes.skip(what, "it is not a node's");
    }
    for node in folders {
        let tale = node.tale(&record)?;
        for file in tale.unusable {
            nodes.skip(file, "it cannot be used");
        }
        if tale.newest.is_some() || !tale.done.is_empty() {
            nodes.add(tale.record);
        }
    }
    Ok(Loaded {
        id: record.id.clone(),
        record: Some(record),
        nodes,
    })
}

fn of_store(store: &Store, name: &str) -> anyhow::Result<Loaded> {
    let record = fleet_record(store, name)?;
    let id = record.as_ref().map_or(name, |record| &record.id).to_owned();
    let mut nodes = Nodes::new();
    let filter = Filter {
        schema: kind(FLEET_NODE_SCHEMA),
        tag: Some(FleetRecord::tag(&id)),
        ..Filter::default()
    };
    store.each_body(&filter, |entry, body| match read::<FleetNode>(body) {
        Ok(node) if node.fleet == id => nodes.add(node),
        Ok(node) => nodes.skip(entry.id, format!("it is of fleet {}", node.fleet)),
        Err(error) => nodes.skip(entry.id, error.to_string()),
    })?;
    if record.is_none() && nodes.is_empty() {
        bail!("{}", unknown(store, name)?);
    }
    Ok(Loaded { id, record, nodes })
}

/// All versions of a schema: newer ones are reported.
fn kind(schema: &str) -> Option<String> {
    SchemaName::parse(schema).map(|schema| schema.name.to_owned())
}

/// The record of a fleet by its id or the beginning of it; `None` where there
/// is none, which does not mean that there are no nodes.
pub(super) fn fleet_record(store: &Store, name: &str) -> anyhow::Result<Option<FleetRecord>> {
    let ids = fleets(store)?;
    if name == LAST {
        return last(store, &ids).map(Some);
    }
    let fitting: Vec<&String> = match name {
        name if ids.iter().any(|id| id == name) => ids.iter().filter(|id| *id == name).collect(),
        name => ids.iter().filter(|id| id.starts_with(name)).collect(),
    };
    match fitting.as_slice() {
        [] => Ok(None),
        [id] => {
            let stored = store.load(id)?;
            Ok(Some(stored.kept()?))
        }
        several => bail!(
            "fleet '{name}': {} begin so: {}",
            several.len(),
            listed(several)
        ),
    }
}

/// The user's newest fleet: others may keep theirs in the same store.
fn last(store: &Store, ids: &[String]) -> anyhow::Result<FleetRecord> {
    for id in ids {
        // What cannot be read is newer than this pinwise, or damaged; by name
        // it is reported.
        let record = store.load(id)?.kept::<FleetRecord>();
        if let Some(record) = record.ok().filter(is_own) {
            return Ok(record);
        }
    }
    let whose = if ids.is_empty() { "" } else { " of yours" };
    bail!("no fleet{whose} is in the store (pinwise fleet submit, pinwise fleet simulate)")
}

/// Is a fleet the user's? Of one with a folder the folder decides, not what the
/// record says, for anybody who shares the store may have written that.
fn is_own(record: &FleetRecord) -> bool {
    if record.user.is_some_and(|user| user != effective_user()) {
        return false;
    }
    let Some(folder) = &record.folder else {
        return true;
    };
    match FleetFolder::own(Path::new(folder), &launch::users()) {
        Ok((_, there)) => launch::is_same(&there, record),
        Err(FolderError::NoFleet { reason, .. }) => reason.kind() == io::ErrorKind::NotFound,
        Err(_) => false,
    }
}

/// Ids of the store's fleets, the newest first.
fn fleets(store: &Store) -> anyhow::Result<Vec<String>> {
    let filter = Filter {
        schema: kind(FLEET_SCHEMA),
        ..Filter::default()
    };
    let found = store.find(&filter).context("the fleets of the store")?;
    Ok(found.lines.into_iter().map(|line| line.entry.id).collect())
}

pub(super) fn unknown(store: &Store, name: &str) -> anyhow::Result<String> {
    let ids = fleets(store)?;
    let ids: Vec<&String> = ids.iter().collect();
    Ok(if ids.is_empty() {
        format!("fleet '{name}': the store has no fleet, and there is no such folder")
    } else {
        format!(
            "fleet '{name}': the store has no such fleet; it has {}",
            listed(&ids)
        )
    })
}

fn listed(ids: &[&String]) -> String {
    let shown: Vec<&str> = ids.iter().take(MOST_NAMES).map(|id| id.as_str()).collect();
    let more = if ids.len() > MOST_NAMES { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
