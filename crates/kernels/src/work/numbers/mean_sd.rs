//! Mean and standard deviation of random numbers: independent multiplications.
//!
//! The i-th number of a unit is the upper 24 bits of a hash of i (`SplitMix64`, which counts), so
//! that several can be computed at once. Sums are of integers and exact: every instruction set finds
//! the same bits. Mean and deviation are compared with theory. It keeps no array, so memory is not
//! measured.

use super::fold_digest;
use crate::work::isa::{Version, versions};
use crate::work::{Group, Job, Kernel, KernelError, Random, Setup, Size, Worker, Wrong, mix_bits};

pub(in crate::work) const MEAN_SD: Kernel = Kernel {
    name: "mean-sd",
    group: Group::Integer,
    about: "random numbers, their mean and standard deviation",
    source: "SplitMix64 of Steele, Lea and Flood 2014; moments of the discrete uniform distribution",
    operation: "numbers",
    size: Some(Size {
        of: "numbers of a unit",
        default: 40_000_000,
        least: 1000,
        most: 1 << 38,
    }),
    has_versions: true,
    footprint_bytes: |_, _| 0,
    prepare: |setup: &Setup| {
        Ok(Box::new(MeanSd {
            version: setup.isa.version(),
            numbers: setup.size,
        }))
    },
};

/// Bits of a number.
const BITS: u32 = 24;
/// Values that a number takes.
const VALUES: f64 = (1u64 << BITS) as f64;
/// Numbers whose squares fit 64 bits together.
const BLOCK: u64 = 1 << 15;
/// Allowed deviation of a moment, in standard errors: chance reaches it once in 4e11.
const ERRORS: f64 = 7.0;

struct MeanSd {
    version: Version,
    numbers: u64,
}

impl Job for MeanSd {
    fn operations_per_unit(&self) -> u64 {
        self.numbers
    }

    fn working_set_bytes(&self) -> u64 {
        1024
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        Ok(Box::new(Self { ..*self }))
    }
}

impl Worker for MeanSd {
    fn run_unit(&mut self, unit: u64) -> Result<u64, Wrong> {
        let seed = Random::for_unit(unit).next();
        let moments = self.moments(seed);
        moments.check()?;
        let digest = fold_digest(0, moments.mean().to_bits());
        Ok(fold_digest(digest, moments.variance().sqrt().to_bits()))
    }
}

impl MeanSd {
    fn moments(&self, seed: u64) -> Moments {
        let mut moments = Moments {
            numbers: self.numbers,
            sum: 0,
            squares: 0,
        };
        let mut first = 0;
        while first < self.numbers {
            let count = BLOCK.min(self.numbers - first);
            let (sum, squares) = sum_numbers(self.version, seed, first, count);
            moments.sum += u128::from(sum);
            moments.squares += u128::from(squares);
            first += count;
        }
        moments
    }
}

/// Sums of random numbers.
struct Moments {
    numbers: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    fn mean(&self) -> f64 {
        self.sum as f64 / self.numbers as f64
    }

    /// With n in the denominator, in integers until the end.
    fn variance(&self) -> f64 {
        let numbers = u128::from(self.numbers);
        let spread = numbers * self.squares - self.sum * self.sum;
        spread as f64 / (self.numbers as f64 * self.numbers as f64)
    }

    fn check(&self) -> Result<(), Wrong> {
        let root = (self.numbers as f64).sqrt();
        let variance = (VALUES * VALUES - 1.0) / 12.0;
        let mean_error = (self.mean() - (VALUES - 1.0) / 2.0) / (variance.sqrt() / root);
        // The fourth moment of the uniform distribution is 1.8 times the
        // square of its variance.
        let variance_error = (self.variance() / variance - 1.0) / (0.8f64.sqrt() / root);
        if mean_error.abs() > ERRORS {
            return Err("the mean is not that of random numbers");
        }
        if variance_error.abs() > ERRORS {
            return Err("the standard deviation is not that of random numbers");
        }
        Ok(())
    }
}

versions! { fn sum_numbers(seed: u64, first: u64, count: u64) -> (u64, u64) = sums_body; }

#[inline(always)]
fn sums_body(seed: u64, first: u64, count: u64) -> (u64, u64) {
    let (mut sum, mut squares) = (0, 0);
    for index in first..first + count {
        let number = hash(seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        sum += number;
        squares += number * number;
    }
    (sum, squares)
}

#[inline(always)]
const fn hash(state: u64) -> u64 {
    mix_bits(state) >> (u64::BITS - BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(numbers: &[u64]) -> Moments {
        let wide = numbers.iter().map(|&number| u128::from(number));
        Moments {
            numbers: numbers.len() as u64,
            sum: wide.clone().sum(),
            squares: wide.map(|number| number * number).sum(),
        }
    }

    #[test]
    fn blocks_add_up_to_the_plain_sums() {
        let numbers = 3 * BLOCK + 17;
        let job = MeanSd {
            version: Version::V1,
            numbers,
        };
        let plain: Vec<u64> = (0..numbers)
            .map(|i| hash(5u64.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))))
            .collect();
        let (found, expected) = (job.moments(5), moments(&plain));
        assert_eq!((found.sum, found.squares), (expected.sum, expected.squares));
        assert!(found.check().is_ok());
    }

    #[test]
    fn numbers_that_are_not_random_are_noticed() {
        let most = (1 << BITS) - 1;
        let middle = vec![most / 2; 10_000];
        assert!(moments(&middle).check().unwrap_err().contains("deviation"));
        assert!(
            moments(&vec![most; 10_000])
                .check()
                .unwrap_err()
                .contains("mean")
        );
        let even: Vec<u64> = (0..10_000).map(|i| i * most / 9999).collect();
        assert!(moments(&even).check().is_ok());
        let exact = moments(&[1, 2, 3, 4]);
        assert!((exact.mean() - 2.5).abs() < 1e-15 && (exact.variance() - 1.25).abs() < 1e-15);
    }
}
