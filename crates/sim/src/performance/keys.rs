//! The section `[performance]` of a description: the machine's capabilities.

use serde::Deserialize;

use super::super::DescriptionError;
use super::super::checker::Checker;
use super::super::wiring::Wiring;

/// How threads are spread over the CPUs of a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Spread {
    /// Any idle CPU, blind to cores.
    RandomIdle,
    /// An idle CPU of an idle core before any other.
    CoreFirst,
    /// The cores of one last-level cache, then their siblings, then the next.
    LlcFirst,
    /// Thread i stays on the i-th CPU in the order of the tree.
    Pinned,
}

with_defaults! {
    /// `[performance]` as written: `None` if a default depends on the machine.
    #[derive(Debug, Clone, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub(crate) struct Keys {
        pub(super) policy: Spread = Spread::CoreFirst,
        /// Seconds after which the scheduler places threads again; `None`: never.
        pub(super) rebalance_s: Option<f64> = None,

        /// CPUs that are slower than others of their kind without reporting it, and the factor on
        /// their speed.
        pub(super) slow_cpus: Option<String> = None,
        pub(super) slow_speed: f64 = 0.7,

        /// Share of computing time that siblings lose because they divide buffers and inner caches.
        pub(super) smt_partition: f64 = 0.05,
        /// Share of the clock that is lost with all cores of a package active.
        pub(super) turbo_drop: f64 = 0.1,
        /// Share of time lost if threads take turns on a CPU.
        pub(super) switch_loss: f64 = 0.01,

        /// `None`: from the topology, or 1 MiB.
        pub(super) l2_bytes: Option<u64> = None,
        /// `None`: from the topology, or 32 MiB.
        pub(super) llc_bytes: Option<u64> = None,
        /// Exponent of the Hill curve from occupancy to misses.
        pub(super) cache_sharpness: i32 = 3,
        pub(super) l2_load_ns: f64 = 4.0,
        pub(super) llc_load_ns: f64 = 15.0,

        pub(super) core_gb_per_s: Option<f64> = None,
        pub(super) node_gb_per_s: Option<f64> = None,
        /// Between two packages, in one direction.
        pub(super) link_gb_per_s: f64 = 30.0,
        /// Bandwidth at which a moved thread refills from another cache.
        pub(super) cache_gb_per_s: Option<f64> = None,
        pub(super) memory_ns: Option<f64> = None,
        /// Extra latency of memory of another package.
        pub(super) remote_memory_ns: Option<f64> = None,
        /// Latency of memory at full load over that without load.
        pub(super) loaded_factor: Option<f64> = None,

        /// One-way times of a cache line.
        pub(super) smt_ns: Option<f64> = None,
        pub(super) llc_ns: Option<f64> = None,
        pub(super) numa_ns: Option<f64> = None,
        pub(super) package_ns: Option<f64> = None,
        pub(super) remote_ns: Option<f64> = None,
    }
}

/// Figures that can also be measured, with the defaults of `[wiring]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Figures {
    pub(super) core_gb_per_s: f64,
    pub(super) node_gb_per_s: f64,
    pub(super) cache_gb_per_s: f64,
    pub(super) memory_ns: f64,
    pub(super) remote_memory_ns: f64,
    pub(super) loaded_factor: f64,
    /// One-way times within a core, a last-level cache, a node, a package, and
    /// beyond.
    pub(super) transfer_ns: [f64; 5],
}

/// Limits of figures, so that products of several stay finite.
const MIN_FIGURE: f64 = 1e-6;
const MAX_FIGURE: f64 = 1e6;
const MAX_SHARPNESS: f64 = 16.0;

impl Keys {
    pub(super) fn check(&self, checker: &Checker<'_>) -> Result<(), DescriptionError> {
        let checker = &checker.with_section("performance");
        let positive = [
            ("rebalance_s", self.rebalance_s),
            ("slow_speed", Some(self.slow_speed)),
            ("l2_load_ns", Some(self.l2_load_ns)),
            ("llc_load_ns", Some(self.llc_load_ns)),
            ("core_gb_per_s", self.core_gb_per_s),
            ("node_gb_per_s", self.node_gb_per_s),
            ("link_gb_per_s", Some(self.link_gb_per_s)),
            ("cache_gb_per_s", self.cache_gb_per_s),
            ("memory_ns", self.memory_ns),
            ("smt_ns", self.smt_ns),
            ("llc_ns", self.llc_ns),
            ("numa_ns", self.numa_ns),
            ("package_ns", self.package_ns),
            ("remote_ns", self.remote_ns),
        ];
        for (key, value) in positive {
            if let Some(value) = value {
                checker.check_range(key, value, MIN_FIGURE, MAX_FIGURE)?;
            }
        }
        for (key, value, low, high) in [
            ("smt_partition", self.smt_partition, 0.0, 10.0),
            ("turbo_drop", self.turbo_drop, 0.0, 0.9),
            ("switch_loss", self.switch_loss, 0.0, 10.0),
            (
                "remote_memory_ns",
                self.remote_memory_ns.unwrap_or(0.0),
                0.0,
                MAX_FIGURE,
            ),
            (
                "loaded_factor",
                self.loaded_factor.unwrap_or(1.0),
                1.0,
                1000.0,
            ),
        ] {
            checker.check_range(key, value, low, high)?;
        }
        let sharpness = f64::from(self.cache_sharpness);
        checker.check_range("cache_sharpness", sharpness, 1.0, MAX_SHARPNESS)?;
        self.check_sizes(checker)
    }

    fn check_sizes(&self, checker: &Checker<'_>) -> Result<(), DescriptionError> {
        for (key, value) in [("l2_bytes", self.l2_bytes), ("llc_bytes", self.llc_bytes)] {
            if value == Some(0) {
                return Err(checker.value_error(key, "must be above 0"));
            }
        }
        Ok(())
    }

    /// The figures of this section, with those of `[wiring]` as defaults.
    pub(super) fn figures(&self, wiring: &Wiring) -> Figures {
        let defaults = &wiring.figures;
        let package_ns = self.package_ns.unwrap_or(defaults.package_ns);
        Figures {
            core_gb_per_s: self.core_gb_per_s.unwrap_or(defaults.core_gb_per_s),
            node_gb_per_s: self.node_gb_per_s.unwrap_or(defaults.node_gb_per_s),
            cache_gb_per_s: self.cache_gb_per_s.unwrap_or(defaults.cache_gb_per_s),
            memory_ns: self.memory_ns.unwrap_or(defaults.memory_ns),
            remote_memory_ns: self.remote_memory_ns.unwrap_or(defaults.remote_memory_ns),
            loaded_factor: self.loaded_factor.unwrap_or(defaults.loaded_factor),
            transfer_ns: [
                self.smt_ns.unwrap_or(defaults.smt_ns),
                self.llc_ns.unwrap_or(defaults.llc_ns),
                self.numa_ns.or(defaults.numa_ns).unwrap_or(package_ns),
                package_ns,
                self.remote_ns.unwrap_or(defaults.remote_ns),
            ],
        }
    }
}
