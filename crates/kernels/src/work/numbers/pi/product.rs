//! Products of long decimal numbers by Fourier transforms.
//!
//! A number is a row of limbs of four decimal digits, the most significant first. Two rows are multiplied as
//! polynomials: with half of each row as imaginary part and the transform taken at the roots of zᴹ
//! = i, M complex points carry 2M real coefficients (Crandall and Fagin's right-angle convolution,
//! 1994). Limbs are balanced around zero first, which keeps rounding errors small; the distance of
//! coefficients from integers is checked, and every product is verified by casting out 9999s.

use std::sync::Arc;

use rustfft::Fft;
use rustfft::num_complex::Complex;

use super::super::fft::Planner;
use crate::work::{Setup, Wrong};

/// Digits of a limb.
pub(super) const LIMB_DIGITS: u64 = 4;
/// Limbs are below this.
pub(super) const BASE: u32 = 10_000;

type Points = Vec<Complex<f64>>;

/// A transform of one length, with the powers of exp(iπ/2M).
struct Transform {
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
    twist: Points,
}

/// Transforms for all lengths that products up to some length need, shared by
/// all threads.
pub(super) struct Transforms(Vec<Transform>);

/// Lengths M: 1, 9/8 and 3/2 of each power of two from 8 on, so that none is half as long again as
/// needed.
fn list_lengths(limbs: usize) -> impl Iterator<Item = usize> {
    let octaves = (3..usize::BITS - 4).map(|power| 1usize << power);
    let all = octaves.flat_map(|octave| [octave, octave / 8 * 9, octave / 2 * 3]);
    // Up to the first that holds a product of two full rows.
    let mut is_enough = false;
    all.take_while(move |&length| {
        let was_enough = is_enough;
        is_enough = 2 * length >= 2 * limbs;
        !was_enough
    })
}

impl Transforms {
    /// For numbers of this many limbs.
    pub(super) fn new(setup: &Setup, limbs: usize) -> Self {
        let mut planner = Planner::new(setup);
        let transforms = list_lengths(limbs).map(|length| {
            let [forward, inverse] = planner.plan_both(length);
            let angle = std::f64::consts::FRAC_PI_2 / length as f64;
            let twist = (0..length).map(|at| Complex::cis(angle * at as f64));
            Transform {
                forward,
                inverse,
                twist: twist.collect(),
            }
        });
        Self(transforms.collect())
    }

    /// Points of all transforms, and of the longest.
    pub(super) fn points(limbs: usize) -> (usize, usize) {
        (
            list_lengths(limbs).sum(),
            list_lengths(limbs).max().unwrap_or(0),
        )
    }

    /// Buffers of a thread.
    pub(super) fn multiplier(&self) -> Multiplier<'_> {
        // Not zeros, whose pages would be mapped when they are first written.
        let touched = |length: usize| vec![Complex::new(1.0, 1.0); length];
        let longest = self.0.last().map_or(0, |last| last.twist.len());
        let scratch = self.0.iter().map(|transform| {
            let forward = transform.forward.get_inplace_scratch_len();
            forward.max(transform.inverse.get_inplace_scratch_len())
        });
        Multiplier {
            transforms: &self.0,
            left: touched(longest),
            right: touched(longest),
            scratch: touched(scratch.max().unwrap_or(0)),
            worst_error: 0.0,
        }
    }
}

/// Multiplies, with its own buffers.
pub(super) struct Multiplier<'a> {
    transforms: &'a [Transform],
    left: Points,
    right: Points,
    scratch: Points,
    /// The largest distance of a coefficient from an integer.
    pub(super) worst_error: f64,
}

impl Multiplier<'_> {
    /// The leading limbs of `left` × `right`, as many as `product` has room
    /// for.
    pub(super) fn multiply(
        &mut self,
        left: &[u32],
        right: &[u32],
        product: &mut [u32],
    ) -> Result<(), Wrong> {
        let transform = find_transform(self.transforms, left.len() + right.len() - 1)?;
        let points = transform.twist.len();
        load(left, &transform.twist, &mut self.left[..points]);
        load(right, &transform.twist, &mut self.right[..points]);
        let forward = &transform.forward;
        forward.process_with_scratch(&mut self.left[..points], &mut self.scratch);
        forward.process_with_scratch(&mut self.right[..points], &mut self.scratch);
        for (left, right) in self.left[..points].iter_mut().zip(&self.right) {
            *left *= right;
        }
        let rest = cast_out_nines(left) * cast_out_nines(right) % NINES;
        self.finish(transform, left.len() + right.len() - 1, rest, product)
    }

    /// The leading limbs of the square of `number`.
    pub(super) fn square_into(&mut self, number: &[u32], product: &mut [u32]) -> Result<(), Wrong> {
        let transform = find_transform(self.transforms, 2 * number.len() - 1)?;
        let points = transform.twist.len();
        load(number, &transform.twist, &mut self.left[..points]);
        let forward = &transform.forward;
        forward.process_with_scratch(&mut self.left[..points], &mut self.scratch);
        for point in &mut self.left[..points] {
            *point *= *point;
        }
        let rest = cast_out_nines(number) * cast_out_nines(number) % NINES;
        self.finish(transform, 2 * number.len() - 1, rest, product)
    }

    /// Transforms back, carries and verifies.
    fn finish(
        &mut self,
        transform: &Transform,
        coefficients: usize,
        rest: u64,
        product: &mut [u32],
    ) -> Result<(), Wrong> {
        let points = transform.twist.len();
        let left = &mut self.left[..points];
        let inverse = &transform.inverse;
        inverse.process_with_scratch(left, &mut self.scratch);
        let error = unload(left, &transform.twist);
        self.worst_error = self.worst_error.max(error);
        if error > LARGEST_ERROR {
            return Err("a product of long numbers has too large a rounding error");
        }
        if carry(left, coefficients, product) != rest {
            return Err("a product of long numbers fails the test by 9999s");
        }
        Ok(())
    }
}

/// The shortest transform for this many coefficients.
fn find_transform(transforms: &[Transform], coefficients: usize) -> Result<&Transform, Wrong> {
    let at = transforms.partition_point(|known| 2 * known.twist.len() < coefficients);
    transforms.get(at).ok_or("a product is too long")
}

/// The allowed distance of a coefficient from an integer: beyond a half it could round to the wrong
/// one.
const LARGEST_ERROR: f64 = 0.25;

/// Fills the points with balanced limbs, the second half as imaginary parts, and rotates each by
/// its power.
fn load(number: &[u32], twist: &[Complex<f64>], points: &mut [Complex<f64>]) {
    let half = points.len();
    let (first, second) = number.split_at(number.len().min(half));
    let mut carry = 0;
    for point in &mut points[second.len()..] {
        point.im = 0.0;
    }
    for (point, &limb) in points.iter_mut().zip(second).rev() {
        point.im = balance_limb(limb, &mut carry);
    }
    for point in &mut points[first.len()..] {
        point.re = 0.0;
    }
    for (point, &limb) in points.iter_mut().zip(first).skip(1).rev() {
        point.re = balance_limb(limb, &mut carry);
    }
    // The first limb cannot carry.
    points[0].re = f64::from(number[0] + carry);
    for (point, twist) in points.iter_mut().zip(twist) {
        *point *= twist;
    }
}

/// A limb as −5000 to 4999, with the carry for the next larger one.
#[inline]
fn balance_limb(limb: u32, carry: &mut u32) -> f64 {
    let value = limb + *carry;
    *carry = u32::from(value >= BASE / 2);
    f64::from(value) - f64::from(*carry * BASE)
}

/// Adding and taking away 1.5 × 2^52 rounds to integers.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Rotates the points back, rounds them, and returns their largest distance from integers.
fn unload(points: &mut [Complex<f64>], twist: &[Complex<f64>]) -> f64 {
    let scale = 1.0 / points.len() as f64;
    let mut worst = 0.0f64;
    for (point, twist) in points.iter_mut().zip(twist) {
        let exact = *point * twist.conj() * scale;
        point.re = (exact.re + ROUNDER) - ROUNDER;
        point.im = (exact.im + ROUNDER) - ROUNDER;
        worst = worst.max((exact.re - point.re).abs());
        worst = worst.max((exact.im - point.im).abs());
    }
    worst
}

/// Carries from the smallest coefficient to the largest, keeps the leading limbs, and returns the
/// remainder of all limbs modulo 9999.
fn carry(points: &[Complex<f64>], coefficients: usize, product: &mut [u32]) -> u64 {
    let (mut carry, mut sum) = (0i64, 0u64);
    let first = coefficients.min(points.len());
    let small = points[..coefficients - first].iter().map(|point| point.im);
    let large = points[..first].iter().map(|point| point.re);
    let values = small.rev().chain(large.rev());
    if let Some(beyond) = product.get_mut(coefficients..) {
        beyond.fill(0);
    }
    for (at, value) in (0..coefficients).rev().zip(values) {
        let limb = next_limb(value, &mut carry);
        sum += u64::from(limb);
        if let Some(place) = product.get_mut(at) {
            *place = limb;
        }
    }
    // A carry out of the first limb fails the product's test: numbers here are below ten.
    if carry == 0 { sum % NINES } else { NINES }
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "coefficients are integers below 2^52, remainders below the base"
)]
fn next_limb(coefficient: f64, carry: &mut i64) -> u32 {
    let value = coefficient as i64 + *carry;
    *carry = value.div_euclid(i64::from(BASE));
    value.rem_euclid(i64::from(BASE)) as u32
}

/// The modulus: limbs are digits to a base that is 1 modulo this.
const NINES: u64 = BASE as u64 - 1;

fn cast_out_nines(number: &[u32]) -> u64 {
    number.iter().map(|&limb| u64::from(limb)).sum::<u64>() % NINES
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]
mod tests {
    use super::*;
    use crate::work::{Isa, Random};

    fn prepare_transforms(limbs: usize, isa: Isa) -> Transforms {
        let setup = Setup {
            size: 0,
            threads: 1,
            isa,
            folder: std::path::PathBuf::new(),
        };
        Transforms::new(&setup, limbs)
    }

    /// Long multiplication.
    fn multiply_by_hand(left: &[u32], right: &[u32]) -> Vec<u32> {
        let mut product = vec![0u64; left.len() + right.len() - 1];
        for (i, &a) in left.iter().enumerate() {
            for (j, &b) in right.iter().enumerate() {
                product[i + j] += u64::from(a) * u64::from(b);
            }
        }
        for at in (1..product.len()).rev() {
            product[at - 1] += product[at] / u64::from(BASE);
            product[at] %= u64::from(BASE);
        }
        product.into_iter().map(|limb| limb as u32).collect()
    }

    fn draw_number(limbs: usize, random: &mut Random) -> Vec<u32> {
        // Carry errors show in long runs of 0 and 9999.
        let limb = |random: &mut Random| match random.next() % 4 {
            0 => 0,
            1 => BASE - 1,
            _ => (random.next() % u64::from(BASE)) as u32,
        };
        let mut number: Vec<u32> = (0..limbs).map(|_| limb(random)).collect();
        number[0] %= 10;
        number
    }

    #[test]
    fn products_are_those_of_school() {
        let mut random = Random::for_unit(0);
        for isa in Isa::list_supported() {
            let transforms = prepare_transforms(300, isa);
            let mut multiplier = transforms.multiplier();
            for limbs in [1, 2, 3, 7, 8, 9, 16, 17, 18, 19, 100, 299, 300] {
                let left = draw_number(limbs, &mut random);
                let right = draw_number(1 + limbs / 2, &mut random);
                let expected = multiply_by_hand(&left, &right);
                let mut product = vec![77; expected.len() + 3];
                multiplier.multiply(&left, &right, &mut product).unwrap();
                assert_eq!(product[..expected.len()], expected, "{limbs} {isa}");
                assert_eq!(product[expected.len()..], [0, 0, 0]);
                let mut square = vec![77; limbs];
                multiplier.square_into(&left, &mut square).unwrap();
                assert_eq!(
                    square,
                    multiply_by_hand(&left, &left)[..limbs],
                    "{limbs} {isa}"
                );
            }
            assert!(multiplier.worst_error < 0.01, "{}", multiplier.worst_error);
        }
    }

    #[test]
    fn a_wrong_coefficient_is_noticed() {
        let mut points = vec![Complex::new(0.0, 0.0); 8];
        points[3].re = 12_345.0;
        let mut product = [0; 15];
        assert_eq!(carry(&points, 15, &mut product), 12_345 % NINES);
        points[3].re += 1.0;
        assert_ne!(carry(&points, 15, &mut product), 12_345 % NINES);
        points[0].re = 1e5;
        assert_eq!(carry(&points, 15, &mut product), NINES);
    }
}
