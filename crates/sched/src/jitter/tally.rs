//! Sums the gaps of a CPU.

use std::collections::BTreeMap;

use super::{Cause, ExplainedGap};
use crate::analysis::histogram::Histogram;

/// The gaps and the time of a cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Gaps in which it had the largest part.
    pub gaps: u64,
    /// Its time in all gaps, ns.
    pub time_ns: u64,
    /// Its largest part of one gap, ns.
    pub longest_ns: u64,
}

impl Amount {
    /// The sum of both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            gaps: self.gaps + other.gaps,
            time_ns: self.time_ns.saturating_add(other.time_ns),
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }
}

/// Limits the distinct causes; further threads are summed as one cause.
const MAX_CAUSES: usize = 4096;

/// The gaps of a CPU, in bounded memory.
#[derive(Debug, Default)]
pub struct Tally {
    lengths: Histogram,
    time_ns: u64,
    causes: BTreeMap<Cause, Amount>,
}

impl Tally {
    /// Adds a gap.
    pub fn add(&mut self, explained: &ExplainedGap) {
        let length_ns = explained.gap.length_ns();
        self.lengths.add(length_ns);
        self.time_ns = self.time_ns.saturating_add(length_ns);
        for (index, (cause, part_ns)) in explained.parts.iter().enumerate() {
            let part = Amount {
                gaps: u64::from(index == 0),
                time_ns: *part_ns,
                longest_ns: *part_ns,
            };
            if let Some(amount) = self.causes.get_mut(cause) {
                *amount = amount.and(&part);
                continue;
            }
            let is_full = self.causes.len() >= MAX_CAUSES;
            let cause = match cause {
                Cause::Thread(_) if is_full => Cause::Thread("(others)".into()),
                cause => cause.clone(),
            };
            let amount = self.causes.entry(cause).or_default();
            *amount = amount.and(&part);
        }
    }

    /// Number of gaps.
    #[must_use]
    pub const fn gaps(&self) -> u64 {
        self.lengths.total()
    }

    /// Their time, ns.
    #[must_use]
    pub const fn time_ns(&self) -> u64 {
        self.time_ns
    }

    /// The longest, ns.
    #[must_use]
    pub const fn longest_ns(&self) -> u64 {
        self.lengths.longest()
    }

    /// The length that this share of the gaps does not exceed, ns; `None` if there are none.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        self.lengths.quantile(share)
    }

    /// Their causes.
    #[must_use]
    pub const fn causes(&self) -> &BTreeMap<Cause, Amount> {
        &self.causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::Gap;

    fn gap(cause: Cause, length_ns: u64) -> ExplainedGap {
        ExplainedGap {
            gap: Gap {
                from_ns: 0,
                to_ns: length_ns,
            },
            parts: vec![(cause, length_ns)],
        }
    }

    #[test]
    fn gaps_are_summed_by_cause() {
        let mut tally = Tally::default();
        for length_ns in [5_000, 7_000, 6_000] {
            tally.add(&gap(Cause::Nmi, length_ns));
        }
        tally.add(&gap(Cause::Quota, 90_000));
        assert_eq!((tally.gaps(), tally.time_ns()), (4, 108_000));
        assert_eq!(tally.longest_ns(), 90_000);
        let nmi = tally.causes()[&Cause::Nmi];
        assert_eq!((nmi.gaps, nmi.time_ns, nmi.longest_ns), (3, 18_000, 7_000));
    }

    #[test]
    fn distinct_causes_are_limited() {
        let mut tally = Tally::default();
        for number in 0..10_000u64 {
            let name = format!("worker-{number}").into();
            tally.add(&gap(Cause::Thread(name), 5_000));
        }
        assert_eq!(tally.causes().len(), MAX_CAUSES + 1);
        let sum: u64 = tally.causes().values().map(|amount| amount.gaps).sum();
        assert_eq!(sum, 10_000);
    }
}
