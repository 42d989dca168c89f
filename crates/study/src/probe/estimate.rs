//! Measures probes in batches until their median is precise enough.
//!
//! The median of batches is used, not their mean: on a busy machine a few batches take a thousand
//! times as long as the rest, and the mean follows them (a CAS mean spanned 28 to 1,793 ns within one
//! state, while the median of batches stayed within 28 to 37). More batches are requested until the
//! median's interval is narrow or the limit is reached. The interval is that of order statistics,
//! which assumes no distribution.

use std::time::Duration;

use pinwise_format::whole_usize;
use pinwise_machine::{Batches, MachineError, Probe, Prober};
use pinwise_record::Median;
use pinwise_stats::describe::{median_interval, quantile};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// The number of requested batches grows by this factor from call to call.
const GROWTH: f64 = 1.6;

/// How many batches to measure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Minimum number of batches.
    pub(super) least: usize,
    /// Maximum number of batches.
    pub(super) most: usize,
    /// Sufficient half-width of the interval, relative to the median.
    pub(super) precision: f64,
    /// Maximum time.
    pub(super) limit: Duration,
}

/// All batches of one probe so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    pub(super) values: Vec<f64>,
    /// Bandwidth that load threads reached meanwhile, by batch.
    pub(super) background: Vec<f64>,
    /// Batches discarded because of a context switch.
    pub(super) switched: usize,
    /// Batches discarded because of stolen time.
    pub(super) stolen: usize,
    /// Was a thread on another CPU than requested?
    pub(super) is_displaced: bool,
    /// Why the probe is not available, if it is not.
    pub(super) unavailable: Option<String>,
}

impl Sample {
    fn add(&mut self, batches: Batches) {
        self.values
            .extend(batches.values.into_iter().filter(|v| v.is_finite()));
        self.background.extend(batches.background);
        self.switched += batches.switched;
        self.stolen += batches.stolen;
        self.is_displaced |= !batches.was_in_place;
        self.unavailable = batches.unavailable.or(self.unavailable.take());
    }

    /// The median with its interval; `None` if no batch was good.
    pub(super) fn median(&self) -> Option<Median> {
        if self.values.is_empty() {
            return None;
        }
        let interval = median_interval(&self.values, CONFIDENCE);
        Some(Median {
            value: quantile(&self.values, 0.5),
            low: interval.map(|(low, _)| low),
            high: interval.map(|(_, high)| high),
            batches: self.values.len(),
            switched: self.switched,
            stolen: self.stolen,
        })
    }

    /// The value that 90 % of batches exceed. Load may multiply the median, but hardly raises this.
    pub(super) fn floor(&self) -> f64 {
        quantile(&self.values, 0.1)
    }

    fn is_settled(&self, effort: &Effort) -> bool {
        if self.unavailable.is_some() || self.values.len() >= effort.most {
            return true;
        }
        let Some(median) = self.median() else {
            return false;
        };
        let (Some(low), Some(high)) = (median.low, median.high) else {
            return false;
        };
        self.values.len() >= effort.least
            && 0.5 * (high - low) <= effort.precision * median.value.abs()
    }
}

/// Runs probes at the same time until each is settled or the limit is reached. The probes must not
/// share a CPU.
pub(super) fn estimate(
    machine: &mut dyn Prober,
    probes: &[Probe],
    effort: &Effort,
) -> Result<Vec<Sample>, MachineError> {
    let mut samples = vec![Sample::default(); probes.len()];
    let started = machine.now();
    let mut count = effort.least;
    loop {
        let unsettled: Vec<usize> = (0..probes.len())
            .filter(|&index| !samples[index].is_settled(effort))
            .collect();
        let left = effort
            .limit
            .saturating_sub(machine.now().saturating_sub(started));
        if unsettled.is_empty() || left.is_zero() {
            return Ok(samples);
        }
        let open_probes: Vec<Probe> = unsettled
            .iter()
            .map(|&index| probes[index].clone())
            .collect();
        let before = machine.now();
        let answers = machine.probe(&open_probes, count, left)?;
        for (index, batches) in unsettled.into_iter().zip(answers) {
            samples[index].add(batches);
        }
        if machine.now() == before {
            // A stopped clock must not cause an endless loop.
            return Ok(samples);
        }
        count = next_count(count, effort);
    }
}

/// Number of batches of the next call.
fn next_count(last: usize, effort: &Effort) -> usize {
    let next = whole_usize((last as f64 * GROWTH).ceil());
    next.clamp(1, effort.most.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        let mut sample = Sample::default();
        sample.add(Batches {
            values: values.to_vec(),
            was_in_place: true,
            ..Batches::default()
        });
        sample
    }

    const EFFORT: Effort = Effort {
        least: 10,
        most: 40,
        precision: 0.02,
        limit: Duration::from_secs(1),
    };

    #[test]
    fn an_estimate_is_settled_by_a_narrow_interval_or_the_maximum_number() {
        let narrow: Vec<f64> = (0..20).map(|i| 40.0 + 0.01 * f64::from(i)).collect();
        assert!(sample(&narrow).is_settled(&EFFORT));
        let wide: Vec<f64> = (0..20).map(|i| 40.0 + f64::from(i)).collect();
        assert!(!sample(&wide).is_settled(&EFFORT));
        let many: Vec<f64> = (0..40).map(f64::from).collect();
        assert!(sample(&many).is_settled(&EFFORT));
        assert!(!sample(&narrow[..8]).is_settled(&EFFORT));
        assert!(!sample(&[]).is_settled(&EFFORT));
    }

    #[test]
    fn values_that_are_not_finite_do_not_count() {
        let values = sample(&[1.0, f64::NAN, 2.0, f64::INFINITY, 3.0]);
        assert_eq!(values.median().map(|m| m.value), Some(2.0));
    }
}
