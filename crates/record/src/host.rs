//! The machine that a record was made on.

use serde::{Deserialize, Serialize};

use super::machine::MachineRecord;
use super::topology::CountsRecord;
use pinwise_topology::Topology;

/// The machine that a record was made on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostRecord {
    /// `local` or `sim:…`.
    pub machine_spec: String,
    /// Is every figure simulated?
    pub simulated: bool,
    /// Names and versions.
    #[serde(flatten)]
    pub machine: MachineRecord,
    /// Numbers of units that the process could use.
    pub counts: CountsRecord,
    /// CPUs that the process could use, as a list.
    pub allowed: String,
    /// Equal for machines of the same shape.
    pub shape_hash: String,
}

impl HostRecord {
    /// The record of a machine; `machine_spec` is `local` or `sim:…`.
    #[must_use]
    pub fn new(machine_spec: String, simulated: bool, topology: &Topology) -> Self {
        Self {
            machine_spec,
            simulated,
            machine: MachineRecord::new(&topology.identity),
            counts: topology.counts().into(),
            allowed: topology.allowed.to_string(),
            shape_hash: format!("{:016x}", topology.shape_hash()),
        }
    }

    /// The name of the machine.
    #[must_use]
    pub fn name(&self) -> String {
        if self.simulated {
            return self.machine_spec.clone();
        }
        let name = self.machine.hostname.as_deref();
        name.unwrap_or("unknown").to_owned()
    }
}
