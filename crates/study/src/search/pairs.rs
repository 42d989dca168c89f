//! Compares an arm with a baseline in fresh pairs in random order, with an interval that is valid at
//! any time.

use super::Candidate;
use pinwise_format::{percent, signed_percent};
use pinwise_record::{ConfirmationRecord, PairsVerdict};
use pinwise_stats::anytime::Sequence;

/// Two-sided error rate of the interval.
pub(super) const ALPHA: f64 = 0.05;
/// An effect is known well enough if the interval's half-width is at most this share of it.
const MAX_HALF_WIDTH_SHARE: f64 = 0.5;

/// The number of pairs at which the interval is tightest is at most this.
const MAX_TIGHTEST: usize = 12;

/// Pairs of an arm and a baseline.
#[derive(Debug)]
pub(super) struct Pairs {
    /// The arm that is compared with the baseline.
    pub(super) arm: usize,
    sequence: Sequence,
    /// The pair whose second run is missing.
    half_pair: Option<HalfPair>,
    /// ln(cost) of the arm minus that of the baseline.
    differences: Vec<f64>,
}

/// The first run of a pair.
#[derive(Debug, Clone, Copy)]
struct HalfPair {
    block: usize,
    is_baseline: bool,
    y: f64,
}

impl Pairs {
    /// `noise`: standard deviation of a difference; `most`: maximum number of pairs.
    pub(super) fn new(arm: usize, alpha: f64, noise: f64, most: usize) -> Self {
        Self {
            arm,
            sequence: Sequence::new(alpha, noise, most.min(MAX_TIGHTEST)),
            half_pair: None,
            differences: Vec::new(),
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.differences.len()
    }

    /// Adds a run with its ln(cost); the two runs of a pair have the same block.
    pub(super) fn add_run(&mut self, is_baseline: bool, block: usize, y: f64) {
        match self.half_pair.take() {
            Some(first) if first.block == block && first.is_baseline != is_baseline => {
                let (arm, baseline) = match is_baseline {
                    true => (first.y, y),
                    false => (y, first.y),
                };
                self.differences.push(arm - baseline);
            }
            _ => {
                self.half_pair = Some(HalfPair {
                    block,
                    is_baseline,
                    y,
                });
            }
        }
    }

    /// Median difference of ln(cost).
    pub(super) fn estimate(&self) -> f64 {
        pinwise_stats::describe::quantile(&self.differences, 0.5)
    }

    pub(super) fn interval(&self) -> Option<(f64, f64)> {
        self.sequence.interval(&self.differences)
    }

    /// Is the effect known well enough, or smaller than `zone`?
    pub(super) fn is_answered(&self, zone: f64) -> bool {
        let Some((low, high)) = self.interval() else {
            return false;
        };
        let is_same = low > -zone && high < zone;
        let has_direction = low > 0.0 || high < 0.0;
        let is_precise = (high - low) / 2.0 <= MAX_HALF_WIDTH_SHARE * self.estimate().abs();
        is_same || (has_direction && is_precise)
    }

    pub(super) fn verdict(&self, zone: f64) -> PairsVerdict {
        match self.interval() {
            Some((low, high)) if low > -zone && high < zone => PairsVerdict::Same,
            Some((_, high)) if high < 0.0 => PairsVerdict::Faster,
            Some((low, _)) if low > 0.0 => PairsVerdict::Slower,
            Some((_, high)) if high < zone => PairsVerdict::NotSlower,
            Some((low, _)) if low > -zone => PairsVerdict::NotFaster,
            _ => PairsVerdict::Undecided,
        }
    }

    pub(super) fn describe(&self, name: &str, zone: f64) -> String {
        let pairs = self.differences.len();
        let share = |y: f64| percent(y.exp_m1().abs());
        let Some((low, high)) = self.interval() else {
            return format!("{pairs} fresh pairs are too few for an interval.");
        };
        let (from, to) = (signed_percent(low.exp_m1()), signed_percent(high.exp_m1()));
        let within = percent(zone.exp_m1());
        match self.verdict(zone) {
            PairsVerdict::Faster => format!(
                "{name} is faster than os-default by {} to {} ({pairs} fresh pairs).",
                share(high),
                share(low)
            ),
            PairsVerdict::Slower => format!(
                "{name} is slower than os-default by {} to {} ({pairs} fresh pairs).",
                share(low),
                share(high)
            ),
            PairsVerdict::Same => {
                format!("{name} and os-default are the same within {within} ({pairs} fresh pairs).")
            }
            PairsVerdict::NotSlower => format!(
                "{name} is not slower than os-default by {within}: its cost differs by {from} to \
                 {to} ({pairs} fresh pairs)."
            ),
            PairsVerdict::NotFaster => format!(
                "{name} is not faster than os-default by {within}: its cost differs by {from} to \
                 {to} ({pairs} fresh pairs)."
            ),
            PairsVerdict::Undecided | PairsVerdict::Other(_) => format!(
                "{pairs} fresh pairs leave open whether {name} is faster than os-default: its \
                 cost differs by {from} to {to}."
            ),
        }
    }

    pub(super) fn to_record(&self, arm: &Candidate, zone: f64) -> ConfirmationRecord {
        let interval = self.interval();
        let pairs = self.differences.len();
        ConfirmationRecord {
            arm: arm.name.clone(),
            pairs,
            runs: 2 * pairs,
            ratio: self.estimate().exp(),
            low: interval.map(|(low, _)| low.exp()),
            high: interval.map(|(_, high)| high.exp()),
            confidence: 1.0 - ALPHA,
            verdict: self.verdict(zone),
            sentence: self.describe(&arm.title(), zone),
        }
    }
}
