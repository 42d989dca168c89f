//! The workload of a command on a simulated machine.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::DescriptionError;
use super::checker::Checker;
use super::demand::Demand;
use pinwise_topology::{CpuSet, Topology};

/// A command on the simulated machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SimWorkload {
    /// Seconds of wall-clock time under os-default without noise; with a scheduler, seconds that a
    /// single thread computes.
    pub(super) base_s: f64,
    /// CPU time over wall-clock time; `None`: every thread computes all the time, as far as there
    /// are CPUs.
    pub(super) cpu_share: Option<f64>,
    /// Number of threads.
    #[serde(default = "one_thread")]
    pub(super) threads: u32,
    /// Peak memory.
    pub(super) max_rss_bytes: Option<u64>,
    /// Exit status of failing runs.
    pub(super) exit: Option<i32>,
    /// Share of the runs that fail; 1 if only `exit` is given.
    pub(super) fail_probability: Option<f64>,
    /// True cost ratios of this workload alone, before the general ones.
    #[serde(default)]
    pub(super) effects: BTreeMap<String, f64>,
    /// Mean time that a thread computes before it waits, s, exponentially distributed; by default
    /// no thread waits.
    pub(super) burst_s: Option<f64>,
    /// Mean time that it then waits, s, exponentially distributed.
    pub(super) wait_s: Option<f64>,
    /// Throughput of a core with two busy CPUs, relative to one; by default the scheduler's.
    pub(super) smt_throughput: Option<f64>,
    /// Bytes that a thread must fetch again after a move to other caches.
    pub(super) working_set_bytes: Option<u64>,
    /// Does it bind its threads to its CPUs in turn?
    #[serde(default)]
    pub(super) places_itself: bool,
    /// Its demands on a machine with `[performance]`.
    pub(super) demand: Option<Demand>,
    /// Placements under which it always fails.
    #[serde(default)]
    pub(super) fails: Vec<String>,
    /// `effects` by CPUs, set by `check`.
    #[serde(skip)]
    pub(super) resolved: Vec<(CpuSet, f64)>,
    /// `fails` as CPUs, set by `check`.
    #[serde(skip)]
    pub(super) failing: Vec<CpuSet>,
}

const fn one_thread() -> u32 {
    1
}

impl SimWorkload {
    /// This many seconds on this many threads.
    pub(super) const fn new(base_s: f64, threads: u32) -> Self {
        Self {
            base_s,
            cpu_share: None,
            threads,
            max_rss_bytes: None,
            exit: None,
            fail_probability: None,
            effects: BTreeMap::new(),
            burst_s: None,
            wait_s: None,
            smt_throughput: None,
            working_set_bytes: None,
            places_itself: false,
            demand: None,
            fails: Vec::new(),
            resolved: Vec::new(),
            failing: Vec::new(),
        }
    }

    /// CPU time over wall-clock time on these CPUs.
    pub(super) fn cpu_share(&self, cpus: &CpuSet) -> f64 {
        let cpus = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
        let computing = f64::from(self.threads.min(cpus.max(1)));
        self.cpu_share.unwrap_or(computing)
    }

    /// Exit status of failing runs, and the probability of one on these CPUs.
    pub(super) fn failure(&self, cpus: &CpuSet) -> Option<(i32, f64)> {
        if self.failing.contains(cpus) {
            return Some((self.exit.unwrap_or(1), 1.0));
        }
        // An exit status alone means that all runs fail, unless a list limits it to placements.
        let default = if self.fails.is_empty() { 1.0 } else { 0.0 };
        let probability = self.fail_probability.unwrap_or(default);
        self.exit.map(|exit| (exit, probability))
    }

    /// Checks the figures, and resolves the placements of `effects` and `fails` to CPUs.
    pub(super) fn check(
        &mut self,
        name: &str,
        topology: &Topology,
        checker: &Checker<'_>,
    ) -> Result<(), DescriptionError> {
        let key = format!("workload.{name}");
        let positive = [
            ("base_s", Some(self.base_s)),
            ("cpu_share", self.cpu_share),
            ("burst_s", self.burst_s),
            ("wait_s", self.wait_s),
            ("smt_throughput", self.smt_throughput),
        ];
        for (name, value) in positive {
            if let Some(value) = value {
                checker.check_positive(&format!("{key}.{name}"), value)?;
            }
        }
        if self.wait_s.is_some() && self.burst_s.is_none() {
            let reason = "needs burst_s, the time that threads compute before they wait";
            return Err(checker.value_error(&format!("{key}.wait_s"), reason));
        }
        if !(1..=65_536).contains(&self.threads) {
            return Err(checker.value_error(&format!("{key}.threads"), "must be from 1 to 65536"));
        }
        let probability = self.fail_probability.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&probability) {
            return Err(
                checker.value_error(&format!("{key}.fail_probability"), "must be from 0 to 1")
            );
        }
        if let Some(demand) = &self.demand {
            demand.check(&key, checker)?;
        }
        self.resolved =
            checker.resolve_effects(&format!("{key}.effects"), &self.effects, topology)?;
        self.failing = self
            .fails
            .iter()
            .map(|name| checker.realise_placement(&format!("{key}.fails"), name, topology))
            .collect::<Result<_, _>>()?;
        Ok(())
    }
}
