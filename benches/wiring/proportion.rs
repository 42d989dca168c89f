//! The interval of a share.

/// 97.5 % of the standard normal distribution lie below.
const Z: f64 = 1.96;

/// The 95 % interval of a share, from successes and trials (Wilson 1927).
pub(crate) fn wilson(successes: f64, trials: f64) -> (f64, f64) {
    let share = successes / trials;
    let shrunk = share + Z * Z / (2.0 * trials);
    let variance = share * (1.0 - share) / trials + Z * Z / (4.0 * trials * trials);
    let (half, scale) = (Z * variance.sqrt(), 1.0 + Z * Z / trials);
    ((shrunk - half) / scale, (shrunk + half) / scale)
}
