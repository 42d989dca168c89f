//! The section `[wiring]` of a description: the true wiring, and what probes find.
//!
//! Impossible figures are refused; without the section, the machine is wired as it reports.

use serde::Deserialize;

use super::truth::Truth;
use crate::checker::{Checker, DescriptionError};
use crate::shape::parse_topology_without;
use pinwise_topology::{CpuSet, Topology};

/// Limits of a simulated machine's figures, whatever the unit: products and quotients of several
/// must stay finite.
const MIN_FIGURE: f64 = 1e-9;
const MAX_FIGURE: f64 = 1e9;

/// Limits the states, and the CPUs in all of them together: each is a topology.
const MAX_STATES: usize = 16;
const MAX_CPUS: usize = 1 << 14;

/// Limit on the share of discarded batches, or a probe would never end.
const MAX_LOST_SHARE: f64 = 0.99;

/// The probes, named as in `lacks`.
pub(super) const PROBES: [&str; 14] = [
    "transfer",
    "contention",
    "pause",
    "pause_cycles",
    "cycle",
    "tick",
    "timer_step",
    "chase",
    "bandwidth",
    "loaded_latency",
    "context_switch",
    "futex_wake",
    "pause_counted",
    "hint",
];

with_defaults! {
    /// `[wiring]` as written; times in ns, shares of 1.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub(crate) struct Figures {
        /// The true topology, with the CPUs of the reported one.
        topology: Option<String> = None,
        /// Several true topologies, between which the machine moves.
        states: Vec<RawState> = Vec::new(),
        /// CPUs that share one hardware thread, as lists.
        stacked: Vec<String> = Vec::new(),

        /// One-way times of a cache line, by the innermost unit that both CPUs share. The defaults
        /// are medians of published matrices of Zen 2 and 3 machines.
        pub(crate) smt_ns: f64 = 14.0,
        /// Sharing an L2 below the last level; `None`: as `llc_ns`.
        pub(crate) l2_ns: Option<f64> = None,
        pub(crate) llc_ns: f64 = 36.0,
        /// Sharing a NUMA node; `None`: as `package_ns`.
        pub(crate) numa_ns: Option<f64> = None,
        pub(crate) package_ns: f64 = 110.0,
        pub(crate) remote_ns: f64 = 200.0,
        /// Of CPUs on one hardware thread, which take turns by the hypervisor's time slice.
        pub(crate) stacked_ns: f64 = 1e6,
        /// Extra cost of a line homed on neither CPU's node, if these share no last-level cache
        /// (otherwise its home is not involved).
        pub(crate) home_penalty_ns: f64 = 0.0,
        /// The home of lines without a requested one; `None`: the first CPU's node.
        pub(crate) home_node: Option<usize> = None,
        /// Additional latency at the far end of a mesh, as a share.
        pub(crate) gradient: f64 = 0.0,

        /// Lasting differences between pairs, as the deviation of `ln(ns)`.
        pub(crate) pair_sd: f64 = 0.02,
        /// Deviation of `ln(ns)` from batch to batch.
        pub(crate) noise_sd: f64 = 0.03,
        pub(crate) wander: Option<Wander> = None,
        pub(crate) outliers: Option<Outliers> = None,
        /// Share of batches discarded for a switch.
        pub(crate) switched: f64 = 0.0,
        /// Share of batches discarded for steal.
        pub(crate) stolen: f64 = 0.0,
        /// Factor on latencies while several probes run at once.
        pub(crate) parallel_disturbance: f64 = 1.0,
        pub(crate) ignores_affinity: bool = false,
        pub(crate) timer_step_ns: f64 = 1.0,
        /// Unavailable probes, from [`PROBES`].
        pub(crate) lacks: Vec<String> = Vec::new(),

        pub(crate) smt_contention: f64 = 1.7,
        pub(crate) other_contention: f64 = 1.02,

        pub(crate) pause_ns: f64 = 20.0,
        pub(crate) pause_modes: Option<PauseMode> = None,
        pub(crate) ghz: f64 = 3.0,
        /// `None`: as `ghz`.
        pub(crate) tick_ghz: Option<f64> = None,

        /// Caches as seen by a program; empty: those of the true topology.
        pub(crate) caches: Vec<CacheFigure> = Vec::new(),
        pub(crate) memory_ns: f64 = 90.0,
        /// Extra latency of memory of another node.
        pub(crate) remote_memory_ns: f64 = 60.0,
        pub(crate) tlb: Option<TlbFigure> = None,
        /// Read bandwidth of one core, and of all cores of a node.
        pub(crate) core_gb_per_s: f64 = 12.0,
        pub(crate) node_gb_per_s: f64 = 40.0,
        /// The same if everything fits into the last cache, per core.
        pub(crate) cache_gb_per_s: f64 = 60.0,
        /// Latency of memory at full load over that without load.
        pub(crate) loaded_factor: f64 = 3.0,

        pub(crate) context_switch_ns: f64 = 1500.0,
        pub(crate) futex_wake_ns: f64 = 4000.0,
    }
}

/// A temporary true wiring.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawState {
    topology: String,
    /// Mean dwell time, s (exponential).
    dwell_s: f64,
    /// Relative frequency of moves to it.
    #[serde(default = "one")]
    weight: f64,
    /// CPUs that share one hardware thread in this state.
    #[serde(default)]
    stacked: Vec<String>,
}

const fn one() -> f64 {
    1.0
}

/// A common, mean-reverting factor on all latencies, like a host's clock.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wander {
    /// Standard deviation of `ln(ns)`.
    pub(crate) sd: f64,
    /// Time constant: a deviation falls to 1/e in it.
    pub(crate) time_s: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outliers {
    pub(crate) share: f64,
    pub(crate) factor: f64,
}

/// A second duration of PAUSE, and the share of batches that have it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseMode {
    pub(crate) ns: f64,
    pub(crate) share: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CacheFigure {
    pub(crate) bytes: u64,
    pub(crate) ns: f64,
}

/// The extra cost of a load from a working set above this many bytes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlbFigure {
    pub(crate) bytes: u64,
    pub(crate) ns: f64,
}

/// A true wiring and its dwell time.
#[derive(Debug)]
pub(super) struct State {
    pub(super) truth: Truth,
    /// Infinite for a single state.
    pub(super) dwell_s: f64,
    pub(super) weight: f64,
}

/// A checked section.
#[derive(Debug)]
pub(crate) struct Wiring {
    pub(crate) figures: Figures,
    /// At least one.
    pub(super) states: Vec<State>,
    /// Nodes that the machine reports.
    pub(super) nodes: Vec<usize>,
}

impl Figures {
    /// Checks the section against the reported topology.
    pub(crate) fn check(
        self,
        reported: &Topology,
        checker: &Checker<'_>,
    ) -> Result<Wiring, DescriptionError> {
        let checker = &checker.with_section("wiring");
        self.check_times(checker)?;
        self.check_noise(checker)?;
        self.check_memory(checker)?;
        self.check_lacks(checker)?;
        Ok(Wiring {
            states: self.resolve_states(reported, checker)?,
            nodes: reported.numa_nodes.iter().map(|node| node.node).collect(),
            figures: self,
        })
    }

    fn check_times(&self, checker: &Checker<'_>) -> Result<(), DescriptionError> {
        for (key, value) in [
            ("smt_ns", self.smt_ns),
            ("l2_ns", self.l2_ns.unwrap_or(1.0)),
            ("llc_ns", self.llc_ns),
            ("numa_ns", self.numa_ns.unwrap_or(1.0)),
            ("package_ns", self.package_ns),
            ("remote_ns", self.remote_ns),
            ("stacked_ns", self.stacked_ns),
            ("parallel_disturbance", self.parallel_disturbance),
            ("timer_step_ns", self.timer_step_ns),
            ("smt_contention", self.smt_contention),
            ("other_contention", self.other_contention),
            ("pause_ns", self.pause_ns),
            ("ghz", self.ghz),
            ("tick_ghz", self.tick_ghz.unwrap_or(1.0)),
            ("context_switch_ns", self.context_switch_ns),
            ("futex_wake_ns", self.futex_wake_ns),
        ] {
            check_figure(checker, key, value)?;
        }
        if let Some(mode) = &self.pause_modes {
            check_figure(checker, "pause_modes.ns", mode.ns)?;
            checker.check_range("pause_modes.share", mode.share, 0.0, 1.0)?;
        }
        checker.check_range("home_penalty_ns", self.home_penalty_ns, 0.0, MAX_FIGURE)?;
        checker.check_range("gradient", self.gradient, 0.0, 10.0)
    }

    fn check_noise(&self, checker: &Checker<'_>) -> Result<(), DescriptionError> {
        checker.check_range("pair_sd", self.pair_sd, 0.0, 2.0)?;
        checker.check_range("noise_sd", self.noise_sd, 0.0, 2.0)?;
        if let Some(wander) = &self.wander {
            checker.check_range("wander.sd", wander.sd, 0.0, 2.0)?;
            check_figure(checker, "wander.time_s", wander.time_s)?;
        }
        if let Some(outliers) = &self.outliers {
            checker.check_range("outliers.share", outliers.share, 0.0, 1.0)?;
            check_figure(checker, "outliers.factor", outliers.factor)?;
        }
        checker.check_range("switched", self.switched, 0.0, MAX_LOST_SHARE)?;
        let max_stolen = MAX_LOST_SHARE - self.switched;
        checker.check_range("stolen", self.stolen, 0.0, max_stolen)
    }

    fn check_memory(&self, checker: &Checker<'_>) -> Result<(), DescriptionError> {
        let ascends = |pair: &[CacheFigure]| pair[0].bytes < pair[1].bytes;
        if !self.caches.windows(2).all(ascends) || self.caches.iter().any(|c| c.bytes == 0) {
            return Err(checker.value_error("caches", "must grow in bytes, from above 0"));
        }
        for cache in &self.caches {
            check_figure(checker, "caches.ns", cache.ns)?;
        }
        if let Some(tlb) = &self.tlb {
            check_figure(checker, "tlb.ns", tlb.ns)?;
        }
        for (key, value) in [
            ("memory_ns", self.memory_ns),
            ("core_gb_per_s", self.core_gb_per_s),
            ("node_gb_per_s", self.node_gb_per_s),
            ("cache_gb_per_s", self.cache_gb_per_s),
        ] {
            check_figure(checker, key, value)?;
        }
        checker.check_range("remote_memory_ns", self.remote_memory_ns, 0.0, MAX_FIGURE)?;
        checker.check_range("loaded_factor", self.loaded_factor, 1.0, 1000.0)
    }

    fn check_lacks(&self, checker: &Checker<'_>) -> Result<(), DescriptionError> {
        let is_known = |name: &&String| PROBES.contains(&name.as_str());
        match self.lacks.iter().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(name) => {
                let known = PROBES.join(", ");
                let reason = format!("'{name}' is not a probe (known: {known})");
                Err(checker.value_error("lacks", &reason))
            }
        }
    }

    fn resolve_states(
        &self,
        reported: &Topology,
        checker: &Checker<'_>,
    ) -> Result<Vec<State>, DescriptionError> {
        if self.states.is_empty() {
            let topology = match &self.topology {
                None => reported.clone(),
                Some(text) => parse_truth(checker, "topology", text, reported)?,
            };
            let stacked = parse_stacked(checker, "stacked", &self.stacked, reported)?;
            return Ok(vec![State {
                truth: Truth::new(topology, &stacked),
                dwell_s: f64::INFINITY,
                weight: 1.0,
            }]);
        }
        if self.topology.is_some() || !self.stacked.is_empty() {
            let reason = "each state has its own 'topology' and 'stacked'; omit those of [wiring]";
            return Err(checker.value_error("states", reason));
        }
        if self.states.len() > MAX_STATES || self.states.len() * reported.cpus.len() > MAX_CPUS {
            let reason =
                format!("more than {MAX_STATES} states, or {MAX_CPUS} CPUs in all of them");
            return Err(checker.value_error("states", &reason));
        }
        self.states
            .iter()
            .map(|state| {
                check_figure(checker, "states.dwell_s", state.dwell_s)?;
                check_figure(checker, "states.weight", state.weight)?;
                let topology = parse_truth(checker, "states.topology", &state.topology, reported)?;
                let stacked = parse_stacked(checker, "states.stacked", &state.stacked, reported)?;
                Ok(State {
                    truth: Truth::new(topology, &stacked),
                    dwell_s: state.dwell_s,
                    weight: state.weight,
                })
            })
            .collect()
    }
}

/// Parses a true topology, which must have the CPUs of the reported one.
fn parse_truth(
    checker: &Checker<'_>,
    key: &str,
    text: &str,
    reported: &Topology,
) -> Result<Topology, DescriptionError> {
    let present: CpuSet = reported.cpus.iter().map(|cpu| cpu.id).collect();
    let offline = present.difference(&reported.online);
    let topology = parse_topology_without(text, &offline)
        .map_err(|error| checker.value_error(key, &error.to_string()))?;
    if topology.cpus.iter().map(|cpu| cpu.id).eq(present.iter()) {
        return Ok(topology);
    }
    let reason = format!(
        "has CPUs {}, the reported topology {}; they must be the same",
        topology.online, reported.online
    );
    Err(checker.value_error(key, &reason))
}

fn parse_stacked(
    checker: &Checker<'_>,
    key: &str,
    lists: &[String],
    reported: &Topology,
) -> Result<Vec<CpuSet>, DescriptionError> {
    let mut seen = CpuSet::new();
    let mut sets = Vec::new();
    for list in lists {
        let set = CpuSet::parse_list(list)
            .map_err(|error| checker.value_error(key, &format!("'{list}': {error}")))?;
        if !set.is_subset(&reported.online) || set.intersects(&seen) {
            let reason =
                format!("'{list}' names a CPU that is not online, or that another list has");
            return Err(checker.value_error(key, &reason));
        }
        seen = seen.union(&set);
        sets.push(set);
    }
    Ok(sets)
}

fn check_figure(checker: &Checker<'_>, key: &str, value: f64) -> Result<(), DescriptionError> {
    if (MIN_FIGURE..=MAX_FIGURE).contains(&value) {
        return Ok(());
    }
    let reason = format!("{value} must be from {MIN_FIGURE:e} to {MAX_FIGURE:e}");
    Err(checker.value_error(key, &reason))
}
