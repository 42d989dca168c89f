//! One true wiring: the places of CPUs, and what two of them share.

use pinwise_topology::{CacheType, CpuSet, Topology};

/// A CPU's units by number; a missing unit gets a unique number.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuUnits {
    thread: usize,
    core: usize,
    l2: usize,
    llc: usize,
    pub(super) node: usize,
    package: usize,
    /// Coordinates of its core on the package's mesh.
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The innermost unit that two CPUs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    /// One hardware thread, on a machine with fewer of them than CPUs.
    Thread,
    Core,
    L2,
    Llc,
    Node,
    Package,
    Nothing,
}

/// A true wiring, prepared for lookups.
#[derive(Debug)]
pub(super) struct Truth {
    pub(super) topology: Topology,
    units: Vec<Option<CpuUnits>>,
    /// The largest distance between two cores on the mesh.
    pub(super) span: f64,
}

impl Truth {
    pub(super) fn new(topology: Topology, stacked: &[CpuSet]) -> Self {
        let cpu_slots = topology.online.last().map_or(0, |cpu| cpu + 1);
        let mut truth = Self {
            units: vec![None; cpu_slots],
            span: 1.0,
            topology,
        };
        let threads = index_sets(cpu_slots, stacked);
        let l2s = index_sets(cpu_slots, &l2_cpu_sets(&truth.topology));
        let mesh = Mesh::from_topology(&truth.topology);
        for cpu in truth.topology.cpus.iter().filter(|cpu| cpu.online) {
            let own = cpu_slots + cpu.id;
            let node = cpu.numa_node.unwrap_or(own);
            let package = cpu.package.unwrap_or(own);
            truth.units[cpu.id] = Some(CpuUnits {
                thread: threads[cpu.id].unwrap_or(own),
                core: cpu.core.unwrap_or(own),
                l2: l2s[cpu.id].unwrap_or(own),
                // Without caches, nothing divides a node of a package.
                llc: cpu.llc.unwrap_or(2 * cpu_slots * (1 + package) + node),
                node,
                package,
                x: mesh.x(cpu.core),
                y: mesh.y(cpu.core),
            });
        }
        truth.span = mesh.span;
        truth
    }

    pub(super) fn units(&self, cpu: usize) -> Option<CpuUnits> {
        self.units.get(cpu).copied().flatten()
    }

    pub(super) fn has(&self, cpu: usize) -> bool {
        self.units(cpu).is_some()
    }

    /// The innermost unit that two CPUs share; missing CPUs share nothing.
    pub(super) fn innermost_shared(&self, a: usize, b: usize) -> Shared {
        let (Some(a), Some(b)) = (self.units(a), self.units(b)) else {
            return Shared::Nothing;
        };
        if a.thread == b.thread {
            Shared::Thread
        } else if a.core == b.core {
            Shared::Core
        } else if a.l2 == b.l2 {
            Shared::L2
        } else if a.llc == b.llc {
            Shared::Llc
        } else if a.package != b.package {
            // A machine without nodes counts as one node over all packages.
            Shared::Nothing
        } else if a.node == b.node {
            Shared::Node
        } else {
            Shared::Package
        }
    }

    pub(super) fn node_index(&self, number: usize) -> Option<usize> {
        let mut nodes = self.topology.numa_nodes.iter();
        nodes.position(|node| node.node == number)
    }

    /// Is this memory node, if given, another one than the CPU's?
    pub(super) fn is_remote(&self, cpu: usize, node: Option<usize>) -> bool {
        let index = node.and_then(|number| self.node_index(number));
        let own = self.units(cpu).map(|units| units.node);
        index.is_some() && index != own
    }

    /// The index of the CPU's node; a CPU without one has a number of its own.
    pub(super) fn node_of(&self, cpu: usize) -> usize {
        self.units(cpu).map_or(usize::MAX, |units| units.node)
    }

    /// The index of the CPU's core.
    pub(super) fn core_of(&self, cpu: usize) -> usize {
        self.units(cpu).map_or(usize::MAX, |units| units.core)
    }
}

/// For each CPU, the index of the set that contains it.
fn index_sets(cpu_slots: usize, sets: &[CpuSet]) -> Vec<Option<usize>> {
    let mut indices = vec![None; cpu_slots];
    for (index, set) in sets.iter().enumerate() {
        for cpu in set.iter().filter(|&cpu| cpu < cpu_slots) {
            indices[cpu] = Some(index);
        }
    }
    indices
}

/// The CPUs of each level-2 cache; clusters of small cores share one.
fn l2_cpu_sets(topology: &Topology) -> Vec<CpuSet> {
    let caches = topology.caches.iter();
    caches
        .filter(|cache| cache.level == 2 && cache.kind != CacheType::Instruction)
        .map(|cache| cache.cpus.clone())
        .collect()
}

/// Cores on a grid, package by package, row by row.
struct Mesh {
    places: Vec<(f64, f64)>,
    span: f64,
}

impl Mesh {
    fn from_topology(topology: &Topology) -> Self {
        let mut places = vec![(0.0, 0.0); topology.cores.len()];
        let mut span = 1.0f64;
        let mut cores_of = vec![Vec::new(); topology.packages.len() + 1];
        for (core, cpus) in topology.cores.iter().enumerate() {
            let first = cpus.first().and_then(|cpu| topology.cpu(cpu));
            let package = first.and_then(|cpu| cpu.package);
            cores_of[package.unwrap_or(topology.packages.len())].push(core);
        }
        for inside in cores_of {
            let width = inside.len().isqrt().max(1);
            for (index, &core) in inside.iter().enumerate() {
                places[core] = ((index % width) as f64, (index / width) as f64);
            }
            let height = inside.len().div_ceil(width).max(1);
            span = span.max((width + height - 2) as f64);
        }
        Self { places, span }
    }

    fn x(&self, core: Option<usize>) -> f64 {
        core.map_or(0.0, |core| self.places[core].0)
    }

    fn y(&self, core: Option<usize>) -> f64 {
        core.map_or(0.0, |core| self.places[core].1)
    }
}
