//! Runs the same study on many machines: submits it to the nodes of a cluster, runs it there, and
//! gathers the results.
//!
//! Submitter and nodes share a folder ([`folder`]): nodes write their results there, and the
//! submitter reads them. Nothing here measures, a node's files are checked before they are used,
//! and nothing is run from a folder that others could have written ([`trust`]).
//!
//! ```
//! use pinwise_fleet::{hostlist, record_id};
//!
//! // Nodes as Slurm writes them: leading zeros are kept, duplicates dropped.
//! let nodes = hostlist::expand("rack[1-2]n[08-10],rack1n08")?;
//! assert_eq!(nodes.len(), 6);
//! assert_eq!(hostlist::compress(&nodes[..3]), "rack1n[08-10]");
//! // All attempts at a step use one id, so only the first record is kept.
//! assert_eq!(record_id("nightly", &nodes[0], "topology"), "nightly.rack1n08~topology");
//! # Ok::<(), hostlist::HostlistError>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

mod error;
mod files;
#[cfg(test)]
mod fixture;
pub mod folder;
pub mod gather;
pub mod hostlist;
pub mod launcher;
pub mod node;
pub mod node_folder;
pub mod settings;
pub mod slurm;
pub mod state;
pub mod submission;
pub mod template;
pub mod trust;

/// Maximum length of a fleet's id, bytes: with its prefix it must fit into a tag.
const MAX_ID_BYTES: usize = 50;

/// Checks the id of a fleet: at most 50 letters, digits, `-` (not first) and `_`, and not `last`.
/// In ids of records, a dot separates fleet and node.
///
/// # Errors
/// What is wrong with it, as text.
pub fn check_id(id: &str) -> Result<(), String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let is_reserved = id == "last";
    if id.is_empty() || id.starts_with('-') || is_reserved || !id.chars().all(is_allowed) {
        let reason = "the id of a fleet has letters, digits, - and _, does not begin with -, and is not 'last'";
        return Err(format!("'{id}': {reason}"));
    }
    if id.len() > MAX_ID_BYTES {
        return Err(format!("'{id}': longer than {MAX_ID_BYTES} characters"));
    }
    Ok(())
}

/// The id of a step's record. It is the same for every attempt, so that a record delivered twice is
/// stored once.
#[must_use]
pub fn record_id(fleet: &str, node: &str, step: &str) -> String {
    format!("{fleet}.{node}~{step}")
}
