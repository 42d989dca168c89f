//! From batches to a median, and how many batches are enough.
//!
//! The median of batches, not the mean of all: on a busy machine a few batches take a thousand
//! times as long as the rest, and a mean follows them (a CAS mean spanned 28 to 1,793 ns within one
//! state, while the median of batches stayed within 28 to 37). More batches are requested until the
//! interval of the median is narrow, or the limit is reached; the interval is that of order
//! statistics, which needs no distribution.

use std::time::Duration;

use pinwise_format::whole_usize;
use pinwise_machine::{Batches, MachineError, Probe, Prober};
use pinwise_record::Median;
use pinwise_stats::describe::{median_interval, quantile};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// Batches grow by this factor from one look to the next.
const GROWTH: f64 = 1.6;

/// How hard to try.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    /// Batches before the first look.
    pub(super) least: usize,
    /// Batches after which it ends, narrow or not.
    pub(super) most: usize,
    /// Half-width of the interval, as a share of the median, that is enough.
    pub(super) precision: f64,
    /// Time for all.
    pub(super) limit: Duration,
}

/// Everything one probe gave so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Sample {
    pub(super) values: Vec<f64>,
    pub(super) background: Vec<f64>,
    pub(super) switched: usize,
    pub(super) stolen: usize,
    pub(super) is_displaced: bool,
    pub(super) unavailable: Option<String>,
}

impl Sample {
    fn absorb(&mut self, batches: Batches) {
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

    /// The value that nine of ten batches exceed: load during them raises the median several times
    /// over, and this far less.
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

/// Makes probes at the same time until each is settled or the limit is
/// reached. They must not share a CPU.
pub(super) fn estimate(
    machine: &mut dyn Prober,
    probes: &[Probe],
    effort: &Effort,
) -> Result<Vec<Sample>, MachineError> {
    let mut samples = vec![Sample::default(); probes.len()];
    let started = machine.now();
    let mut wanted = effort.least;
    loop {
        let open: Vec<usize> = (0..probes.len())
            .filter(|&index| !samples[index].is_settled(effort))
            .collect();
        let left = effort
            .limit
            .saturating_sub(machine.now().saturating_sub(started));
        if open.is_empty() || left.is_zero() {
            return Ok(samples);
        }
        let batch: Vec<Probe> = open.iter().map(|&index| probes[index].clone()).collect();
        let before = machine.now();
        let answers = machine.probe(&batch, wanted, left)?;
        for (index, batches) in open.into_iter().zip(answers) {
            samples[index].absorb(batches);
        }
        if machine.now() == before {
            // A stopped clock must not cause an endless loop.
            return Ok(samples);
        }
        wanted = next_count(wanted, effort);
    }
}

/// Number of batches of the next call: the total grows by [`GROWTH`].
fn next_count(last: usize, effort: &Effort) -> usize {
    let next = whole_usize((last as f64 * GROWTH).ceil());
    next.clamp(1, effort.most.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        let mut sample = Sample::default();
        sample.absorb(Batches {
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
    fn a_narrow_interval_settles_an_estimate() {
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
    fn damaged_figures_do_not_count() {
        let values = sample(&[1.0, f64::NAN, 2.0, f64::INFINITY, 3.0]);
        assert_eq!(values.median().map(|m| m.value), Some(2.0));
    }
}
