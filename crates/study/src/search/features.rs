//! The features of a placement from which the model predicts its cost: how its threads share the
//! machine.
//!
//! They are the shared resources of contention models of placement (Pandia: Goodman, Varisteas and
//! Harris, `EuroSys` 2017; Funston et al., USENIX ATC 2018): issue slots of a core, a last-level
//! cache, a node's memory, the links between caches and packages. How much each matters to a program
//! is learnt from its runs; no hardware counter is read.

use super::choice::DEFAULT;
use pinwise_placement::Placement;
use pinwise_stats::surrogate::Arms;
use pinwise_topology::{CpuSet, Topology};

/// A feature.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feature {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    /// Prior standard deviation of its effect, relative to the scale of all effects.
    relative_sd: f64,
    /// Prior standard deviation of the part of its effect that does not depend on that scale.
    absolute_sd: f64,
}

const fn feature(name: &'static str, meaning: &'static str, relative_sd: f64) -> Feature {
    Feature {
        name,
        meaning,
        relative_sd,
        absolute_sd: 0.0,
    }
}

/// In the order of [`UnitMap::features`].
pub(super) const FEATURES: [Feature; 13] = [
    feature("smt", "threads that share their core", 1.2),
    feature("smt_mixed", "some threads share a core, others do not", 0.5),
    feature("llc_crowd", "threads of one last-level cache", 1.0),
    feature("node_crowd", "threads of one NUMA node", 1.0),
    feature("package_crowd", "threads of one package", 1.0),
    feature("llc_span", "pairs of threads in different caches", 1.0),
    feature("node_span", "pairs of threads on different nodes", 1.0),
    feature(
        "package_span",
        "pairs of threads in different packages",
        1.0,
    ),
    feature("imbalance", "uneven load of last-level caches", 0.7),
    feature("slow_kind", "threads on slower kinds of core", 1.5),
    Feature {
        name: "threads",
        meaning: "threads (ln), beyond what most programs gain",
        relative_sd: 0.0,
        absolute_sd: 0.4,
    },
    feature("threads_squared", "gains that end with more threads", 1.0),
    // Where the scheduler puts threads is a guess, so its cost is learnt from the runs of `os-default`.
    Feature {
        name: "free",
        meaning: "left to the scheduler, with CPUs to spare",
        relative_sd: 0.5,
        absolute_sd: 0.3,
    },
];
/// Base of the logarithm of threads per unit, so that features lie roughly between 0 and 1.
const CROWD_BASE: f64 = 16.0;
/// Expected speed-up before any run: the number of threads to this power. Amdahl's law with 10 % of
/// serial work gives 0.8 from 1 to 8 threads.
const EXPECTED_SCALING: f64 = 0.8;

/// The units that each CPU of a machine belongs to.
#[derive(Debug)]
pub(super) struct UnitMap<'a> {
    topology: &'a Topology,
    /// By CPU: core, last-level cache, node and package; `None` if the CPU is not allowed.
    units: Vec<Option<[usize; 4]>>,
    /// Number of units of each of these levels.
    counts: [usize; 4],
    /// By CPU: is it of a slower kind?
    is_slow: Vec<bool>,
}

// Indices of the levels in [`UnitMap::units`].
const CORE: usize = 0;
const LLC: usize = 1;
const NODE: usize = 2;
const PACKAGE: usize = 3;

impl<'a> UnitMap<'a> {
    pub(super) fn new(topology: &'a Topology) -> Self {
        let size = topology.cpus.iter().map(|cpu| cpu.id + 1).max();
        let size = size.unwrap_or(0);
        let (mut units, mut is_slow) = (vec![None; size], vec![false; size]);
        let fastest = topology.kinds.iter().position(|kind| kind.name == "P");
        for cpu in topology.cpus.iter().filter(|cpu| cpu.allowed) {
            let package = cpu.package.unwrap_or(0);
            let node = cpu.numa_node.unwrap_or(package);
            // If no cache is reported, assume one per node.
            let llc = cpu.llc.unwrap_or(node);
            units[cpu.id] = Some([cpu.core.unwrap_or(cpu.id), llc, node, package]);
            is_slow[cpu.id] = fastest.is_some() && cpu.kind != fastest;
        }
        let count_units = |level: usize| {
            let mut used: Vec<usize> = units.iter().flatten().map(|unit| unit[level]).collect();
            used.sort_unstable();
            used.dedup();
            used.len()
        };
        Self {
            counts: [CORE, LLC, NODE, PACKAGE].map(count_units),
            topology,
            units,
            is_slow,
        }
    }

    /// Features of a placement with a thread on each of its CPUs.
    pub(super) fn features(&self, cpus: &CpuSet, threads: usize, is_free: bool) -> Vec<f64> {
        let list: Vec<[usize; 4]> = cpus
            .iter()
            .filter_map(|cpu| self.units.get(cpu).copied().flatten())
            .collect();
        let all = list.len().max(1) as f64;
        let loads: Vec<Vec<usize>> = (0..4).map(|level| threads_per_unit(&list, level)).collect();
        let smt: usize = loads[CORE].iter().filter(|&&n| n > 1).sum();
        let smt = smt as f64 / all;
        // A level with the same units as the next outer one is not counted twice.
        let is_distinct = |level: usize, outer: usize| self.counts[level] != self.counts[outer];
        let has_llcs = is_distinct(LLC, NODE);
        let has_nodes = is_distinct(NODE, PACKAGE);
        let slow = cpus.iter().filter(|&cpu| self.is_slow[cpu]).count();
        let threads = (threads.max(1) as f64).ln();
        let value_if = |condition: bool, value: f64| if condition { value } else { 0.0 };
        vec![
            smt,
            // 1 if half share a core, 0 if none or all do.
            4.0 * smt * (1.0 - smt),
            value_if(has_llcs, mean_crowding(&loads[LLC])),
            value_if(has_nodes, mean_crowding(&loads[NODE])),
            mean_crowding(&loads[PACKAGE]),
            value_if(has_llcs, spread_probability(&loads[LLC])),
            value_if(has_nodes, spread_probability(&loads[NODE])),
            spread_probability(&loads[PACKAGE]),
            imbalance(&loads[LLC]),
            slow as f64 / all,
            threads,
            threads * threads / 10.0,
            value_if(is_free, 1.0),
        ]
    }

    /// Features of a program that is left to the scheduler on all allowed CPUs.
    pub(super) fn features_of_default(&self, threads: usize) -> Vec<f64> {
        self.features_of_free(&self.topology.allowed, threads)
    }

    /// Features of a program that is left to the scheduler on these CPUs. If it has fewer threads,
    /// these are assumed to be spread over all units, as by schedulers that prefer idle cores; the
    /// runs correct that.
    pub(super) fn features_of_free(&self, cpus: &CpuSet, threads: usize) -> Vec<f64> {
        if threads >= cpus.len() {
            return self.features(cpus, threads, false);
        }
        let spread = Placement::with_count(pinwise_placement::Wish::Spread, threads.max(1));
        let mut topology = self.topology.clone();
        topology.allowed = cpus.clone();
        match spread.realise(&topology) {
            Ok(realised) => self.features(&realised.cpus, threads, true),
            Err(_) => self.features(cpus, threads, true),
        }
    }
}

/// The arms of a model, initially none.
pub(super) fn no_arms() -> Arms {
    Arms {
        features: Vec::new(),
        relative_sd: FEATURES.iter().map(|f| f.relative_sd).collect(),
        absolute_sd: FEATURES.iter().map(|f| f.absolute_sd).collect(),
        mean: Vec::new(),
        // `os-default` varies from run to run: the scheduler places it anew each time.
        loose: vec![DEFAULT],
    }
}

/// Expected ln(cost) of this many threads, except for a constant.
pub(super) fn expected_mean(threads: usize) -> f64 {
    -EXPECTED_SCALING * (threads.max(1) as f64).ln()
}

/// Threads on each used unit of a level.
fn threads_per_unit(list: &[[usize; 4]], level: usize) -> Vec<usize> {
    let mut units: Vec<usize> = list.iter().map(|unit| unit[level]).collect();
    units.sort_unstable();
    units.chunk_by(|a, b| a == b).map(<[usize]>::len).collect()
}

/// Mean over threads of ln(threads in the same unit), divided by `ln(CROWD_BASE)`.
fn mean_crowding(loads: &[usize]) -> f64 {
    let total: f64 = loads.iter().map(|&n| n as f64).sum();
    let sum: f64 = loads.iter().map(|&n| n as f64 * (n as f64).ln()).sum();
    sum / total.max(1.0) / CROWD_BASE.ln()
}

/// Probability that two different threads are in different units.
fn spread_probability(loads: &[usize]) -> f64 {
    let total: f64 = loads.iter().map(|&n| n as f64).sum();
    let together: f64 = loads.iter().map(|&n| n as f64 * (n as f64 - 1.0)).sum();
    if total < 2.0 {
        return 0.0;
    }
    1.0 - together / (total * (total - 1.0))
}

/// ln of the largest load over the mean load.
fn imbalance(loads: &[usize]) -> f64 {
    let total: usize = loads.iter().sum();
    let largest = loads.iter().copied().max().unwrap_or(1);
    if total == 0 {
        return 0.0;
    }
    (largest as f64 * loads.len() as f64 / total as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_features(topology: &str, cpus: &str) -> Vec<(&'static str, f64)> {
        let topology = Topology::from_synthetic(topology).unwrap();
        let cpus = CpuSet::parse_list(cpus).unwrap();
        let features = UnitMap::new(&topology).features(&cpus, cpus.len(), false);
        let named = FEATURES.iter().map(|f| f.name).zip(features);
        named.filter(|(_, value)| value.abs() > 1e-9).collect()
    }

    #[test]
    fn features_reflect_siblings_crowding_span_and_imbalance() {
        let two_llcs = "package:1 l3:2 core:4 pu:2";
        let names = |cpus| -> Vec<&str> {
            list_features(two_llcs, cpus)
                .iter()
                .map(|(name, _)| *name)
                .collect()
        };
        let threads = ["threads", "threads_squared"];
        assert_eq!(names("0"), [] as [&str; 0]);
        assert!(names("0-1").starts_with(&["smt", "llc_crowd", "package_crowd"]));
        assert!(!names("0,2").contains(&"smt"));
        assert!(names("0,8").contains(&"llc_span"));
        assert!(names("0,2,8").contains(&"imbalance"));
        assert!(names("0,2,8").ends_with(&threads));
    }

    #[test]
    fn levels_with_the_same_units_count_once() {
        let names: Vec<&str> = list_features("package:2 [numa] l3:1 core:2 pu:1", "0,2")
            .iter()
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(names, ["package_span", "threads", "threads_squared"]);
    }

    #[test]
    fn os_default_with_cpus_to_spare_has_the_feature_free() {
        let topology = Topology::from_synthetic("package:1 core:4 pu:2").unwrap();
        let unit_map = UnitMap::new(&topology);
        let free = FEATURES.iter().position(|f| f.name == "free").unwrap();
        assert!(unit_map.features_of_default(4)[free] > 0.5);
        assert!(unit_map.features_of_default(8)[free] < 0.5);
        assert!(
            unit_map.features_of_default(4)[0] < 0.5,
            "not spread over cores"
        );
        assert_eq!(unit_map.features_of_default(4).len(), FEATURES.len());
    }
}
