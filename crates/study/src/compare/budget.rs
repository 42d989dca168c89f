//! Plans how many more blocks the budget allows.
//!
//! Only durations of whole blocks are used, all arms together: if the planned end depended on which
//! arm is faster, the result would be biased.

use std::time::Duration;

use super::plan::Tuning;
use pinwise_format::whole_usize;

/// The time and the runs that are left.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    started: Duration,
    time: Option<Duration>,
    runs: Option<usize>,
    used_runs: usize,
    /// Seconds per run of each block, sorted.
    run_times_s: Vec<f64>,
}

impl Budget {
    pub(super) fn new(tuning: &Tuning, arms: usize, now: Duration) -> Self {
        Self {
            started: now,
            time: tuning.budget,
            runs: tuning.max_runs.map(|runs| runs * arms),
            used_runs: 0,
            run_times_s: Vec::new(),
        }
    }

    /// Subtracts a block of `runs` runs that took `duration`. The runs of warm-up blocks do not count.
    pub(super) fn spend(&mut self, runs: usize, duration: Duration, is_warmup: bool) {
        if !is_warmup {
            self.used_runs += runs;
        }
        let run_time_s = duration.as_secs_f64() / runs.max(1) as f64;
        let index = self.run_times_s.partition_point(|t| *t < run_time_s);
        self.run_times_s.insert(index, run_time_s);
    }

    /// Adapts the plan to other arms, whose runs take `after_s` seconds instead of `before_s`; the
    /// time between runs stays the same.
    pub(super) fn adapt_run_time(&mut self, before_s: f64, after_s: f64) {
        for time in &mut self.run_times_s {
            *time = (*time - before_s + after_s).max(after_s);
        }
    }

    /// Number of blocks of `runs` runs that still fit.
    pub(super) fn blocks_left(&self, runs: usize, now: Duration) -> usize {
        let by_runs = self
            .runs_left()
            .map_or(usize::MAX, |left| left / runs.max(1));
        by_runs.min(self.blocks_in(self.time_left(now), runs))
    }

    /// Number of blocks of `runs` runs in this share of the remaining budget, rounded to the nearest.
    pub(super) fn blocks_in_share(&self, share: f64, runs: usize, now: Duration) -> usize {
        let by_runs = self.runs_left().map_or(f64::INFINITY, |left| {
            left as f64 * share / runs.max(1) as f64
        });
        let by_time = self.time_left(now).map_or(f64::INFINITY, |left| {
            left.as_secs_f64() * share / (self.run_time_s() * runs as f64).max(1e-9)
        });
        floor(by_runs.min(by_time) + 0.5)
    }

    /// Used share of the budget, from 0 to 1.
    pub(super) fn used_share(&self, now: Duration) -> f64 {
        let used_time = self.time.map_or(0.0, |time| {
            (now.saturating_sub(self.started)).as_secs_f64() / time.as_secs_f64().max(1e-9)
        });
        let used_runs = self
            .runs
            .map_or(0.0, |runs| self.used_runs as f64 / runs.max(1) as f64);
        used_time.max(used_runs).min(1.0)
    }

    /// Expected seconds until the budget is spent; infinite without a budget.
    pub(super) fn seconds_left(&self, now: Duration) -> f64 {
        let by_runs = self
            .runs_left()
            .map_or(f64::INFINITY, |left| left as f64 * self.run_time_s());
        let by_time = self
            .time_left(now)
            .map_or(f64::INFINITY, |left| left.as_secs_f64());
        by_runs.min(by_time)
    }

    /// Will the number of runs end the experiment before the time does?
    pub(super) fn ends_by_runs(&self, runs: usize, now: Duration) -> bool {
        let by_time = self.blocks_in(self.time_left(now), runs);
        self.runs_left()
            .is_some_and(|left| left / runs.max(1) <= by_time)
    }

    fn runs_left(&self) -> Option<usize> {
        self.runs.map(|runs| runs.saturating_sub(self.used_runs))
    }

    fn time_left(&self, now: Duration) -> Option<Duration> {
        let used = now.saturating_sub(self.started);
        self.time.map(|time| time.saturating_sub(used))
    }

    fn blocks_in(&self, time: Option<Duration>, runs: usize) -> usize {
        let Some(time) = time else { return usize::MAX };
        let block_s = self.run_time_s() * runs as f64;
        if block_s > 0.0 {
            floor(time.as_secs_f64() / block_s)
        } else if time.is_zero() {
            0
        } else {
            usize::MAX
        }
    }

    /// Median seconds per run, all arms together.
    fn run_time_s(&self) -> f64 {
        let middle = self.run_times_s.len() / 2;
        self.run_times_s.get(middle).copied().unwrap_or(0.0)
    }
}

fn floor(value: f64) -> usize {
    whole_usize(value.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(time_s: Option<u64>, runs: Option<usize>) -> Budget {
        let tuning = Tuning {
            budget: time_s.map(Duration::from_secs),
            max_runs: runs,
            ..Tuning::default()
        };
        Budget::new(&tuning, 2, Duration::ZERO)
    }

    #[test]
    fn time_limits_blocks() {
        let mut budget = budget(Some(10), None);
        assert_eq!(budget.blocks_left(2, Duration::ZERO), usize::MAX);
        budget.spend(2, Duration::from_secs(1), true);
        assert_eq!(budget.blocks_left(2, Duration::from_secs(1)), 9);
        assert_eq!(budget.blocks_left(4, Duration::from_secs(1)), 4);
        assert!((budget.used_share(Duration::from_secs(5)) - 0.5).abs() < 1e-9);
        assert_eq!(budget.blocks_left(2, Duration::from_secs(11)), 0);
    }

    #[test]
    fn replanning_replaces_the_run_time_of_earlier_arms() {
        let mut budget = budget(Some(20), None);
        budget.spend(3, Duration::from_secs(9), true);
        assert_eq!(budget.blocks_left(3, Duration::from_secs(9)), 1);
        // The program took 2.5 s of the 3 s per run; now it takes half a second.
        budget.adapt_run_time(2.5, 0.5);
        assert_eq!(budget.blocks_left(2, Duration::from_secs(9)), 5);
    }

    #[test]
    fn runs_limit_blocks_and_warm_up_runs_do_not_count() {
        let mut budget = budget(None, Some(10));
        budget.spend(2, Duration::from_secs(1), true);
        assert_eq!(budget.blocks_left(2, Duration::ZERO), 10);
        budget.spend(2, Duration::from_secs(1), false);
        assert_eq!(budget.blocks_left(2, Duration::ZERO), 9);
        assert!(budget.ends_by_runs(2, Duration::ZERO));
        assert!((budget.seconds_left(Duration::ZERO) - 9.0).abs() < 1e-9);
    }
}
