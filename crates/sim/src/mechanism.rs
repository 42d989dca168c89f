//! Runs that follow from a mechanism: threads that compute and wait, a scheduler that places them,
//! cores whose CPUs share, caches that a moved thread must refill. The cost of a placement is a
//! result, not a parameter.
//!
//! A thread computes for a burst, waits, and is placed when it wakes (or when its slice is over). A
//! core with one busy CPU does 1 s of work in a second, with several busy CPUs `smt_throughput` s,
//! shared equally. A thread that moves to a CPU without the caches that it last filled refills
//! them. The run ends when all work is done; threads share it dynamically.

mod events;
mod neighbour;
mod refill;
mod run_setup;
mod witness;

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use serde::Deserialize;

use super::DescriptionError;
use super::checker::Checker;
use super::workload::SimWorkload;
pub(super) use neighbour::Neighbour;
use pinwise_topology::{CpuSet, Topology};
use run_setup::RunSetup;
pub(super) use witness::{NoWitness, Step, Witness};

/// Environment variable that narrows the ideal CPUs dealt to threads: a preference, not a limit.
const IDEAL_VARIABLE: &str = "SIM_IDEAL_CPUS";

/// How a scheduler chooses among idle CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Policy {
    /// Any idle CPU, blind to cores.
    RandomIdle,
    /// An idle CPU of an idle core before any other.
    CoreFirst,
    /// An idle CPU under the last-level cache with most of the program's threads: on an idle core,
    /// else beside a sibling.
    LlcFirst,
    /// Thread i stays on the i-th CPU.
    Pinned,
}

/// `[scheduler]`: enables the mechanism.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scheduler {
    pub(super) policy: Policy,
    /// Share of the placements that use the thread's ideal CPU if that is idle; ideal CPUs are
    /// dealt in turn.
    #[serde(default)]
    pub(super) ideal_share: f64,
    /// Seconds after which a computing thread is placed anew; without it a
    /// thread stays until it waits.
    pub(super) slice_s: Option<f64>,
    /// Throughput of a core with two busy CPUs, relative to one.
    #[serde(default = "default_smt_throughput")]
    pub(super) smt_throughput: f64,
    /// Rate at which a moved thread fills caches from another cache that both CPUs share, 1e9 bytes
    /// per second; by default that takes no time.
    pub(super) cache_gb_per_s: Option<f64>,
    /// The same from memory, if they share none.
    pub(super) memory_gb_per_s: Option<f64>,
    /// Programs that run during the command.
    #[serde(default, rename = "neighbour")]
    pub(super) neighbours: Vec<Neighbour>,
}

const fn default_smt_throughput() -> f64 {
    1.25
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            policy: Policy::CoreFirst,
            ideal_share: 0.0,
            slice_s: None,
            smt_throughput: default_smt_throughput(),
            cache_gb_per_s: None,
            memory_gb_per_s: None,
            neighbours: Vec::new(),
        }
    }
}

impl Scheduler {
    pub(super) fn check(
        &self,
        topology: &Topology,
        checker: &Checker<'_>,
    ) -> Result<(), DescriptionError> {
        let figures = [
            ("slice_s", self.slice_s),
            ("smt_throughput", Some(self.smt_throughput)),
            ("cache_gb_per_s", self.cache_gb_per_s),
            ("memory_gb_per_s", self.memory_gb_per_s),
        ];
        for (name, value) in figures {
            if let Some(value) = value {
                checker.check_positive(&format!("scheduler.{name}"), value)?;
            }
        }
        if !(0.0..=1.0).contains(&self.ideal_share) {
            return Err(checker.value_error("scheduler.ideal_share", "must be from 0 to 1"));
        }
        for (number, neighbour) in self.neighbours.iter().enumerate() {
            let key = format!("scheduler.neighbour[{number}]");
            neighbour.check(&key, topology, checker)?;
        }
        Ok(())
    }
}

/// A source's figure behind a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFigure {
    /// Its description, such as `encode-wme: HT on one CPU`.
    pub figure: String,
    /// As stated by the source.
    pub reported: String,
    /// The key set from it.
    pub sets: String,
}

/// A parameter without a source.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssumedParameter {
    /// The key.
    pub key: String,
    /// Why this value, and what another would change.
    pub why: String,
}

/// The result of a simulated run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PlayedRun {
    /// Time until all work was done, s.
    pub(super) wall_s: f64,
    /// CPU time of all threads, s.
    pub(super) busy_s: f64,
    /// CPU time of all neighbours, s.
    pub(super) foreign_s: f64,
    /// Moves of threads to another CPU.
    pub(super) migrations: u64,
    /// The part simulated step by step, s; less than `wall_s` if there were too many steps.
    pub(super) followed_s: f64,
}

/// Simulates a run of this workload on these CPUs. The witness observes and does not change it.
pub(super) fn play(
    topology: &Topology,
    scheduler: &Scheduler,
    workload: &SimWorkload,
    cpus: &CpuSet,
    environment: &[(String, String)],
    chance: &mut ChaCha8Rng,
    witness: &mut dyn Witness,
) -> PlayedRun {
    let preferred = environment
        .iter()
        .find(|(name, _)| name == IDEAL_VARIABLE)
        .and_then(|(_, list)| CpuSet::parse_list(list).ok());
    let setup = RunSetup::new(topology, scheduler, workload, cpus, preferred.as_ref());
    events::play(&setup, chance, witness)
}

/// Parses the command line of `pinwise bench kernel`. `None` for any other command.
pub(super) fn parse_kernel(arguments: &[String]) -> Option<Kernel> {
    let [program, group, command, name, rest @ ..] = arguments else {
        return None;
    };
    let is_pinwise = program.rsplit('/').next()?.starts_with("pinwise");
    if !is_pinwise || (group.as_str(), command.as_str()) != ("bench", "kernel") {
        return None;
    }
    let options: BTreeMap<&str, &str> = rest
        .windows(2)
        .filter_map(|pair| Some((pair[0].strip_prefix("--")?, pair[1].as_str())))
        .collect();
    let number = |name: &str| options.get(name)?.parse::<u32>().ok();
    Some(Kernel {
        name: name.clone(),
        threads: number("threads").unwrap_or(1).max(1),
        units: number("work").unwrap_or(100),
    })
}

/// A built-in workload with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) threads: u32,
    pub(super) units: u32,
}

impl Kernel {
    /// Seconds of one unit on a single thread.
    const UNIT_S: f64 = 0.01;

    /// Its workload: this many units of 10 ms on this many threads, or as the machine describes it.
    pub(super) fn workload(&self, described: Option<&SimWorkload>) -> SimWorkload {
        let seconds = f64::from(self.units) * Self::UNIT_S;
        let plain = SimWorkload::new(seconds, self.threads);
        described.map_or(plain.clone(), |described| SimWorkload {
            // A described base_s is the time of 100 units, a kernel's default.
            base_s: described.base_s * f64::from(self.units) / 100.0,
            threads: plain.threads,
            ..described.clone()
        })
    }

    /// Its JSON output.
    pub(super) fn print_json(&self, wall_s: f64) -> String {
        let record = serde_json::json!({
            "schema": "pinwise.kernel/1", "kernel": self.name, "threads": self.threads,
            "operations": self.units, "operation": "units", "seconds": wall_s,
            "rate": f64::from(self.units) / wall_s, "checksum": format!("{:016x}", 0),
            "work": self.units, "bytes": null, "bytes_per_s": null, "size": null,
            "working_set_bytes": 0, "isa": "native", "isa_version": "simulated",
            "split": "dynamic", "cpus": null,
        });
        format!("{record}\n")
    }
}

#[cfg(test)]
mod tests;
