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
    /// What leaves the process fewer CPUs than are online; `null` if it could use all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restricted: Option<RestrictedRecord>,
    /// Equal for machines of the same shape.
    pub shape_hash: String,
}

/// Why a process could use only some CPUs of its machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RestrictedRecord {
    /// CPUs that were online.
    pub online: usize,
    /// `cpuset`, `affinity mask` or both.
    pub by: String,
}

impl RestrictedRecord {
    fn new(topology: &Topology) -> Option<Self> {
        // The kernel removes CPUs outside of a cpuset from the masks of its threads.
        let reachable = topology.reachable();
        let online = &topology.online;
        let restrictions = topology.restrictions.iter().filter(|restriction| {
            let open = if restriction.is_mask {
                &reachable
            } else {
                online
            };
            !open.is_subset(&restriction.leaves)
        });
        let by = restrictions.map(|restriction| match restriction.is_mask {
            true => restriction.by.as_str(),
            // Its path is of no interest here.
            false => restriction.by.split(' ').next().unwrap_or_default(),
        });
        let by: Vec<&str> = by.collect();
        (!by.is_empty()).then(|| Self {
            online: online.len(),
            by: by.join(", "),
        })
    }
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
            restricted: RestrictedRecord::new(topology),
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

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::{CpuSet, Restriction};

    #[test]
    fn what_leaves_fewer_cpus_is_recorded() {
        let all = Topology::from_synthetic("core:4 pu:1").unwrap();
        let host = |restrictions: &[Restriction]| {
            let leaves = restrictions.iter().map(|r| r.leaves.clone());
            let topology = Topology {
                allowed: leaves.fold(all.online.clone(), |a, b| a.intersection(&b)),
                restrictions: restrictions.to_vec(),
                ..all.clone()
            };
            HostRecord::new("local".to_owned(), false, &topology).restricted
        };
        let list = |text| CpuSet::parse_list(text).unwrap();
        let mask = |cpus| Restriction::mask("affinity mask", list(cpus));
        let cpuset = |cpus| Restriction::limit("cpuset /sys/fs/cgroup/a b", list(cpus));
        let restricted = |by: &str| {
            Some(RestrictedRecord {
                online: 4,
                by: by.to_owned(),
            })
        };
        assert_eq!(host(&[mask("0-3"), cpuset("0-3")]), None);
        assert_eq!(host(&[mask("0-1"), cpuset("0-1")]), restricted("cpuset"));
        assert_eq!(
            host(&[mask("0"), cpuset("0-3")]),
            restricted("affinity mask")
        );
        let both = restricted("affinity mask, cpuset");
        assert_eq!(host(&[mask("0"), cpuset("0-1")]), both);
    }
}
