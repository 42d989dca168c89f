//! Copies records from a fleet's folder into a store. Records have ids, so each is stored once even
//! if it is gathered repeatedly or delivered by the node itself.

use std::collections::BTreeMap;

use super::folder::{FleetFolder, FolderError};
use super::node_folder::{NodeFolder, NodeSnapshot};
use pinwise_record::{FleetRecord, StepState};
use pinwise_store::{Store, StoreError, Stored};

/// The result of gathering.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatherOutcome {
    /// Nodes that have started an attempt or finished a step.
    pub nodes: usize,
    /// Records of steps that are new to the store.
    pub new: usize,
    /// Records of steps that were already in the store.
    pub known: usize,
    /// Files that cannot be used, each with the reason.
    pub unusable: Vec<String>,
}

/// Why gathering stopped.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The folder cannot be read.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store has another fleet with this id.
    #[error(
        "the store has another fleet '{id}', submitted {started} from {host}: two fleets cannot share an id (choose another store with --store, or another id with --id)"
    )]
    OtherFleet {
        /// The id.
        id: String,
        /// When it was submitted.
        started: String,
        /// The host it was submitted from.
        host: String,
    },
}

/// Stores all records of a folder. `reasons`: why steps are missing according to the scheduler, by
/// the name of the node.
///
/// # Errors
/// [`GatherError`]; what was stored before stays.
pub fn gather(
    folder: &FleetFolder,
    fleet: &FleetRecord,
    reasons: &BTreeMap<String, String>,
    store: &mut Store,
) -> Result<GatherOutcome, GatherError> {
    store_fleet(fleet, store)?;
    let folders = folder.list_nodes()?;
    let mut gathered = GatherOutcome {
        unusable: folders.unusable,
        ..GatherOutcome::default()
    };
    for node in folders.nodes {
        let mut snapshot = node.read_all(fleet)?;
        gathered.unusable.append(&mut snapshot.unusable);
        // The folder is still empty: the node has not started.
        if snapshot.newest.is_none() && snapshot.done.is_empty() {
            continue;
        }
        gathered.nodes += 1;
        set_reasons(&mut snapshot, reasons.get(node.name()));
        store_node(&node, &snapshot, store, &mut gathered)?;
    }
    Ok(gathered)
}

/// Gives missing steps the scheduler's reason, or the reason why the node ended.
fn set_reasons(snapshot: &mut NodeSnapshot, reason: Option<&String>) {
    let ended = snapshot.ended.as_ref().and_then(|ended| ended.why.as_ref());
    let why = reason.or(ended);
    let steps = snapshot.record.steps.iter_mut();
    for step in steps.filter(|step| step.state == StepState::Missing) {
        step.why = why.cloned();
    }
}

/// Stores the fleet's record, unless another fleet has its id.
///
/// # Errors
/// [`GatherError::OtherFleet`], or if the store cannot be read or written.
pub fn store_fleet(fleet: &FleetRecord, store: &mut Store) -> Result<(), GatherError> {
    let Some(stored) = load_exact(&fleet.id, store)? else {
        return Ok(store.keep(fleet)?);
    };
    let stored: FleetRecord = match stored.decode() {
        Ok(record) => record,
        Err(_) => {
            return Err(GatherError::OtherFleet {
                id: fleet.id.clone(),
                started: stored.entry.time,
                host: stored.entry.host,
            });
        }
    };
    if (&stored.started, &stored.host) != (&fleet.started, &fleet.host) {
        return Err(GatherError::OtherFleet {
            id: fleet.id.clone(),
            started: stored.header.started,
            host: stored.host,
        });
    }
    // The user may have changed its tags in the store.
    let mut newer = fleet.clone();
    newer.tags.clone_from(&stored.tags);
    if newer != stored {
        store.keep(&newer)?;
    }
    Ok(())
}

/// Stores a node's records.
fn store_node(
    node: &NodeFolder,
    snapshot: &NodeSnapshot,
    store: &mut Store,
    gathered: &mut GatherOutcome,
) -> Result<(), GatherError> {
    for step in &snapshot.done {
        let Some(body) = node.read_record(&snapshot.record.fleet, step)? else {
            continue;
        };
        match store.create_json(&body) {
            Ok(true) => gathered.new += 1,
            Ok(false) => gathered.known += 1,
            Err(StoreError::Record { id, reason }) => {
                gathered.unusable.push(format!("{id}: {reason}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(store.keep(&snapshot.record)?)
}

/// Loads the record with exactly this id.
fn load_exact(id: &str, store: &Store) -> Result<Option<Stored>, StoreError> {
    match store.load(id) {
        Ok(found) => Ok((found.entry.id == id).then_some(found)),
        Err(StoreError::Id(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
