//! Digits of π by the arithmetic-geometric mean, with products by Fourier transforms, as `SuperPi`
//! computes them.
//!
//! The squares of both means are carried along (Schönhage's form of Gauss's and Legendre's
//! formula), which leaves a root and a square per iteration; each doubles the digits. `--size
//! 1048576` is the run known as "1M". Every product is verified, and known digits if the size
//! reaches them. Chudnovsky's series would be faster, but would not be the same test.

mod fixed;
mod product;

use super::fold_digest;
use crate::work::{Group, Job, Kernel, KernelError, Setup, Size, Worker, Wrong};
use fixed::{Goal, Scratch, add, distance, divide, leading_zeros, scale, subtract};
use product::{LIMB_DIGITS, Multiplier, Transforms};

pub(in crate::work) const PI: Kernel = Kernel {
    name: "pi",
    group: Group::Float,
    about: "digits of pi by Gauss and Legendre, products by transforms",
    source: "Salamin 1976 and Brent 1976, Schönhage's form; 2^20 digits as in SuperPi",
    operation: "digits",
    size: Some(Size {
        of: "digits after the point",
        default: 16_000,
        least: 100,
        // Beyond, rounding errors of products approach the limit.
        most: 1 << 25,
    }),
    has_versions: true,
    footprint_bytes: |size, threads| {
        let limbs = count_limbs(size);
        let (all, longest) = Transforms::points(limbs);
        // Twists and the transforms' own tables; then numbers, points and
        // scratch of each thread.
        let shared = 16 * 3 * all + (1 << 20);
        let own = 4 * NUMBERS * limbs + 16 * 4 * longest;
        (shared + threads.saturating_mul(own)) as u64
    },
    prepare: |setup: &Setup| {
        Ok(Box::new(Pi {
            digits: setup.size,
            transforms: Transforms::new(setup, count_limbs(setup.size)),
        }))
    },
};

/// Limbs that errors may reach: of truncation, and of the factor 2^k.
const SPARE: u64 = 5;
/// Rows of limbs per thread.
const NUMBERS: usize = 8;

/// The integer part, the digits, and spare limbs.
fn count_limbs(digits: u64) -> usize {
    usize::try_from(1 + digits.div_ceil(LIMB_DIGITS) + SPARE).unwrap_or(usize::MAX)
}

/// The first digits, in limbs.
const FIRST: [u32; 9] = [3, 1415, 9265, 3589, 7932, 3846, 2643, 3832, 7950];

/// The eight digits ending at this one, from Chudnovsky's series.
const KNOWN: [(u64, [u32; 2]); 6] = [
    (100, [2117, 679]),
    (1000, [6420, 1989]),
    (10_000, [5637, 5678]),
    (100_000, [9362, 4646]),
    (1_000_000, [7945, 8151]),
    (1_048_576, [3742, 9204]),
];

struct Pi {
    digits: u64,
    transforms: Transforms,
}

impl Job for Pi {
    fn operations_per_unit(&self) -> u64 {
        self.digits
    }

    fn working_set_bytes(&self) -> u64 {
        let limbs = count_limbs(self.digits);
        let (_, longest) = Transforms::points(limbs);
        (4 * NUMBERS * limbs + 16 * 3 * longest) as u64
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        Ok(Box::new(self.create_variables()))
    }
}

impl Pi {
    fn create_variables(&self) -> Variables<'_> {
        let limbs = count_limbs(self.digits);
        let row = || vec![1; limbs];
        Variables {
            digits: self.digits,
            multiplier: self.transforms.multiplier(),
            scratch: Scratch::new(limbs),
            mean: row(),
            square: row(),
            geometric_square: row(),
            rest: row(),
            inverse: row(),
            other: row(),
        }
    }
}

/// The variables of the formula.
struct Variables<'a> {
    digits: u64,
    multiplier: Multiplier<'a>,
    scratch: Scratch,
    /// The arithmetic mean.
    mean: Vec<u32>,
    /// Its square.
    square: Vec<u32>,
    /// The square of the geometric mean.
    geometric_square: Vec<u32>,
    /// 1/4 − Σ 2^k (square − geometric square).
    rest: Vec<u32>,
    inverse: Vec<u32>,
    other: Vec<u32>,
}

impl Worker for Variables<'_> {
    fn run_unit(&mut self, _unit: u64) -> Result<u64, Wrong> {
        self.start();
        // Each iteration doubles the digits: this many are never needed.
        for power in 0..u64::BITS {
            if self.iterate(power)? {
                self.divide()?;
                return self.verify_digest();
            }
        }
        Err("the two means do not meet")
    }
}

impl Variables<'_> {
    fn start(&mut self) {
        let parts = [
            (&mut self.mean, [1, 0]),
            (&mut self.square, [1, 0]),
            (&mut self.geometric_square, [0, 5000]),
            (&mut self.rest, [0, 2500]),
        ];
        for (number, first) in parts {
            number.fill(0);
            number[..2].copy_from_slice(&first);
        }
    }

    /// One step of the means; returns whether they are close enough to each other.
    fn iterate(&mut self, power: u32) -> Result<bool, Wrong> {
        let Self {
            multiplier,
            scratch,
            mean,
            square,
            geometric_square,
            rest,
            inverse,
            other,
            ..
        } = self;
        scratch.solve(Goal::InverseRoot, geometric_square, inverse, multiplier)?;
        multiplier.multiply(geometric_square, inverse, other)?;
        add(mean, other);
        divide(mean, 2);
        // The new geometric square is twice the excess of the new square over a quarter of both old
        // ones.
        add(square, geometric_square);
        divide(square, 4);
        multiplier.square_into(mean, other)?;
        geometric_square.copy_from_slice(other);
        subtract(geometric_square, square);
        scale(geometric_square, 2);
        square.copy_from_slice(other);
        // Once they are equal, their remaining difference is the truncation error, of either sign.
        let is_larger = distance(other, geometric_square);
        let zeros = leading_zeros(other);
        scale(other, 1 << power);
        if is_larger {
            add(rest, other);
        } else {
            subtract(rest, other);
        }
        Ok(2 * zeros > mean.len() + 4)
    }

    /// Half the sum of both squares over the rest, into `mean`.
    fn divide(&mut self) -> Result<(), Wrong> {
        add(&mut self.square, &self.geometric_square);
        divide(&mut self.square, 2);
        let (rest, inverse) = (&self.rest, &mut self.inverse);
        self.scratch
            .solve(Goal::Inverse, rest, inverse, &mut self.multiplier)?;
        self.multiplier
            .multiply(&self.square, &self.inverse, &mut self.mean)
    }

    /// A digest of the requested digits, if they are those of π.
    fn verify_digest(&self) -> Result<u64, Wrong> {
        if self.mean[..FIRST.len()] != FIRST {
            return Err("pi begins 3.14159265358979323846264338327950");
        }
        for (digit, known) in KNOWN.into_iter().filter(|known| known.0 <= self.digits) {
            let last = usize::try_from(digit / LIMB_DIGITS).unwrap_or(usize::MAX);
            if self.mean[last - 1..=last] != known {
                return Err("known digits of pi are others");
            }
        }
        let whole = usize::try_from(self.digits / LIMB_DIGITS).unwrap_or(usize::MAX);
        let left_over = usize::try_from(self.digits % LIMB_DIGITS).unwrap_or(0);
        let partial = self.mean[whole + 1] / [10_000, 1000, 100, 10][left_over];
        let digest = self.mean[..=whole]
            .iter()
            .fold(0, |digest, &limb| fold_digest(digest, u64::from(limb)));
        Ok(fold_digest(digest, u64::from(partial)))
    }
}

#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers of tests"
)]
mod tests;
