//! Amounts: samples, and the CPU time that they represent.
//!
//! Every figure of a profile is an amount: a share alone shows neither its size nor its error.

/// Samples, and the CPU time they represent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number of samples.
    pub samples: u64,
    /// CPU time, ns.
    pub cpu_ns: u64,
}

impl Amount {
    /// CPU time, s.
    #[must_use]
    pub const fn cpu_s(self) -> f64 {
        self.cpu_ns as f64 * 1e-9
    }

    /// Standard error of the CPU time by counting n samples, s: √n by the Poisson law. (The binomial
    /// error of a share of a known total is a little smaller.) Variation of the program between runs
    /// is not included.
    #[must_use]
    pub fn error_s(self) -> f64 {
        if self.samples == 0 {
            return 0.0;
        }
        self.cpu_s() / (self.samples as f64).sqrt()
    }

    /// Its share of a total; `None` if the total is 0.
    #[must_use]
    pub fn share_of(self, total: Self) -> Option<f64> {
        (total.cpu_ns > 0).then(|| self.cpu_ns as f64 / total.cpu_ns as f64)
    }
}

impl std::ops::AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        let mut sum = Self::default();
        amounts.for_each(|amount| sum += amount);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_samples_are_known_to_a_tenth() {
        let amount = Amount {
            samples: 100,
            cpu_ns: 100_000_000,
        };
        assert!((amount.error_s() - 0.01).abs() < 1e-12);
        assert!(Amount::default().error_s().abs() < 1e-12);
        assert_eq!(amount.share_of(Amount::default()), None);
    }
}
