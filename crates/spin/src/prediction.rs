//! Predicts what algorithms cost on a given processor, and at which CPU counts that changes.
//!
//! It measures nothing: the processor's figures are inputs.

use std::ops::RangeInclusive;

use super::algorithm::{Algorithm, Case, Setting, Unit, Wait};
use super::chips::Chip;

/// The cost of a processor's PAUSE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PauseCost {
    /// One PAUSE, ns.
    pub pause_ns: f64,
    /// One PAUSE in core cycles; `None` if unknown.
    pub pause_cycles: Option<f64>,
    /// The core's clock, GHz; `None` if unknown.
    pub ghz: Option<f64>,
}

impl PauseCost {
    /// From cycles and clock.
    #[must_use]
    pub fn from_cycles(pause_cycles: f64, ghz: f64) -> Self {
        Self {
            pause_ns: pause_cycles / ghz,
            pause_cycles: Some(pause_cycles),
            ghz: Some(ghz),
        }
    }

    /// From a chip of the table, at its typical clock or another.
    #[must_use]
    pub fn from_chip(chip: &Chip, ghz: Option<f64>) -> Self {
        Self::from_cycles(chip.pause_cycles.0, ghz.unwrap_or(chip.ghz))
    }
}

/// A number of PAUSEs, and the time that they take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hints {
    /// The number.
    pub count: u64,
    /// The time, ns.
    pub ns: f64,
}

/// The cost of an algorithm. Times are `None` if it never ends, is unknown, or does not spend its
/// time in hints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Number of CPUs that the program sees.
    pub cpus: u64,
    /// PAUSEs before it parks.
    pub total: Option<Hints>,
    /// The most PAUSEs before it parks, if it is random or adaptive.
    pub longest: Option<Hints>,
    /// The most PAUSEs between two reads of the lock.
    pub blind_gap: Option<Hints>,
    /// CPU time that all waiters burn if all CPUs but one wait in full, ns.
    pub wasted_ns: Option<f64>,
    /// Does it spin for ever?
    pub never_parks: bool,
}

impl Prediction {
    /// Predicts the cost on a processor with this many CPUs.
    #[must_use]
    pub fn new(algorithm: &'static Algorithm, processor: &PauseCost, cpus: u64) -> Self {
        let hint_ns = processor.pause_ns;
        let setting = Setting { cpus, hint_ns };
        // Loads and yields take time, too, but not a PAUSE's.
        let waits_in_hints = !matches!(algorithm.unit, Unit::Load | Unit::Yield);
        let wait = |case| {
            algorithm
                .compute_wait(&setting, case)
                .filter(|_| waits_in_hints)
        };
        let timed = |count: u64| Hints {
            count,
            ns: count as f64 * hint_ns,
        };
        let total_of = |wait: &Wait| wait.total_hints().map(timed);
        let (typical, longest) = (wait(Case::Typical), wait(Case::Longest));
        let total = typical.as_ref().and_then(total_of);
        Self {
            algorithm,
            cpus,
            total,
            longest: longest.as_ref().and_then(total_of),
            blind_gap: longest.as_ref().map(|wait| timed(wait.blind_gap_hints())),
            wasted_ns: total.map(|hints| hints.ns * cpus.saturating_sub(1) as f64),
            never_parks: typical.is_some_and(|wait| wait.is_endless),
        }
    }

    /// The longest total, ns.
    #[must_use]
    pub fn longest_ns(&self) -> Option<f64> {
        self.longest.map(|hints| hints.ns)
    }
}

/// Finds the numbers of CPUs at which an algorithm's total differs from that with one CPU less.
#[must_use]
pub fn find_cliffs(algorithm: &Algorithm, hint_ns: f64, cpus: RangeInclusive<u64>) -> Vec<u64> {
    let total = |cpus| {
        let wait = algorithm.compute_wait(&Setting { cpus, hint_ns }, Case::Longest);
        wait.and_then(|wait| wait.total_hints())
    };
    let mut before = total(*cpus.start());
    let mut found = Vec::new();
    for count in cpus.skip(1) {
        let now = total(count);
        if now != before {
            found.push(count);
        }
        before = now;
    }
    found
}

/// Limits beyond which a wait is too long.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Spinning, ns.
    pub total_ns: f64,
    /// Longest time without a read of the lock, ns.
    pub blind_gap_ns: f64,
}

impl Limits {
    /// Does PAUSE make this wait exceed a limit? Waits that use the clock or measure PAUSE take as
    /// long as intended; those that never park have no length.
    #[must_use]
    pub fn are_exceeded(&self, prediction: &Prediction) -> bool {
        let exceeds = |hints: Option<Hints>, limit| hints.is_some_and(|hints| hints.ns >= limit);
        !prediction.algorithm.is_immune()
            && (exceeds(prediction.longest, self.total_ns)
                || exceeds(prediction.blind_gap, self.blind_gap_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chips::chip;
    use crate::table::{NETFX_AWARELOCK, find_algorithm};

    fn predict(id: &str, chip_name: &str, cpus: u64) -> Prediction {
        let processor = PauseCost::from_chip(chip(chip_name).unwrap(), None);
        Prediction::new(find_algorithm(id).unwrap(), &processor, cpus)
    }

    #[test]
    fn moving_netfx_to_skylake_multiplies_the_total() {
        let total_ms = |chip| predict("netfx_awarelock", chip, 24).total.unwrap().ns * 1e-6;
        let (before, after) = (total_ms("broadwell"), total_ms("skylake-sp"));
        assert!((before - 16.69).abs() < 0.01, "{before}");
        assert!((after - 246.46).abs() < 0.01, "{after}");
        let new = predict("coreclr_monitor", "skylake-sp", 24);
        assert!(new.total.unwrap().ns < 8_000.0 && new.algorithm.is_immune());
    }

    #[test]
    fn cliffs_are_at_the_start_of_another_round() {
        assert_eq!(find_cliffs(&NETFX_AWARELOCK, 30.0, 1..=128), [2, 6, 17, 50]);
        assert_eq!(find_cliffs(&NETFX_AWARELOCK, 30.0, 18..=49), [0u64; 0]);
        assert_eq!(
            find_cliffs(find_algorithm("go_mutex").unwrap(), 30.0, 1..=8),
            [2]
        );
    }

    #[test]
    fn waits_without_hints_have_no_figures() {
        let loads = predict("abseil_mutex", "skylake-sp", 8);
        assert_eq!((loads.total, loads.blind_gap), (None, None));
        let endless = predict("glibc_spinlock", "skylake-sp", 8);
        assert!(endless.never_parks && endless.total.is_none());
        assert_eq!(endless.blind_gap.map(|hints| hints.count), Some(1));
        assert_eq!(predict("openj9_spin", "skylake-sp", 8).longest, None);
    }

    #[test]
    fn limits_apply_only_to_waits_in_pauses() {
        let limits = Limits {
            total_ns: 50e6,
            blind_gap_ns: 2e6,
        };
        assert!(limits.are_exceeded(&predict("netfx_awarelock", "skylake-sp", 24)));
        assert!(!limits.are_exceeded(&predict("netfx_awarelock", "zen-1", 24)));
        // 200 ms by the clock.
        assert!(!limits.are_exceeded(&predict("libomp", "skylake-sp", 24)));
        assert!(!limits.are_exceeded(&predict("glibc_spinlock", "skylake-sp", 24)));
    }
}
