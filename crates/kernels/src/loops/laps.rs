//! A batch timed in laps, to distinguish one long stop from work that is slow throughout.
//!
//! It does not say why a batch stopped: that takes more than a clock.

use super::clock::Clock;

/// A lap that exceeds the median of its batch by this much is a stop: longer than a timer interrupt
/// (2 to 5 µs here), shorter than any time slice of a scheduler or a hypervisor. A slow state (a
/// pair of CPUs moved apart, a lower clock) shows in all laps after it begins, by far less.
pub const STOP_NS: f64 = 10_000.0;

/// Times of the laps of one batch, ticks.
#[derive(Debug, Clone, Copy)]
pub struct Laps<const N: usize>([u64; N]);

impl<const N: usize> Laps<N> {
    /// From times measured elsewhere.
    #[must_use]
    pub const fn from_ticks(ticks: [u64; N]) -> Self {
        Self(ticks)
    }

    /// Does the work once per lap.
    #[inline(always)]
    pub fn time(clock: &Clock, mut work: impl FnMut()) -> Self {
        let mut laps = [0; N];
        let mut last = clock.ticks();
        for lap in &mut laps {
            work();
            let now = clock.ticks();
            *lap = now.wrapping_sub(last);
            last = now;
        }
        Self(laps)
    }

    /// Total time of all laps, ns.
    #[must_use]
    pub fn total_ns(&self, clock: &Clock) -> f64 {
        clock.ns(self.0.iter().sum())
    }

    /// The median lap, ns.
    #[must_use]
    pub fn median_ns(&self, clock: &Clock) -> f64 {
        let mut sorted = self.0;
        sorted.sort_unstable();
        clock.ns(sorted[N / 2])
    }

    /// Whether a lap contains a stop of [`STOP_NS`].
    #[must_use]
    pub fn was_stopped(&self, clock: &Clock) -> bool {
        let longest = self.0.iter().max().copied().unwrap_or(0);
        let median = self.median_ns(clock);
        clock.ns(longest) > 2.0 * median + STOP_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(laps: [u64; 5], stopped: bool, median: f64) {
        let (clock, laps) = (Clock::system(), Laps::from_ticks(laps));
        assert_eq!(laps.was_stopped(&clock), stopped, "{laps:?}");
        assert!((laps.median_ns(&clock) - median).abs() < 1e-9);
    }

    #[test]
    fn a_long_lap_is_an_interruption_and_a_slow_clock_is_not() {
        check([1000, 1000, 1000, 1000, 1000], false, 1000.0);
        check([1000, 1000, 40_000, 1000, 1000], true, 1000.0);
        // A timer interrupt.
        check([1000, 1000, 5000, 1000, 1000], false, 1000.0);
        // The pair moved from 36 to 117 ns during it.
        check([1440, 1440, 2500, 4680, 4680], false, 2500.0);
    }

    #[test]
    fn the_work_is_done_once_a_lap() {
        let mut done = 0;
        let laps = Laps::<7>::time(&Clock::system(), || done += 1);
        assert_eq!(done, 7);
        assert!(laps.total_ns(&Clock::system()) >= laps.median_ns(&Clock::system()));
    }
}
