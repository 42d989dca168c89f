//! Fresh pairs of an arm and a baseline, in random order, and an interval that is valid at any
//! time.

use super::Candidate;
use pinwise_format::{percent, signed_percent};
use pinwise_record::{ConfirmationRecord, PairsVerdict};
use pinwise_stats::anytime::Sequence;

/// Two-sided error of the interval.
pub(super) const ALPHA: f64 = 0.05;
/// An effect is known well enough if its interval reaches no further than this share of it.
const MAX_HALF_WIDTH_SHARE: f64 = 0.5;

/// The planned number of pairs at which the interval is tightest, at most.
const TIGHTEST: usize = 12;

/// Pairs of an arm and a baseline.
#[derive(Debug)]
pub(super) struct Pairs {
    /// The arm against the baseline.
    pub(super) arm: usize,
    sequence: Sequence,
    /// Block, and what is known of its two runs.
    open: Option<(usize, Option<f64>, Option<f64>)>,
    /// y of the arm minus that of the baseline.
    differences: Vec<f64>,
}

impl Pairs {
    /// `noise`: standard deviation of a difference; `most`: pairs at most.
    pub(super) fn new(arm: usize, alpha: f64, noise: f64, most: usize) -> Self {
        Self {
            arm,
            sequence: Sequence::new(alpha, noise, most.min(TIGHTEST)),
            open: None,
            differences: Vec::new(),
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.differences.len()
    }

    pub(super) fn take(&mut self, is_baseline: bool, block: usize, y: f64) {
        let mut open = match self.open {
            Some(open) if open.0 == block => open,
            _ => (block, None, None),
        };
        if is_baseline {
            open.1 = Some(y);
        } else {
            open.2 = Some(y);
        }
        self.open = Some(open);
        if let (_, Some(baseline), Some(own)) = open {
            self.differences.push(own - baseline);
            self.open = None;
        }
    }

    /// Typical difference: the middle of the interval's evidence.
    pub(super) fn estimate(&self) -> f64 {
        pinwise_stats::describe::quantile(&self.differences, 0.5)
    }

    pub(super) fn interval(&self) -> Option<(f64, f64)> {
        self.sequence.interval(&self.differences)
    }

    /// Is the question answered, an effect smaller than `zone` being none?
    pub(super) fn is_answered(&self, zone: f64) -> bool {
        let Some((low, high)) = self.interval() else {
            return false;
        };
        let is_none = low > -zone && high < zone;
        let is_one = low > 0.0 || high < 0.0;
        let is_known = (high - low) / 2.0 <= MAX_HALF_WIDTH_SHARE * self.estimate().abs();
        is_none || (is_one && is_known)
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

    pub(super) fn sentence(&self, name: &str, zone: f64) -> String {
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

    pub(super) fn record(&self, arm: &Candidate, zone: f64) -> ConfirmationRecord {
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
            sentence: self.sentence(&arm.title(), zone),
        }
    }
}
