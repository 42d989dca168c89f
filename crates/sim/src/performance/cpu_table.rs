//! The place of every CPU as tables, which a run reads thousands of times.

use std::collections::BTreeMap;

use super::keys::Keys;
use pinwise_topology::{Cache, CacheType, CpuSet, Topology};

/// A CPU's units, as indices into the tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuUnits {
    /// The operating system's number.
    pub(super) cpu: usize,
    pub(super) core: usize,
    pub(super) llc: usize,
    pub(super) node: usize,
    pub(super) package: usize,
    /// Kind of CPU; 0 if all are alike.
    pub(super) kind: usize,
    /// Speed of its kind, over that of the fastest.
    pub(super) speed: f64,
    /// Package, node, cache and core as numbers that nest, whatever the
    /// machine reports.
    pub(super) nested: [usize; 4],
}

/// All online CPUs, in the order of the tree.
#[derive(Debug)]
pub(super) struct CpuTable {
    pub(super) cpus: Vec<CpuUnits>,
    /// Index into `cpus` by CPU number.
    position_of: Vec<Option<usize>>,
    pub(super) cores: usize,
    pub(super) nodes: usize,
    pub(super) packages: usize,
    /// Cores of each package.
    pub(super) cores_of: Vec<f64>,
    pub(super) package_of_node: Vec<usize>,
    pub(super) llc_bytes: Vec<f64>,
    pub(super) l2_bytes: Vec<f64>,
    /// Numbering of nodes as the operating system has them.
    pub(super) node_numbers: Vec<usize>,
}

const DEFAULT_L2_BYTES: u64 = 1 << 20;
const DEFAULT_LLC_BYTES: u64 = 32 << 20;

impl CpuTable {
    /// The CPUs online in `reported`, wired as in `truth`; `speeds` are those of kinds, in the
    /// reported order.
    pub(super) fn new(truth: &Topology, reported: &Topology, speeds: &[f64], keys: &Keys) -> Self {
        let fastest = speeds.iter().copied().fold(0.0, f64::max);
        let kind_of = |cpu: usize| reported.cpu(cpu).and_then(|cpu| cpu.kind);
        let mut llcs = Numbering::default();
        let mut cpus: Vec<CpuUnits> = truth
            .cpus
            .iter()
            .filter(|cpu| reported.online.contains(cpu.id))
            .map(|cpu| {
                let package = cpu.package.unwrap_or(0);
                let node = cpu.numa_node.unwrap_or(0);
                // Without caches, nothing divides a node of a package.
                let llc = cpu.llc.map_or([0, package, node], |llc| [llc + 1, 0, 0]);
                let llc = llcs.number_of(llc);
                let kind = kind_of(cpu.id);
                CpuUnits {
                    cpu: cpu.id,
                    core: cpu.core.unwrap_or(0),
                    llc,
                    node,
                    package,
                    kind: kind.map_or(0, |kind| kind + 1),
                    speed: kind
                        .and_then(|kind| speeds.get(kind))
                        .map_or(1.0, |speed| speed / fastest),
                    nested: [0; 4],
                }
            })
            .collect();
        number_nested_units(&mut cpus);
        cpus.sort_by_key(|cpu| (cpu.nested, cpu.cpu));
        Self::from_sorted_cpus(cpus, truth, llcs.known.len(), keys)
    }

    fn from_sorted_cpus(cpus: Vec<CpuUnits>, truth: &Topology, llcs: usize, keys: &Keys) -> Self {
        let count = |unit: fn(&CpuUnits) -> usize| cpus.iter().map(unit).max().map_or(1, |m| m + 1);
        let (cores, packages) = (count(|cpu| cpu.core), count(|cpu| cpu.package));
        let nodes = count(|cpu| cpu.node).max(truth.numa_nodes.len());
        let mut package_of = vec![None; cores];
        let mut package_of_node = vec![0; nodes];
        let mut llc_bytes = vec![0.0; llcs.max(1)];
        let mut l2_bytes = vec![0.0; cores];
        let caches = Caches::from_topology(truth);
        let mut position_of = vec![None; caches.len()];
        for (position, cpu) in cpus.iter().enumerate() {
            position_of[cpu.cpu] = Some(position);
            package_of[cpu.core] = Some(cpu.package);
            package_of_node[cpu.node] = cpu.package;
            let outer = keys.llc_bytes.or(caches[cpu.cpu].outermost_bytes);
            llc_bytes[cpu.llc] = outer.unwrap_or(DEFAULT_LLC_BYTES) as f64;
            let inner = keys.l2_bytes.or(caches[cpu.cpu].inner_bytes());
            l2_bytes[cpu.core] = inner.unwrap_or(DEFAULT_L2_BYTES) as f64;
        }
        let mut cores_of = vec![0.0; packages];
        for package in package_of.into_iter().flatten() {
            cores_of[package] += 1.0;
        }
        let node_numbers = truth.numa_nodes.iter().map(|node| node.node).collect();
        Self {
            cpus,
            position_of,
            cores,
            nodes,
            packages,
            cores_of,
            package_of_node,
            llc_bytes,
            l2_bytes,
            node_numbers,
        }
    }

    /// Multiplies the speed of some CPUs, which become a kind of their own.
    pub(super) fn slow_down(&mut self, cpus: &CpuSet, factor: f64) {
        let kinds = self.cpus.iter().map(|cpu| cpu.kind).max().unwrap_or(0) + 1;
        for slow in self.cpus.iter_mut().filter(|cpu| cpus.contains(cpu.cpu)) {
            slow.speed *= factor;
            slow.kind += kinds;
        }
    }

    /// Positions of the CPUs of a mask, in the order of the tree.
    pub(super) fn positions(&self, cpus: &CpuSet) -> Vec<usize> {
        let mut found: Vec<usize> = cpus
            .iter()
            .filter_map(|cpu| self.position_of.get(cpu).copied().flatten())
            .collect();
        found.sort_unstable();
        found
    }

    pub(super) fn largest_llc_bytes(&self) -> f64 {
        self.llc_bytes.iter().copied().fold(1.0, f64::max)
    }

    pub(super) fn largest_l2_bytes(&self) -> f64 {
        self.l2_bytes.iter().copied().fold(1.0, f64::max)
    }
}

/// Numbering combinations in order of appearance.
#[derive(Debug, Default)]
struct Numbering {
    known: BTreeMap<[usize; 3], usize>,
}

impl Numbering {
    fn number_of(&mut self, key: [usize; 3]) -> usize {
        let next = self.known.len();
        *self.known.entry(key).or_insert(next)
    }
}

/// Sets the numbers that nest. A cache may span nodes, or a node packages, so each number stands for
/// a unit together with all its parents.
fn number_nested_units(cpus: &mut [CpuUnits]) {
    let (mut nodes, mut llcs, mut cores) = (
        Numbering::default(),
        Numbering::default(),
        Numbering::default(),
    );
    for cpu in cpus {
        let node = nodes.number_of([cpu.package, cpu.node, 0]);
        let llc = llcs.number_of([node, cpu.llc, 0]);
        let core = cores.number_of([llc, cpu.core, 0]);
        cpu.nested = [cpu.package, node, llc, core];
    }
}

/// The relevant data caches of a CPU.
#[derive(Debug, Clone, Copy, Default)]
struct Caches {
    /// Level of the outermost.
    level: u8,
    outermost_bytes: Option<u64>,
    l2_bytes: Option<u64>,
}

impl Caches {
    /// One per CPU, by its number.
    fn from_topology(topology: &Topology) -> Vec<Self> {
        let mut all = vec![Self::default(); topology.cpus.last().map_or(0, |cpu| cpu.id + 1)];
        let holds_data = |cache: &&Cache| cache.kind != CacheType::Instruction;
        for cache in topology.caches.iter().filter(holds_data) {
            for cpu in cache.cpus.iter() {
                let Some(caches) = all.get_mut(cpu) else {
                    continue;
                };
                if cache.level >= caches.level {
                    (caches.level, caches.outermost_bytes) = (cache.level, cache.size_bytes);
                }
                if cache.level == 2 {
                    caches.l2_bytes = cache.size_bytes;
                }
            }
        }
        all
    }

    /// Size of the L2 if that is not the outermost.
    fn inner_bytes(&self) -> Option<u64> {
        self.l2_bytes.filter(|_| self.level > 2)
    }
}
