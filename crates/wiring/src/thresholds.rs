//! The thresholds that decide whether a gap between latencies is a level.
//!
//! Chosen on recorded machines: for each, the middle of the values within a standard error of the
//! best. `cargo lab wiring` prints how well thresholds do on machines that they were not chosen on.

/// Thresholds on ratios and shares of latencies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// The smallest ratio of a level's nearest outside to its inside, unless the figures are much
    /// more precise. Published levels are 1.4 and more apart (SMT to LLC on Zen 3: 7.7 to 15.5 ns,
    /// 2.0; LLC to LLC on Zen 2: 43 to 82 ns, 1.9; Power9 chips 550 to 720 ns, 1.3 and 1.5 on
    /// average), flat rings and meshes stay below 1.1 between neighbours.
    pub ratio: f64,
    /// How often the spread must fit into a gap below `ratio`.
    pub fine_gap: f64,
    /// The share of items that may contradict a level: disturbed measurements.
    pub tolerated: f64,
    /// Groups of one level may differ this much: a disturbed pair of siblings has up to 1.9 times
    /// the others' latency (12.5 to 6.5 ns on 3960X), an M1 Pro's small cluster 1.3 times.
    pub slow_mates: f64,
    /// How far above its typical latency the last items may join a level: a ring's opposite stops
    /// have 1.3 times the typical (63 ns to 46 on E5-2690).
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
