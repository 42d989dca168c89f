//! The section `[wiring]` of a description: the true wiring, and what probes find.
//!
//! Impossible figures are refused; without the section, the machine is wired as it reports.

use serde::Deserialize;

use super::truth::Truth;
use crate::checker::{Checker, DescriptionError};
use crate::shape::parse_without;
use pinwise_topology::{CpuSet, Topology};

/// Limits of a simulated machine's figures, whatever the unit: products and quotients of several
/// must stay finite.
const MIN_FIGURE: f64 = 1e-9;
const MAX_FIGURE: f64 = 1e9;

/// Limits the states, and the CPUs in all of them together: each is a topology.
const MAX_STATES: usize = 16;
const MAX_CPUS: usize = 1 << 14;

/// Limit on the share of discarded batches, or a probe would never end.
const LARGEST_LOST_SHARE: f64 = 0.99;

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

        /// One-way times of a cache line, by the innermost unit that both CPUs are
        /// in. Medians of published matrices of Zen 2 and 3 machines.
        pub(super) smt_ns: f64 = 14.0,
        /// Sharing an L2 below the last level; `None`: as `llc_ns`.
        pub(super) l2_ns: Option<f64> = None,
        pub(super) llc_ns: f64 = 36.0,
        /// Sharing a NUMA node; `None`: as `package_ns`.
        pub(super) numa_ns: Option<f64> = None,
        pub(super) package_ns: f64 = 110.0,
        pub(super) remote_ns: f64 = 200.0,
        /// CPUs on one hardware thread take turns by the hypervisor's time slice.
        pub(super) stacked_ns: f64 = 1e6,
        /// Extra cost of a line homed on neither CPU's node, if these share no last-level cache
        /// (otherwise its home is not involved).
        pub(super) home_penalty_ns: f64 = 0.0,
        /// The home of lines without a requested one; `None`: the first CPU's node.
        pub(super) home_node: Option<usize> = None,
        /// Additional latency at the far end of a mesh, as a share.
        pub(super) gradient: f64 = 0.0,

        /// Lasting differences between pairs, as the deviation of `ln(ns)`.
        pub(super) pair_sd: f64 = 0.02,
        /// From batch to batch.
        pub(super) noise_sd: f64 = 0.03,
        pub(super) wander: Option<Wander> = None,
        pub(super) outliers: Option<Outliers> = None,
        /// Share of batches discarded for a switch.
        pub(super) switched: f64 = 0.0,
        /// Share of batches discarded for steal.
        pub(super) stolen: f64 = 0.0,
        /// Factor on latencies while several probes run at once.
        pub(super) parallel_disturbance: f64 = 1.0,
        pub(super) ignores_affinity: bool = false,
        pub(super) timer_step_ns: f64 = 1.0,
        /// Unavailable probes, from [`PROBES`].
        pub(super) lacks: Vec<String> = Vec::new(),

        pub(super) smt_contention: f64 = 1.7,
        pub(super) other_contention: f64 = 1.02,

        pub(super) pause_ns: f64 = 20.0,
        pub(super) pause_modes: Option<PauseMode> = None,
        pub(super) ghz: f64 = 3.0,
        /// `None`: as `ghz`.
        pub(super) tick_ghz: Option<f64> = None,

        /// Caches as seen by a program; empty: those of the true topology.
        pub(super) caches: Vec<CacheFigure> = Vec::new(),
        /// The last cache holds only lines evicted from the one before.
        pub(super) exclusive_llc: bool = false,
        pub(super) memory_ns: f64 = 90.0,
        /// Extra latency of memory of another node.
        pub(super) remote_memory_ns: f64 = 60.0,
        pub(super) tlb: Option<TlbFigure> = None,
        /// Read bandwidth of one core, and of all cores of a node.
        pub(super) core_gb_per_s: f64 = 12.0,
        pub(super) node_gb_per_s: f64 = 40.0,
        /// The same if everything fits into the last cache, per core.
        pub(super) cache_gb_per_s: f64 = 60.0,
        /// Latency of memory at full load over that without load.
        pub(super) loaded_factor: f64 = 3.0,

        pub(super) context_switch_ns: f64 = 1500.0,
        pub(super) futex_wake_ns: f64 = 4000.0,
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
pub(super) struct Wander {
    /// Standard deviation of `ln(ns)`.
    pub(super) sd: f64,
    /// Time after which a third of a deviation remains.
    pub(super) time_s: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outliers {
    pub(super) share: f64,
    pub(super) factor: f64,
}

/// A second cost of PAUSE and the share of batches that have it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PauseMode {
    pub(super) ns: f64,
    pub(super) share: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CacheFigure {
    pub(super) bytes: u64,
    pub(super) ns: f64,
}

/// From this many bytes on, the extra cost of a load.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlbFigure {
    pub(super) bytes: u64,
    pub(super) ns: f64,
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
    pub(super) figures: Figures,
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
        self.check_times(checker)?;
        self.check_noise(checker)?;
        self.check_memory(checker)?;
        self.check_lacks(checker)?;
        Ok(Wiring {
            states: self.states(reported, checker)?,
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
            figure(checker, key, value)?;
        }
        if let Some(mode) = &self.pause_modes {
            figure(checker, "pause_modes.ns", mode.ns)?;
            check_range(checker, "pause_modes.share", mode.share, 0.0, 1.0)?;
        }
        check_range(
            checker,
            "home_penalty_ns",
            self.home_penalty_ns,
            0.0,
            MAX_FIGURE,
        )?;
        check_range(checker, "gradient", self.gradient, 0.0, 10.0)
    }

    fn check_noise(&self, checker: &Checker<'_>) -> Result<(), DescriptionError> {
        check_range(checker, "pair_sd", self.pair_sd, 0.0, 2.0)?;
        check_range(checker, "noise_sd", self.noise_sd, 0.0, 2.0)?;
        if let Some(wander) = &self.wander {
            check_range(checker, "wander.sd", wander.sd, 0.0, 2.0)?;
            figure(checker, "wander.time_s", wander.time_s)?;
        }
        if let Some(outliers) = &self.outliers {
            check_range(checker, "outliers.share", outliers.share, 0.0, 1.0)?;
            figure(checker, "outliers.factor", outliers.factor)?;
        }
        check_range(checker, "switched", self.switched, 0.0, LARGEST_LOST_SHARE)?;
        let left = LARGEST_LOST_SHARE - self.switched;
        check_range(checker, "stolen", self.stolen, 0.0, left)
    }

    fn check_memory(&self, checker: &Checker<'_>) -> Result<(), DescriptionError> {
        let ascends = |pair: &[CacheFigure]| pair[0].bytes < pair[1].bytes;
        if !self.caches.windows(2).all(ascends) || self.caches.iter().any(|c| c.bytes == 0) {
            return Err(bad(checker, "caches", "must grow in bytes, from above 0"));
        }
        for cache in &self.caches {
            figure(checker, "caches.ns", cache.ns)?;
        }
        if let Some(tlb) = &self.tlb {
            figure(checker, "tlb.ns", tlb.ns)?;
        }
        for (key, value) in [
            ("memory_ns", self.memory_ns),
            ("core_gb_per_s", self.core_gb_per_s),
            ("node_gb_per_s", self.node_gb_per_s),
            ("cache_gb_per_s", self.cache_gb_per_s),
        ] {
            figure(checker, key, value)?;
        }
        check_range(
            checker,
            "remote_memory_ns",
            self.remote_memory_ns,
            0.0,
            MAX_FIGURE,
        )?;
        check_range(checker, "loaded_factor", self.loaded_factor, 1.0, 1000.0)
    }

    fn check_lacks(&self, checker: &Checker<'_>) -> Result<(), DescriptionError> {
        let is_known = |name: &&String| PROBES.contains(&name.as_str());
        match self.lacks.iter().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(name) => {
                let known = PROBES.join(", ");
                let reason = format!("'{name}' is not a probe (known: {known})");
                Err(bad(checker, "lacks", &reason))
            }
        }
    }

    fn states(
        &self,
        reported: &Topology,
        checker: &Checker<'_>,
    ) -> Result<Vec<State>, DescriptionError> {
        if self.states.is_empty() {
            let topology = match &self.topology {
                None => reported.clone(),
                Some(text) => truth(checker, "topology", text, reported)?,
            };
            let stacked = parse_stacked(checker, "stacked", &self.stacked, reported)?;
            return Ok(vec![State {
                truth: Truth::new(topology, &stacked),
                dwell_s: f64::INFINITY,
                weight: 1.0,
            }]);
        }
        if self.topology.is_some() || !self.stacked.is_empty() {
            let reason = "each has its own topology and stacked; omit those of [wiring]";
            return Err(bad(checker, "states", reason));
        }
        if self.states.len() > MAX_STATES || self.states.len() * reported.cpus.len() > MAX_CPUS {
            let reason =
                format!("more than {MAX_STATES} states, or {MAX_CPUS} CPUs in all of them");
            return Err(bad(checker, "states", &reason));
        }
        self.states
            .iter()
            .map(|state| {
                figure(checker, "states.dwell_s", state.dwell_s)?;
                figure(checker, "states.weight", state.weight)?;
                let topology = truth(checker, "states.topology", &state.topology, reported)?;
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

fn truth(
    checker: &Checker<'_>,
    key: &str,
    text: &str,
    reported: &Topology,
) -> Result<Topology, DescriptionError> {
    let present: CpuSet = reported.cpus.iter().map(|cpu| cpu.id).collect();
    let offline = present.difference(&reported.online);
    let topology =
        parse_without(text, &offline).map_err(|error| bad(checker, key, &error.to_string()))?;
    if topology.cpus.iter().map(|cpu| cpu.id).eq(present.iter()) {
        return Ok(topology);
    }
    let reason = format!(
        "has CPUs {}, the reported topology {}; they must be the same",
        topology.online, reported.online
    );
    Err(bad(checker, key, &reason))
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
            .map_err(|error| bad(checker, key, &format!("'{list}': {error}")))?;
        if !set.is_subset(&reported.online) || set.intersects(&seen) {
            let reason = format!("'{list}' names a CPU that does not exist, or one twice");
            return Err(bad(checker, key, &reason));
        }
        seen = seen.union(&set);
        sets.push(set);
    }
    Ok(sets)
}

fn figure(checker: &Checker<'_>, key: &str, value: f64) -> Result<(), DescriptionError> {
    if (MIN_FIGURE..=MAX_FIGURE).contains(&value) {
        return Ok(());
    }
    let reason = format!("{value} must be from {MIN_FIGURE:e} to {MAX_FIGURE:e}");
    Err(bad(checker, key, &reason))
}

fn check_range(
    checker: &Checker<'_>,
    key: &str,
    value: f64,
    low: f64,
    high: f64,
) -> Result<(), DescriptionError> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let reason = format!("{value} must be from {low} to {high}");
    Err(bad(checker, key, &reason))
}

fn bad(checker: &Checker<'_>, key: &str, reason: &str) -> DescriptionError {
    checker.bad(&format!("wiring.{key}"), reason)
}
