//! The machine that a record was made on.

use serde::{Deserialize, Serialize};

use super::machine::MachineRecord;
use super::topology::CountsRecord;
use pinwise_topology::{CpuSet, Level, Topology};

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
    /// The same CPUs by last-level cache, the CPUs of a core together: `0-1 2-3`; empty in records of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layout: Vec<String>,
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

/// The cores that a process may use, as lists of CPUs, a string for each last-level cache; one string
/// where caches are not reported.
pub(crate) fn list_layout(topology: &Topology) -> Vec<String> {
    let cores = topology.allowed_units(Level::Core);
    let mut caches = topology.allowed_units(Level::Llc);
    if caches.is_empty() {
        caches.push(topology.allowed.clone());
    }
    let list_cores = |cache: &CpuSet| {
        let inside = cores.iter().filter(|core| core.is_subset(cache));
        let lists: Vec<String> = inside.map(ToString::to_string).collect();
        lists.join(" ")
    };
    caches.iter().map(list_cores).collect()
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
            layout: list_layout(topology),
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
    use pinwise_topology::Restriction;

    #[test]
    fn the_layout_has_the_cores_of_each_cache_that_may_be_used() {
        let mut topology = Topology::from_synthetic("l3:2 core:2 pu:2").unwrap();
        assert_eq!(list_layout(&topology), ["0-1 2-3", "4-5 6-7"]);
        topology.allowed = CpuSet::parse_list("1-2,6").unwrap();
        assert_eq!(list_layout(&topology), ["1 2", "6"]);
        topology.llcs.clear();
        assert_eq!(list_layout(&topology), ["1 2 6"]);
    }

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
