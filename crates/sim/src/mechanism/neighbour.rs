//! Programs that run during the command. Their threads are simulated too, so that their CPU time is
//! known.

use serde::Deserialize;

use super::super::DescriptionError;
use super::super::checker::Checker;
use pinwise_topology::{CpuSet, Topology};

/// More threads of one neighbour show nothing new.
const MAX_THREADS: u32 = 1024;

/// `[[scheduler.neighbour]]`: a program that runs all the time.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Neighbour {
    /// The name of its threads.
    pub(crate) name: String,
    /// Its usable CPUs, as a list; by default all.
    cpus: Option<String>,
    /// Number of threads.
    #[serde(default = "one_thread")]
    threads: u32,
    /// Mean burst of computing, s, exponentially distributed.
    pub(super) burst_s: f64,
    /// Mean wait after it, s, exponentially distributed.
    pub(super) wait_s: f64,
}

const fn one_thread() -> u32 {
    1
}

impl Neighbour {
    pub(crate) fn threads(&self) -> usize {
        usize::try_from(self.threads).unwrap_or(1)
    }

    /// The CPUs of this machine that it may use.
    pub(crate) fn cpus_on(&self, topology: &Topology) -> CpuSet {
        let list = self.cpus.as_deref();
        match list.and_then(|list| CpuSet::parse_list(list).ok()) {
            Some(cpus) => cpus.intersection(&topology.allowed),
            None => topology.allowed.clone(),
        }
    }

    pub(super) fn check(
        &self,
        key: &str,
        topology: &Topology,
        checker: &Checker<'_>,
    ) -> Result<(), DescriptionError> {
        checker.check_positive(&format!("{key}.burst_s"), self.burst_s)?;
        checker.check_positive(&format!("{key}.wait_s"), self.wait_s)?;
        if !(1..=MAX_THREADS).contains(&self.threads) {
            let reason = format!("must be from 1 to {MAX_THREADS}");
            return Err(checker.value_error(&format!("{key}.threads"), &reason));
        }
        let key = format!("{key}.cpus");
        if let Some(list) = &self.cpus {
            CpuSet::parse_list(list)
                .map_err(|error| checker.value_error(&key, &error.to_string()))?;
        }
        if self.cpus_on(topology).is_empty() {
            return Err(checker.value_error(&key, "the machine has none of these CPUs"));
        }
        Ok(())
    }
}
