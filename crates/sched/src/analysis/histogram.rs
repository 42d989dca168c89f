//! Counts values in classes of constant relative width: gives quantiles without keeping the values.
/// Classes per doubling: a value differs from the middle of its class by at most 1.6 %.
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
        self.counts[find_class(value)] += 1;
        self.total += 1;
        self.longest = self.longest.max(value);
    }

    /// Adds a value that may still grow: it only raises the longest value.
    pub(crate) fn add_open(&mut self, value: u64) {
        self.longest = self.longest.max(value);
    }

    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    pub(crate) const fn longest(&self) -> u64 {
        self.longest
    }

    /// The value that this share of the values does not exceed, as the middle of its class; `None`
    /// without values.
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
        Some(find_middle(class).min(self.longest))
    }
}

fn find_class(value: u64) -> usize {
    let class = if value < PER_DOUBLING {
        value
    } else {
        let shift = value.ilog2() - BITS;
        u64::from(shift + 1) * PER_DOUBLING + ((value >> shift) - PER_DOUBLING)
    };
    usize::try_from(class).unwrap_or(CLASSES - 1)
}

fn find_middle(class: usize) -> u64 {
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
    fn quantiles_are_values_of_the_histogram() {
        check(&[7], 0.5, 7);
        check(&[1, 2, 3, 4, 5], 0.5, 3);
        check(&[1, 2, 3, 4, 30], 0.99, 30);
        assert_eq!(Histogram::new().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn the_middle_of_a_class_is_near_its_values(value in any::<u64>()) {
            let middle = find_middle(find_class(value));
            let error = middle.abs_diff(value) as f64;
            prop_assert!(error <= 0.016 * value as f64 + 0.5, "{value} {middle}");
        }
    }
}
