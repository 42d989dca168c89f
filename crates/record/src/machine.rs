//! Names and versions of the machine of a record.

use serde::{Deserialize, Serialize};

use pinwise_topology::Identity;

/// Names and versions of a machine; `null` if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MachineRecord {
    /// Network name.
    pub hostname: Option<String>,
    /// Marketing name of the processor.
    pub cpu_model: Option<String>,
    /// Processor vendor.
    pub vendor: Option<String>,
    /// Instruction set architecture.
    pub arch: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Hypervisor, `null` on bare metal.
    pub hypervisor: Option<String>,
    /// CPU family.
    pub cpu_family: Option<u32>,
    /// CPU model number.
    pub cpu_model_number: Option<u32>,
    /// CPU stepping.
    pub cpu_stepping: Option<u32>,
    /// Microcode revision.
    pub microcode: Option<String>,
}

impl MachineRecord {
    pub(super) fn to_identity(&self) -> Identity {
        Identity {
            hostname: self.hostname.clone(),
            cpu_model: self.cpu_model.clone(),
            vendor: self.vendor.clone(),
            arch: self.arch.clone(),
            kernel: self.kernel.clone(),
            hypervisor: self.hypervisor.clone(),
            family: self.cpu_family,
            model: self.cpu_model_number,
            stepping: self.cpu_stepping,
            microcode: self.microcode.clone(),
        }
    }

    /// The record of a machine's names.
    #[must_use]
    pub fn new(identity: &Identity) -> Self {
        Self {
            hostname: identity.hostname.clone(),
            cpu_model: identity.cpu_model.clone(),
            vendor: identity.vendor.clone(),
            arch: identity.arch.clone(),
            kernel: identity.kernel.clone(),
            hypervisor: identity.hypervisor.clone(),
            cpu_family: identity.family,
            cpu_model_number: identity.model,
            cpu_stepping: identity.stepping,
            microcode: identity.microcode.clone(),
        }
    }
}
