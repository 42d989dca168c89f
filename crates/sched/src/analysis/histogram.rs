//! Waits by length, in classes of constant relative width: quantiles without
//! keeping the waits.

/// Classes per doubling: each is at most 1/32 wide, its middle within 1.6 %.
const PER_DOUBLING: u64 = 1 << BITS;
const BITS: u32 = 5;
const CLASSES: usize = (64 - BITS as usize + 1) << BITS;

#[derive(Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
    longest: u64,
}

impl Histogram {
    pub(crate) const fn new() -> Self {
        Self {
            counts: Vec::new(),
            total: 0,
            longest: 0,
        }
    }

    pub(crate) fn add(&mut self, value: u64) {
        if self.counts.is_empty() {
            self.counts.resize(CLASSES, 0);
        }
        self.counts[class_of(value)] += 1;
        self.total += 1;
        self.longest = self.longest.max(value);
    }

    /// Adds a value that may still grow: it counts only if it is the longest already.
    pub(crate) fn add_open(&mut self, value: u64) {
        self.longest = self.longest.max(value);
    }

    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    pub(crate) const fn longest(&self) -> u64 {
        self.longest
    }

    /// The middle of the smallest class that this share of the values does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Option<u64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut sum = 0;
        let class = self.counts.iter().position(|&count| {
            sum += count;
            sum >= rank
        })?;
        Some(middle_of(class).min(self.longest))
    }
}

fn class_of(value: u64) -> usize {
    let class = if value < PER_DOUBLING {
        value
    } else {
        let shift = value.ilog2() - BITS;
        u64::from(shift + 1) * PER_DOUBLING + ((value >> shift) - PER_DOUBLING)
    };
    usize::try_from(class).unwrap_or(CLASSES - 1)
}

fn middle_of(class: usize) -> u64 {
    let class = class as u64;
    if class < PER_DOUBLING {
        return class;
    }
    let shift = class / PER_DOUBLING - 1;
    let low = (PER_DOUBLING + class % PER_DOUBLING) << shift;
    low + ((1u64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(values: &[u64], share: f64, expected: u64) {
        let mut histogram = Histogram::new();
        for &value in values {
            histogram.add(value);
        }
        assert_eq!(histogram.quantile(share), Some(expected));
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        check(&[7], 0.5, 7);
        check(&[1, 2, 3, 4, 5], 0.5, 3);
        check(&[1, 2, 3, 4, 30], 0.99, 30);
        assert_eq!(Histogram::new().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn a_class_is_near_its_values(value in any::<u64>()) {
            let middle = middle_of(class_of(value));
            let error = middle.abs_diff(value) as f64;
            prop_assert!(error <= 0.016 * value as f64 + 0.5, "{value} {middle}");
        }
    }
}
