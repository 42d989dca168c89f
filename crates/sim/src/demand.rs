//! `[workload.NAME.demand]`: a program's demands on a machine.
//!
//! A program alone on an idle machine works 1 s in a second; its demand says what that second
//! consists of, and thus the effect of sharing on it.

use serde::Deserialize;

use super::DescriptionError;
use super::checker::Checker;

/// The location of a program's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pages {
    /// Each thread's on the node of the CPU that it starts on.
    #[default]
    Local,
    /// All on the node of the first thread.
    First,
}

/// How work is distributed to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Split {
    /// In advance: all wait for the slowest thread.
    Static,
    /// Piece by piece, to idle threads.
    #[default]
    Dynamic,
}

with_defaults! {
    /// A program's demands on a machine; times and shares are those of a single thread.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub(crate) struct Demand {
        /// Share of the work that one thread must do alone (Amdahl 1967).
        pub(super) serial: f64 = 0.0,
        /// Share of a core's issue slots used while computing.
        pub(super) issue_share: f64 = 0.6,
        /// Share of time spent waiting for memory.
        pub(super) memory_share: f64 = 0.0,
        /// Share of time spent fetching reused data from the core's own inner cache.
        pub(super) cache_share: f64 = 0.0,
        /// Traffic with memory, 1e9 bytes a second.
        pub(super) gb_per_s: f64 = 0.0,
        /// Additional traffic without caches.
        pub(super) reuse_gb_per_s: f64 = 0.0,
        /// Working set of each thread.
        pub(super) private_bytes: u64 = 0,
        /// Working set that threads share (within a group, if there are groups).
        pub(super) shared_bytes: u64 = 0,
        pub(super) pages: Pages = Pages::Local,
        /// Exchanged messages with a partner per second of a thread's work.
        pub(super) exchanges_per_s: f64 = 0.0,
        /// Group size of consecutive threads that are partners; `None`: all are.
        pub(super) group: Option<u32> = None,
        /// Barriers per second of the program's work.
        pub(super) barriers_per_s: f64 = 0.0,
        pub(super) split: Split = Split::Dynamic,
        /// Excess of the largest thread's work over the average.
        pub(super) imbalance: f64 = 0.0,
        /// Cost of a move, as a multiple of the cost of the lost caches.
        pub(super) migration: f64 = 1.0,
        /// Standard deviation of ln(time) of a placement that no model can explain.
        pub(super) unexplained_sd: f64 = 0.0,
        pub(super) unexplained_seed: u64 = 0,
    }
}

impl Demand {
    /// Share of time spent computing.
    pub(super) fn computing_share(&self) -> f64 {
        (1.0 - self.memory_share - self.cache_share).max(0.0)
    }

    pub(crate) fn check(
        &self,
        workload: &str,
        checker: &Checker<'_>,
    ) -> Result<(), DescriptionError> {
        const MAX_GB_PER_S: f64 = 1e6;
        const MAX_PER_S: f64 = 1e9;
        let key = |name: &str| format!("{workload}.demand.{name}");
        for (name, value, most) in [
            ("serial", self.serial, 1.0),
            ("issue_share", self.issue_share, 1.0),
            ("memory_share", self.memory_share, 1.0),
            ("cache_share", self.cache_share, 1.0),
            ("gb_per_s", self.gb_per_s, MAX_GB_PER_S),
            ("reuse_gb_per_s", self.reuse_gb_per_s, MAX_GB_PER_S),
            ("exchanges_per_s", self.exchanges_per_s, MAX_PER_S),
            ("barriers_per_s", self.barriers_per_s, MAX_PER_S),
            ("imbalance", self.imbalance, 1.0),
            ("migration", self.migration, 1000.0),
            ("unexplained_sd", self.unexplained_sd, 2.0),
        ] {
            checker.check_range(&key(name), value, 0.0, most)?;
        }
        if self.memory_share + self.cache_share > 1.0 {
            let reason = "must be at most 1 together with memory_share";
            return Err(checker.value_error(&key("cache_share"), reason));
        }
        if self.group == Some(0) {
            return Err(checker.value_error(&key("group"), "must be at least 1"));
        }
        Ok(())
    }
}
