//! The standard normal distribution (by the `statrs` crate).

use statrs::function::erf;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Density at `z`.
#[must_use]
pub fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// Probability of exceeding `z`; accurate far into the tail.
#[must_use]
pub fn upper_tail(z: f64) -> f64 {
    0.5 * erf::erfc(z * FRAC_1_SQRT_2)
}

/// The `z` that is exceeded with probability `p`, for `p` in (0, 1).
#[must_use]
pub fn upper_quantile(p: f64) -> f64 {
    erf::erfc_inv(2.0 * p) / FRAC_1_SQRT_2
}
