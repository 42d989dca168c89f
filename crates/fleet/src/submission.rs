//! How a fleet was submitted, for resuming it in the same way.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::launcher::NodeRequest;

/// How a fleet was submitted. Stored in the fleet's folder, where only the owner can read it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Submission {
    /// Requested number of nodes.
    pub count: Option<usize>,
    /// Nodes by name, as written by the user.
    pub list: Option<String>,
    /// Partitions, separated by commas.
    pub partition: Option<String>,
    /// Features that nodes must have, in Slurm's notation.
    pub constraint: Option<String>,
    /// Submit one array job instead of one job per node.
    #[serde(rename = "array")]
    pub is_array: bool,
    /// Time limit, seconds.
    pub time_s: Option<u64>,
    /// The account that is charged.
    pub account: Option<String>,
    /// The launcher's name, or the file of its template.
    pub launcher: String,
    /// The text of a template file.
    pub template: Option<String>,
    /// The store that nodes deliver to.
    pub store: Option<String>,
    /// The folder from which it was submitted. Launchers that start nodes in this folder let steps
    /// use relative paths.
    #[serde(rename = "from")]
    pub submitted_from: Option<PathBuf>,
}

impl Submission {
    /// Converts it for launchers.
    #[must_use]
    pub fn to_node_request(&self) -> NodeRequest {
        NodeRequest {
            count: self.count,
            list: self.list.clone(),
            // Resuming sets it to the nodes that it knows already.
            exclude: Vec::new(),
            partition: self.partition.clone(),
            constraint: self.constraint.clone(),
            is_array: self.is_array,
            time: self.time_s.map(Duration::from_secs),
            account: self.account.clone(),
        }
    }
}
