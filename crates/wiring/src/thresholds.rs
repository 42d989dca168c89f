//! The thresholds that decide whether a gap between latencies is a level.
//!
//! They were chosen on recorded machines: each is the middle of the values within a standard error of
//! the best. `cargo lab wiring` prints how well thresholds do on machines that they were not chosen on.

/// Thresholds on ratios and shares of latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// The smallest ratio of a level's nearest outside to its inside, unless the figures are much
    /// more precise. Published levels are 1.4 and more apart (SMT to LLC on Zen 3: 7.7 to 15.5 ns,
    /// 2.0; LLC to LLC on Zen 2: 43 to 82 ns, 1.9; Power9 chips 550 to 720 ns, 1.3 and 1.5 on
    /// average), flat rings and meshes stay below 1.1 between neighbours.
    pub ratio: f64,
    /// Minimum gap, in standard deviations, if the ratio is below `ratio`.
    pub fine_gap: f64,
    /// Maximum share of items that contradict a level, because of disturbed measurements.
    pub tolerated: f64,
    /// Maximum latency of a group over the typical one of its level: a disturbed pair of siblings has
    /// up to 1.9 times the others' latency (12.5 to 6.5 ns on 3960X), an M1 Pro's small cluster 1.3
    /// times.
    pub slow_mates: f64,
    /// Maximum latency at which the last items join a level, over its typical one: opposite stops of a
    /// ring have 1.3 times the typical latency (63 ns to 46 on E5-2690).
    pub width: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            ratio: 1.25,
            fine_gap: 7.0,
            tolerated: 0.06,
            slow_mates: 2.5,
            width: 1.9,
        }
    }
}
