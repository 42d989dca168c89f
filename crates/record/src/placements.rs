//! The placements of a machine as a record.

use serde::{Deserialize, Serialize};

use super::{CountsRecord, MachineRecord};
use pinwise_placement::UsedUnits;
use pinwise_placement::space::{Shaped, Space};
use pinwise_topology::Topology;

/// How many placements a machine has, and the even ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.placements/1")]
pub struct PlacementsRecord {
    /// Names and versions.
    pub machine: MachineRecord,
    /// The CPUs that were counted, those that this process may use, as a list; empty in records of
    /// earlier versions.
    #[serde(default)]
    pub allowed: String,
    /// The numbers of their units; `null` in records of earlier versions.
    #[serde(default)]
    pub counts: Option<CountsRecord>,
    /// For each number of threads.
    pub threads: Vec<ThreadPlacements>,
}

/// The placements of this many threads, one CPU each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadPlacements {
    /// Number of threads.
    pub threads: usize,
    /// Placements that differ by more than the exchange of equal units, as a
    /// decimal number: it may have dozens of digits.
    pub placements: String,
    /// The placements that are spread evenly, fewest units first.
    pub shapes: Vec<ShapeRecord>,
}

/// An even placement and the units that it uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShapeRecord {
    /// Its name, as `--place` takes it.
    pub name: String,
    /// Equal for equal placements on machines of equal trees.
    pub id: String,
    /// CPUs with this occupancy, as a list.
    pub cpus: String,
    /// Packages used.
    pub packages: usize,
    /// NUMA nodes used.
    pub numa_nodes: usize,
    /// Last-level caches used; 0 if caches are not reported.
    pub llcs: usize,
    /// Cores used.
    pub cores: usize,
    /// CPUs used.
    pub cpu_count: usize,
}

impl PlacementsRecord {
    /// Counts the placements for each of these numbers of threads, on the CPUs that this process
    /// may use.
    #[must_use]
    pub fn new(topology: &Topology, threads: &[usize]) -> Self {
        let space = Space::from_topology(topology);
        let count_placements = |&threads: &usize| ThreadPlacements {
            threads,
            placements: space.count(threads).to_string(),
            shapes: space
                .shapes(threads)
                .iter()
                .map(|shape| ShapeRecord::new(topology, &space, shape))
                .collect(),
        };
        let used = UsedUnits::count(topology, &topology.allowed);
        Self {
            machine: MachineRecord::new(&topology.identity),
            allowed: topology.allowed.to_string(),
            counts: Some(CountsRecord {
                cpus: used.cpus,
                cores: used.cores,
                llcs: used.llcs,
                numa_nodes: used.numa_nodes,
                packages: used.packages,
            }),
            threads: threads.iter().map(count_placements).collect(),
        }
    }
}

impl ShapeRecord {
    fn new(topology: &Topology, space: &Space, shape: &Shaped) -> Self {
        let cpus = space.choose(&shape.occupancy);
        let used = UsedUnits::count(topology, &cpus);
        Self {
            name: shape.placement.to_string(),
            id: space.id(&shape.occupancy),
            cpus: cpus.to_string(),
            packages: used.packages,
            numa_nodes: used.numa_nodes,
            llcs: used.llcs,
            cores: used.cores,
            cpu_count: used.cpus,
        }
    }
}
