//! The behaviour of runs under one placement: their spread, after-effects, warm-up and reaction to
//! load.
//!
//! `[effects]` only scales an arm. Statistical methods break on other differences (spread,
//! warm-up), so this section adds them.

use std::collections::BTreeMap;

use rand::{Rng, RngExt};
use serde::Deserialize;

use super::checker::{Checker, DescriptionError};
use super::noise::{draw_exponential, draw_normal};
use pinwise_topology::{CpuSet, Topology};

with_defaults! {
    /// `[behaviour."PLACEMENT"]`: all parts multiply.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub(super) struct Behaviour {
        /// Additional standard deviation of `ln(time)`.
        sd: f64 = 0.0,
        /// Mean of an exponential part of `ln(time)`.
        exponential: f64 = 0.0,
        /// Share of runs that take `slow_factor` times as long.
        slow_share: f64 = 0.0,
        slow_factor: f64 = 1.0,
        /// The first run takes this many times as long; the excess falls by a factor of e within
        /// `cold_runs` of its own runs.
        cold_factor: f64 = 1.0,
        cold_runs: f64 = 1.0,
        /// The run after one of this placement takes this many times as long.
        leaves_factor: f64 = 1.0,
        /// A run right after one of another placement takes this many times as long.
        after_others_factor: f64 = 1.0,
        /// A run takes this many times as long for every CPU that other programs use.
        load_factor: f64 = 1.0,
    }
}

/// The behaviours of a description, by the CPUs of their placements.
pub(super) type Behaviours = Vec<(CpuSet, Behaviour)>;

/// Checks the section and resolves its placements to CPUs.
pub(super) fn resolve(
    raw: BTreeMap<String, Behaviour>,
    topology: &Topology,
    checker: &Checker<'_>,
) -> Result<Behaviours, DescriptionError> {
    raw.into_iter()
        .map(|(name, behaviour)| {
            let key = format!("behaviour.\"{name}\"");
            let part = |part: &str| format!("{key}.{part}");
            for (name, factor) in [
                ("slow_factor", behaviour.slow_factor),
                ("cold_factor", behaviour.cold_factor),
                ("cold_runs", behaviour.cold_runs),
                ("leaves_factor", behaviour.leaves_factor),
                ("after_others_factor", behaviour.after_others_factor),
                ("load_factor", behaviour.load_factor),
            ] {
                checker.check_positive(&part(name), factor)?;
            }
            checker.check_range(&part("sd"), behaviour.sd, 0.0, 10.0)?;
            checker.check_range(&part("exponential"), behaviour.exponential, 0.0, 10.0)?;
            checker.check_range(&part("slow_share"), behaviour.slow_share, 0.0, 1.0)?;
            Ok((checker.realise_placement(&key, &name, topology)?, behaviour))
        })
        .collect()
}

/// The runs so far, which affect later ones.
#[derive(Debug, Default)]
pub(super) struct RunHistory {
    /// Runs so far on each of the placements.
    runs: Vec<f64>,
    /// The placement of the last run.
    last: Option<CpuSet>,
}

impl RunHistory {
    /// Draws the behaviour's factor on the time of a run on these CPUs, and remembers the run.
    /// Other programs use `foreign_cpus` CPUs meanwhile.
    pub(super) fn draw_factor(
        &mut self,
        behaviours: &Behaviours,
        cpus: &CpuSet,
        foreign_cpus: f64,
        chance: &mut impl Rng,
    ) -> f64 {
        if behaviours.is_empty() {
            return 1.0;
        }
        self.runs.resize(behaviours.len(), 0.0);
        let find = |cpus: &CpuSet| behaviours.iter().position(|(placed, _)| placed == cpus);
        let last = self.last.replace(cpus.clone());
        let previous = last.as_ref().and_then(find);
        let mut factor = previous.map_or(1.0, |last| behaviours[last].1.leaves_factor);
        if let Some(index) = find(cpus) {
            let behaviour = &behaviours[index].1;
            factor *= behaviour.draw_factor(self.runs[index], foreign_cpus, chance);
            if last.is_some_and(|last| last != *cpus) {
                factor *= behaviour.after_others_factor;
            }
            self.runs[index] += 1.0;
        }
        factor
    }
}

impl Behaviour {
    fn draw_factor(&self, runs_before: f64, foreign_cpus: f64, chance: &mut impl Rng) -> f64 {
        let mut log = self.sd * draw_normal(chance);
        if self.exponential > 0.0 {
            log += draw_exponential(self.exponential, chance);
        }
        if chance.random::<f64>() < self.slow_share {
            log += self.slow_factor.ln();
        }
        log += self.cold_factor.ln() * (-runs_before / self.cold_runs).exp();
        log += self.load_factor.ln() * foreign_cpus;
        log.exp()
    }
}
