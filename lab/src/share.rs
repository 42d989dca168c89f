//! Shares with their intervals.

/// 97.5 % of the standard normal distribution are below.
const Z: f64 = 1.959_964;

/// The 95 % interval of a share, from successes and trials (Wilson 1927).
pub(crate) fn wilson_interval(successes: f64, trials: f64) -> (f64, f64) {
    let share = successes / trials;
    let shrunk = share + Z * Z / (2.0 * trials);
    let variance = share * (1.0 - share) / trials + Z * Z / (4.0 * trials * trials);
    let (half, scale) = (Z * variance.sqrt(), 1.0 + Z * Z / trials);
    (
        ((shrunk - half) / scale).max(0.0),
        ((shrunk + half) / scale).min(1.0),
    )
}

/// A share in percent with its interval.
pub(crate) fn format_percent(count: usize, of: usize) -> String {
    let (low, high) = wilson_interval(count as f64, of as f64);
    format!(
        "{:.1} % ({:.1}–{:.1})",
        100.0 * count as f64 / of as f64,
        100.0 * low,
        100.0 * high
    )
}

/// A small count with the interval of its share.
pub(crate) fn format_count(count: usize, of: usize) -> String {
    if of == 0 {
        return "–".to_owned();
    }
    let (low, high) = wilson_interval(count as f64, of as f64);
    format!("{count} of {of} ({:.0}–{:.0} %)", 100.0 * low, 100.0 * high)
}
