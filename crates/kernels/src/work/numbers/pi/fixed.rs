//! Fixed-point decimal numbers below ten thousand: the first limb is the
//! integer part. Sums, differences, and roots and inverses by Newton's method.
//!
//! Results are truncated after the last limb; callers keep spare limbs.

use super::product::{BASE, Multiplier};
use crate::work::Wrong;

/// `sum` += `other`.
pub(super) fn add(sum: &mut [u32], other: &[u32]) {
    let mut carry = 0;
    for (limb, &other) in sum.iter_mut().zip(other).rev() {
        let value = *limb + other + carry;
        carry = u32::from(value >= BASE);
        *limb = value - carry * BASE;
    }
}

/// `number` −= `other`, which is not larger.
pub(super) fn subtract(number: &mut [u32], other: &[u32]) {
    let mut borrow = 0;
    for (limb, &other) in number.iter_mut().zip(other).rev() {
        let value = *limb + BASE - other - borrow;
        borrow = u32::from(value < BASE);
        *limb = value - (1 - borrow) * BASE;
    }
}

/// Stores the distance between `number` and `other` in `number`; returns whether `other` is larger.
pub(super) fn distance(number: &mut [u32], other: &[u32]) -> bool {
    let is_larger = &*number < other;
    if is_larger {
        let mut borrow = 0;
        for (limb, &other) in number.iter_mut().zip(other).rev() {
            let value = other + BASE - *limb - borrow;
            borrow = u32::from(value < BASE);
            *limb = value - (1 - borrow) * BASE;
        }
    } else {
        subtract(number, other);
    }
    is_larger
}

/// `number` /= `divisor`, a small one.
pub(super) fn divide(number: &mut [u32], divisor: u32) {
    let mut rest = 0;
    for limb in number {
        let value = rest * BASE + *limb;
        *limb = value / divisor;
        rest = value % divisor;
    }
}

/// `number` ×= `factor`, below 2^48. The product must stay below the base.
#[expect(clippy::cast_possible_truncation, reason = "remainders of the base")]
pub(super) fn scale(number: &mut [u32], factor: u64) {
    let mut carry = 0;
    for limb in number.iter_mut().rev() {
        let value = u64::from(*limb) * factor + carry;
        *limb = (value % u64::from(BASE)) as u32;
        carry = value / u64::from(BASE);
    }
}

/// Number of leading zero limbs.
pub(super) fn leading_zeros(number: &[u32]) -> usize {
    let first = number.iter().position(|&limb| limb != 0);
    first.unwrap_or(number.len())
}

/// The target of Newton's method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// 1/x.
    Inverse,
    /// 1/√x.
    InverseRoot,
}

/// Scratch rows of Newton's method.
pub(super) struct Scratch {
    error: Vec<u32>,
    product: Vec<u32>,
}

impl Scratch {
    /// For numbers of this many limbs.
    pub(super) fn new(limbs: usize) -> Self {
        Self {
            error: vec![1; limbs],
            product: vec![1; limbs],
        }
    }

    /// Puts 1/x or 1/√x into `root`, for x from 0.2 to 1, to within some units
    /// of the last limb: y + y(1 − xy), or y + y(1 − xy²)/2, with twice the
    /// limbs each time.
    pub(super) fn solve(
        &mut self,
        goal: Goal,
        x: &[u32],
        root: &mut [u32],
        multiplier: &mut Multiplier<'_>,
    ) -> Result<(), Wrong> {
        let limbs = x.len();
        root.fill(0);
        guess(goal, x, &mut root[..START.min(limbs)]);
        let mut known = START;
        while known < limbs {
            let next = next_precision(known, limbs);
            self.step(goal, &x[..next], known, &mut root[..next], multiplier)?;
            known = next;
        }
        Ok(())
    }

    /// From `known` correct limbs of the root to its full length.
    fn step(
        &mut self,
        goal: Goal,
        x: &[u32],
        known: usize,
        root: &mut [u32],
        multiplier: &mut Multiplier<'_>,
    ) -> Result<(), Wrong> {
        let next = x.len();
        let error = &mut self.error[..next];
        let product = &mut self.product[..next];
        match goal {
            Goal::Inverse => multiplier.multiply(x, &root[..known], error)?,
            Goal::InverseRoot => {
                multiplier.square_into(&root[..known], product)?;
                multiplier.multiply(x, product, error)?;
            }
        }
        product.fill(0);
        product[0] = 1;
        let is_too_small = distance(error, product);
        // The limb before the first of the error takes the product's carry.
        let zeros = leading_zeros(error);
        if zeros >= next {
            return Ok(());
        }
        if zeros == 0 {
            return Err("Newton's method went astray");
        }
        let shift = zeros - 1;
        let correction = &mut product[..next - shift];
        multiplier.multiply(&root[..known], &error[shift..], correction)?;
        if goal == Goal::InverseRoot {
            divide(correction, 2);
        }
        apply_correction(root, correction, shift, is_too_small);
        Ok(())
    }
}

/// Adds the correction, shifted down by `shift` limbs, if the root is too small, or subtracts it.
fn apply_correction(root: &mut [u32], correction: &[u32], shift: usize, is_too_small: bool) {
    let mut carry = 0;
    for (at, limb) in root.iter_mut().enumerate().rev() {
        let change = if at >= shift {
            correction[at - shift]
        } else {
            0
        };
        if at < shift && carry == 0 {
            return;
        }
        if is_too_small {
            let value = *limb + change + carry;
            carry = u32::from(value >= BASE);
            *limb = value - carry * BASE;
        } else {
            let value = *limb + BASE - change - carry;
            carry = u32::from(value < BASE);
            *limb = value - (1 - carry) * BASE;
        }
    }
}

/// Limbs from floating point: twelve decimals and the integer part.
const START: usize = 4;

/// With p correct limbs, a step makes 2p − 2; each step starts from no more than it needs, so that
/// the last makes exactly `limbs`.
fn next_precision(known: usize, limbs: usize) -> usize {
    let mut precision = limbs;
    while (precision + 2).div_ceil(2) > known {
        precision = (precision + 2).div_ceil(2);
    }
    precision
}

/// The first limbs of the root, from floating point.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "limbs of a small positive number"
)]
fn guess(goal: Goal, x: &[u32], root: &mut [u32]) {
    let base = f64::from(BASE);
    let leading = x.iter().take(START + 2).rev();
    let x = leading.fold(0.0, |value, &limb| value / base + f64::from(limb));
    let mut rest = match goal {
        Goal::Inverse => 1.0 / x,
        Goal::InverseRoot => 1.0 / x.sqrt(),
    };
    for limb in root {
        *limb = rest.floor() as u32;
        rest = (rest - rest.floor()) * base;
    }
}
