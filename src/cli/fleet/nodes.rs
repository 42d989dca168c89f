//! The nodes of a fleet that an argument names: of the store, or of its folder.

use std::path::Path;

use anyhow::bail;

use super::found::{FoundFleet, LAST, fleet_record, folder_of, unknown};
use crate::cli::args::Global;
use crate::cli::opening::needed_store;
use pinwise_nodes::Nodes;
use pinwise_record::{FleetNode, FleetRecord, Kind, read};
use pinwise_store::{Filter, Store};

/// A fleet and its nodes.
pub(super) struct FleetWithNodes {
    pub(super) id: String,
    /// `None` if the store has only its nodes.
    pub(super) record: Option<FleetRecord>,
    pub(super) nodes: Nodes,
}

/// The fleet of an id, its beginning, `last`, or a folder.
pub(super) fn load_fleet(global: &Global, name: &str) -> anyhow::Result<FleetWithNodes> {
    if let Some((path, is_path)) = folder_of(name) {
        return load_from_folder(&path, is_path);
    }
    load_from_store(&needed_store(global)?, name)
}

/// Is this the name of a folder?
pub(super) fn is_folder(name: &str) -> bool {
    name != LAST && Path::new(name).join("fleet.json").is_file()
}

fn load_from_folder(path: &Path, is_path: bool) -> anyhow::Result<FleetWithNodes> {
    let FoundFleet { folder, record, .. } = FoundFleet::at(path, is_path)?;
    let mut nodes = Nodes::new();
    let folders = folder.list_nodes()?;
    for message in folders.unusable {
        nodes.skip(message, "it is not a node's");
    }
    for node in folders.nodes {
        let snapshot = node.read_all(&record)?;
        for file in snapshot.unusable {
            nodes.skip(file, "it cannot be used");
        }
        if snapshot.newest.is_some() || !snapshot.done.is_empty() {
            nodes.add(snapshot.record);
        }
    }
    Ok(FleetWithNodes {
        id: record.id.clone(),
        record: Some(record),
        nodes,
    })
}

fn load_from_store(store: &Store, name: &str) -> anyhow::Result<FleetWithNodes> {
    let record = fleet_record(store, name)?;
    let id = record.as_ref().map_or(name, |record| &record.id).to_owned();
    let mut nodes = Nodes::new();
    let filter = Filter {
        schema: Some(Kind::FleetNode.name().to_owned()),
        tag: Some(FleetRecord::tag(&id)),
        ..Filter::default()
    };
    store.visit_bodies(&filter, |entry, body| match read::<FleetNode>(body) {
        Ok(node) if node.fleet == id => nodes.add(node),
        Ok(node) => nodes.skip(entry.id, format!("it is of fleet {}", node.fleet)),
        Err(error) => nodes.skip(entry.id, error.to_string()),
    })?;
    if record.is_none() && nodes.is_empty() {
        bail!("{}", unknown(store, name)?);
    }
    Ok(FleetWithNodes { id, record, nodes })
}
