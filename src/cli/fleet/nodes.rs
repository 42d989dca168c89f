//! Loads the nodes of the fleet that an argument names, from the store or from its folder.

use std::path::Path;

use anyhow::bail;

use super::found::{FoundFleet, LAST, describe_unknown_fleet, find_record, parse_folder};
use crate::cli::args::Global;
use crate::cli::opening::require_store;
use pinwise_nodes::Nodes;
use pinwise_record::{FleetNode, FleetRecord, Kind, read};
use pinwise_store::{Filter, Store};

/// A fleet and its nodes.
pub(super) struct FleetWithNodes {
    pub(super) id: String,
    /// `None` if the store has only the nodes.
    pub(super) record: Option<FleetRecord>,
    pub(super) nodes: Nodes,
}

/// Loads a fleet by its id, a prefix of it, `last`, or its folder.
pub(super) fn load_fleet(global: &Global, name: &str) -> anyhow::Result<FleetWithNodes> {
    if let Some((path, is_path)) = parse_folder(name) {
        return load_from_folder(&path, is_path);
    }
    load_from_store(&require_store(global)?, name)
}

/// Is this the path of a fleet's folder?
pub(super) fn is_folder(name: &str) -> bool {
    name != LAST && Path::new(name).join("fleet.json").is_file()
}

fn load_from_folder(path: &Path, is_path: bool) -> anyhow::Result<FleetWithNodes> {
    let FoundFleet { folder, record, .. } = FoundFleet::open(path, is_path)?;
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
    let record = find_record(store, name)?;
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
        bail!("{}", describe_unknown_fleet(store, name)?);
    }
    Ok(FleetWithNodes { id, record, nodes })
}
