//! Times and rates as frameworks print them, in seconds.

use super::error::FrameworkError;

/// The length of a unit of time in seconds; `None` if it is not one.
pub(crate) fn unit_s(unit: &str) -> Option<f64> {
    Some(match unit {
        "ps" => 1e-12,
        "ns" => 1e-9,
        // The micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "hr" => 3600.0,
        "day" => 86400.0,
        _ => return None,
    })
}

/// Converts a time to seconds.
pub(super) fn to_seconds(benchmark: &str, value: f64, unit: &str) -> Result<f64, FrameworkError> {
    let unit_s = unit_s(unit).ok_or_else(|| FrameworkError::unit(benchmark, unit))?;
    require_positive(benchmark, value * unit_s)
}

/// Converts a rate to seconds per operation; `unit` is the one after `ops/`.
pub(super) fn invert_rate(benchmark: &str, rate: f64, unit: &str) -> Result<f64, FrameworkError> {
    let unit_s = unit_s(unit).ok_or_else(|| FrameworkError::unit(benchmark, unit))?;
    require_positive(benchmark, unit_s / rate)
}

/// Parses a finite number.
pub(super) fn parse_number(benchmark: &str, text: &str) -> Result<f64, FrameworkError> {
    let value = text.parse().ok().filter(|value: &f64| value.is_finite());
    value.ok_or_else(|| FrameworkError::not_a_number(benchmark, text))
}

fn require_positive(benchmark: &str, seconds: f64) -> Result<f64, FrameworkError> {
    if seconds > 0.0 && seconds.is_normal() {
        return Ok(seconds);
    }
    Err(FrameworkError::not_positive(benchmark, seconds))
}

/// The geometric mean; `None` without values.
pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    match values {
        [] => None,
        [one] => Some(*one),
        _ => {
            let logarithms: f64 = values.iter().map(|value| value.ln()).sum();
            Some((logarithms / values.len() as f64).exp())
        }
    }
}
