//! Even placements on a machine, and the spread of their true times.

use pinwise_machine::{Request, Simulation};
use pinwise_topology::{CpuSet, Level, Topology};
use pinwise_workload::{Command, Workload};

/// A machine's hardware as far as random figures depend on it.
#[derive(Debug, Default)]
pub(super) struct Hardware {
    /// Even placements of as many CPUs as there are threads.
    pub(super) masks: Vec<CpuSet>,
    /// Cores that share a NUMA node, and a last-level cache, at least 1.
    pub(super) cores_of_node: usize,
    pub(super) cores_of_llc: usize,
    /// Size of a last-level cache, bytes.
    pub(super) llc_bytes: u64,
}

impl Hardware {
    pub(super) fn new(topology: &Topology, threads: usize) -> Self {
        let cores = topology.cores.len().max(1);
        let per = |level: Level| cores / topology.units(level).len().max(1);
        let llc_bytes = topology
            .caches
            .iter()
            .map(|cache| cache.size_bytes.unwrap_or(0));
        Self {
            masks: list_even_masks(topology, threads),
            cores_of_node: per(Level::Numa).max(1),
            cores_of_llc: per(Level::Llc).max(1),
            llc_bytes: llc_bytes
                .max()
                .filter(|&bytes| bytes > 0)
                .unwrap_or(32 << 20),
        }
    }

    /// ln of the slowest placement's true time over the fastest's; 0 if the description cannot be
    /// opened.
    pub(super) fn spread(&self, text: &str) -> f64 {
        let (Some(machine), Ok(command)) = (super::open(text), Command::from_line("sim-workload"))
        else {
            return 0.0;
        };
        let workload = Workload::new(command);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for cpus in &self.masks {
            let request = Request::new(&workload, cpus);
            if let Some(time) = machine.true_cost(&request) {
                least = least.min(time.ln());
                most = most.max(time.ln());
            }
        }
        (most - least).max(0.0)
    }
}

/// Lists the masks with this number of CPUs that use equal numbers of last-level caches in each
/// package, of cores in each cache, and of CPUs in each core; caches both adjacent and spread.
fn list_even_masks(topology: &Topology, threads: usize) -> Vec<CpuSet> {
    let inside = |units: &[CpuSet], outer: &CpuSet| -> Vec<CpuSet> {
        let are_in = |unit: &&CpuSet| unit.is_subset(outer);
        units.iter().filter(are_in).cloned().collect()
    };
    let (packages, llcs) = (topology.units(Level::Package), topology.units(Level::Llc));
    let cores = topology.units(Level::Core);
    let tree: Vec<Vec<Vec<CpuSet>>> = packages
        .iter()
        .map(|package| {
            let caches = inside(&llcs, package);
            let caches = if caches.is_empty() {
                vec![package.clone()]
            } else {
                caches
            };
            caches.iter().map(|llc| inside(&cores, llc)).collect()
        })
        .collect();
    let max_llcs = tree.iter().map(Vec::len).min().unwrap_or(0);
    let max_cores = tree.iter().flatten().map(Vec::len).min().unwrap_or(0);
    let max_smt = cores.iter().map(CpuSet::len).min().unwrap_or(0);
    let mut masks = Vec::new();
    for used in 1..=tree.len() {
        for caches in divisors(threads, used, max_llcs) {
            for width in divisors(threads, used * caches, max_cores) {
                let smt = threads / (used * caches * width);
                if smt > max_smt {
                    continue;
                }
                for is_spread in [false, true] {
                    let mask = build_mask(&tree[..used], [caches, width, smt], is_spread);
                    if !masks.contains(&mask) {
                        masks.push(mask);
                    }
                }
            }
        }
    }
    masks
}

/// Numbers up to `max` by which the threads of each of these units can be divided.
fn divisors(threads: usize, units: usize, max: usize) -> impl Iterator<Item = usize> {
    (1..=max).filter(move |number| threads.is_multiple_of(units * number))
}

/// A mask of the first CPUs of the first cores of some caches of each package: `[caches per package,
/// cores per cache, CPUs per core]`.
fn build_mask(
    packages: &[Vec<Vec<CpuSet>>],
    [caches, width, smt]: [usize; 3],
    is_spread: bool,
) -> CpuSet {
    let mut cpus = CpuSet::new();
    for package in packages {
        for number in 0..caches {
            let at = if is_spread {
                number * package.len() / caches
            } else {
                number
            };
            for core in package[at].iter().take(width) {
                core.iter().take(smt).for_each(|cpu| cpus.insert(cpu));
            }
        }
    }
    cpus
}
