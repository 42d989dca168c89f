//! Fast Fourier transforms: strides over an array, additions and products.
//!
//! Each round correlates a sequence of small complex integers with itself: transform, squared
//! magnitudes, inverse transform. The result consists of integers again, so that it can be verified
//! exactly (energy and some lags are summed directly) and is the same whatever instructions the
//! transform uses. Transforms are rustfft's; `--isa` chooses its planner.

use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlannerAvx, FftPlannerNeon, FftPlannerScalar, FftPlannerSse};

use super::fold_digest;
use crate::work::isa::Version;
use crate::work::{Group, Job, Kernel, KernelError, Random, Setup, Size, Worker, Wrong};

pub(in crate::work) const FFT: Kernel = Kernel {
    name: "fft",
    group: Group::Float,
    about: "complex transforms in double precision: strides and arithmetic",
    source: "Cooley and Tukey 1965, as rustfft does it; 5 n log2 n operations, as benchFFT counts",
    operation: "floating-point operations",
    size: Some(Size {
        of: "points of a transform",
        default: 1 << 15,
        least: 16,
        most: 1 << 26,
    }),
    has_versions: true,
    // Sequence, input copy and scratch of each thread; tables of all. Lengths with large prime
    // factors need transforms of up to four times the length.
    footprint_bytes: |size, threads| {
        let (own, shared) = if has_small_factors(size) {
            (36, 48)
        } else {
            (196, 340)
        };
        (threads as u64 * own + shared) * size + (1 << 16)
    },
    prepare: |setup: &Setup| Ok(Box::new(Transforms::new(setup))),
};

/// Whether it has no prime factors but 2, 3, 5 and 7.
fn has_small_factors(size: u64) -> bool {
    let mut rest = size;
    for factor in [2, 3, 5, 7] {
        while rest > 1 && rest.is_multiple_of(factor) {
            rest /= factor;
        }
    }
    rest == 1
}

/// Plans transforms for an instruction set.
pub(super) enum Planner {
    /// Without vector instructions.
    Scalar(FftPlannerScalar<f64>),
    /// x86-64-v2 and later.
    Sse(FftPlannerSse<f64>),
    /// x86-64-v3 and later.
    Avx(FftPlannerAvx<f64>),
    /// Arm.
    Neon(FftPlannerNeon<f64>),
}

impl Planner {
    /// The one for the version; `native` on Arm uses Neon.
    pub(super) fn new(setup: &Setup) -> Self {
        let version = setup.isa.version();
        let is_native = setup.isa == crate::work::Isa::Native;
        if version >= Version::V3
            && let Ok(planner) = FftPlannerAvx::new()
        {
            return Self::Avx(planner);
        }
        if version >= Version::V2
            && let Ok(planner) = FftPlannerSse::new()
        {
            return Self::Sse(planner);
        }
        if is_native && let Ok(planner) = FftPlannerNeon::new() {
            return Self::Neon(planner);
        }
        Self::Scalar(FftPlannerScalar::new())
    }

    /// Plans the forward and the inverse transform of this length.
    pub(super) fn plan_both(&mut self, length: usize) -> [Arc<dyn Fft<f64>>; 2] {
        [FftDirection::Forward, FftDirection::Inverse].map(|direction| match self {
            Self::Scalar(planner) => planner.plan_fft(length, direction),
            Self::Sse(planner) => planner.plan_fft(length, direction),
            Self::Avx(planner) => planner.plan_fft(length, direction),
            Self::Neon(planner) => planner.plan_fft(length, direction),
        })
    }
}

/// Operations of a transform, counted as in benchFFT.
fn count_operations(points: u64) -> u64 {
    5 * points * u64::from(points.ilog2())
}

/// Operations of a unit of default size: about 10 ms.
const OPERATIONS: u64 = 60_000_000;

struct Transforms {
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
    points: usize,
    /// Sequences of a unit.
    rounds: u64,
}

impl Transforms {
    fn new(setup: &Setup) -> Self {
        let points = usize::try_from(setup.size).unwrap_or(usize::MAX);
        let [forward, inverse] = Planner::new(setup).plan_both(points);
        Self {
            forward,
            inverse,
            points,
            rounds: OPERATIONS.div_ceil(2 * count_operations(setup.size)),
        }
    }
}

impl Job for Transforms {
    fn operations_per_unit(&self) -> u64 {
        2 * self.rounds * count_operations(self.points as u64)
    }

    fn working_set_bytes(&self) -> u64 {
        32 * self.points as u64
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        let forward = self.forward.get_inplace_scratch_len();
        let inverse = self.inverse.get_inplace_scratch_len();
        Ok(Box::new(Correlator {
            job: self,
            given: vec![[1; 2]; self.points],
            sequence: vec![Complex::new(1.0, 1.0); self.points],
            scratch: vec![Complex::new(1.0, 1.0); forward.max(inverse)],
        }))
    }
}

struct Correlator<'a> {
    job: &'a Transforms,
    given: Vec<[i8; 2]>,
    sequence: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl Worker for Correlator<'_> {
    fn run_unit(&mut self, unit: u64) -> Result<u64, Wrong> {
        let mut random = Random::for_unit(unit);
        let mut digest = 0;
        for _ in 0..self.job.rounds {
            self.fill(&mut random);
            self.correlate();
            digest = fold_digest(digest, self.verify(&mut random)?);
        }
        Ok(digest)
    }
}

impl Correlator<'_> {
    /// Integers from −8 to 7, eight points from each random number.
    fn fill(&mut self, random: &mut Random) {
        let points = self.given.chunks_mut(8).zip(self.sequence.chunks_mut(8));
        for (given, sequence) in points {
            let mut bits = random.next();
            for (given, point) in given.iter_mut().zip(sequence) {
                *given = [(bits & 15) as i8 - 8, (bits >> 4 & 15) as i8 - 8];
                *point = Complex::new(f64::from(given[0]), f64::from(given[1]));
                bits >>= 8;
            }
        }
    }

    fn correlate(&mut self) {
        let Self {
            sequence, scratch, ..
        } = self;
        self.job.forward.process_with_scratch(sequence, scratch);
        for point in sequence.iter_mut() {
            *point = Complex::new(point.norm_sqr(), 0.0);
        }
        self.job.inverse.process_with_scratch(sequence, scratch);
    }

    /// Rounds the correlation to integers and compares some of it with direct sums; returns a
    /// digest of all of it.
    fn verify(&self, random: &mut Random) -> Result<u64, Wrong> {
        let (digest, error) = digest_rounded(&self.sequence);
        if error > 0.25 {
            return Err("a correlation of integers is not an integer");
        }
        let lag = random.next() % self.sequence.len() as u64;
        for lag in [0, usize::try_from(lag).unwrap_or(0)] {
            let scale = self.sequence.len() as f64;
            let found = self.sequence[lag] / scale;
            let (re, im) = self.correlate_directly(lag);
            if !is_near(found.re, re) || !is_near(found.im, im) {
                return Err("a correlation differs from the direct sum");
            }
        }
        Ok(digest)
    }

    /// The correlation at a lag, by its definition.
    fn correlate_directly(&self, lag: usize) -> (i64, i64) {
        let (wrapped, rest) = self.given.split_at(lag);
        let later = rest.iter().chain(wrapped);
        let pairs = later.zip(&self.given);
        pairs.fold((0, 0), |(re, im), (later, point)| {
            let [a, b] = later.map(i64::from);
            let [c, d] = point.map(i64::from);
            (re + a * c + b * d, im + b * c - a * d)
        })
    }
}

/// Whether it rounds to this integer; NaN does not.
fn is_near(found: f64, integer: i64) -> bool {
    (found - integer as f64).abs() < 0.25
}

/// A digest of the sequence over its length, rounded to integers, and the largest distance from them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "integers far below 2^52, of which only the bits count"
)]
fn digest_rounded(sequence: &[Complex<f64>]) -> (u64, f64) {
    // Adding and subtracting 1.5 × 2^52 rounds to integers.
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    let scale = 1.0 / sequence.len() as f64;
    let (mut digest, mut worst) = (0u64, 0.0f64);
    for (place, point) in (0u64..).zip(sequence) {
        let (re, im) = (point.re * scale, point.im * scale);
        let whole = ((re + ROUNDER) - ROUNDER, (im + ROUNDER) - ROUNDER);
        let off = (re - whole.0).abs().max((im - whole.1).abs());
        worst = if off > worst { off } else { worst };
        let value = (whole.0 as i64 as u64) ^ (whole.1 as i64 as u64).rotate_left(32);
        digest = digest.wrapping_add(value.wrapping_mul(2 * place + 1));
    }
    (digest, worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Isa;

    fn job(size: u64, isa: Isa) -> Transforms {
        Transforms::new(&Setup {
            size,
            threads: 1,
            isa,
            folder: std::path::PathBuf::new(),
        })
    }

    /// Lengths with all kinds of factors, as possible with `--size`.
    #[test]
    fn every_planner_and_length_gives_the_correlation() {
        for size in [16, 17, 64, 90, 1000, 1009, 1 << 12] {
            let mut digests = Vec::new();
            for isa in Isa::list_supported() {
                let mut job = job(size, isa);
                job.rounds = 2;
                digests.push(job.worker(0).unwrap().run_unit(3));
            }
            assert!(digests[0].is_ok(), "{size}");
            assert!(digests.windows(2).all(|pair| pair[0] == pair[1]), "{size}");
        }
    }

    #[test]
    fn a_wrong_point_is_noticed() {
        let job = job(64, Isa::V1);
        let mut correlator = Correlator {
            job: &job,
            given: vec![[1; 2]; 64],
            sequence: vec![Complex::new(1.0, 1.0); 64],
            scratch: vec![Complex::new(0.0, 0.0); 256],
        };
        correlator.fill(&mut Random::for_unit(1));
        correlator.correlate();
        assert!(correlator.verify(&mut Random::for_unit(2)).is_ok());
        correlator.sequence[5].im += 0.4 * 64.0;
        assert!(correlator.verify(&mut Random::for_unit(2)).is_err());
        correlator.sequence[5].im -= 0.4 * 64.0;
        correlator.given[7][0] ^= 1;
        assert!(correlator.verify(&mut Random::for_unit(2)).is_err());
    }
}
