//! Kernels that compute numbers: first integer, then floating-point ones.
//!
//! Each verifies its own result in every unit against known facts: digits, counts, sums, theory.
//! None reads a file or takes a lock, and none allocates between its first unit and its last.

pub(super) mod eratosthenes;
pub(super) mod fft;
pub(super) mod fibonacci;
pub(super) mod integer;
pub(super) mod mandelbrot;
pub(super) mod mean_sd;
pub(super) mod napierian;
pub(super) mod pi;
pub(super) mod quicksort;
pub(super) mod whetstone;

/// Folds a value into a digest (the multiplier of FNV-1a, on whole words).
#[inline]
const fn fold_digest(digest: u64, value: u64) -> u64 {
    (digest ^ value)
        .wrapping_mul(0x0000_0100_0000_01b3)
        .rotate_left(29)
}

/// A value for digests: nine decimals, the same for every mathematical library.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are small, and only their bits count"
)]
fn round(value: f64) -> u64 {
    (value * 1e9).round() as i64 as u64
}
