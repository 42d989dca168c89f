//! The step of the clock that a matrix was timed with.
//!
//! A coarse clock (5.2 ns on Windows machines, 16.7 ns on a Power9) gives
//! multiples of its step only. A pair is then wrong by up to a step either way:
//! siblings of 7.7 ns show 5.2 or 10.4, and what lies one step apart is not
//! known to differ at all.

/// Finer steps do not matter: they are small against the nearest pair.
const FINEST_SHARE: f64 = 0.1;
/// Mean distance to a multiple, in steps; 0.25 where there is no step.
const ON_STEP: f64 = 0.09;
/// Multiples that must occur. Tight groups of figures fit steps by accident;
/// four of them with no figure between do not.
const OCCURRING: usize = 4;
/// Candidates are this much apart.
const SCAN: f64 = 1.005;

/// The coarsest step that the figures (in ns) are multiples of; `None` where
/// they are of no step that matters.
pub(super) fn step_ns(figures: &[f64]) -> Option<f64> {
    let smallest = figures
        .iter()
        .copied()
        .filter(|v| *v > 0.0)
        .fold(f64::INFINITY, f64::min);
    if !smallest.is_finite() {
        return None;
    }
    let sample = sample(figures);
    let mut step = smallest * 1.1;
    while step >= smallest * FINEST_SHARE {
        if fits(&sample, step) {
            return Some(refined(&sample, step));
        }
        step /= SCAN;
    }
    None
}

/// Some hundred figures, evenly from the sorted ones: enough to see a comb.
fn sample(figures: &[f64]) -> Vec<f64> {
    const ENOUGH: usize = 512;
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let stride = sorted.len().div_ceil(ENOUGH).max(1);
    sorted.into_iter().step_by(stride).collect()
}

fn fits(sample: &[f64], step: f64) -> bool {
    let off: f64 = sample
        .iter()
        .map(|v| (v / step - (v / step).round()).abs())
        .sum();
    if off > ON_STEP * super::figures::count(sample.len()) {
        return false;
    }
    let mut multiples: Vec<f64> = sample.iter().map(|v| (v / step).round()).collect();
    multiples.dedup_by(|a, b| (*a - *b).abs() < 0.5);
    let adjacent = multiples
        .windows(2)
        .filter(|pair| pair[1] - pair[0] < 1.5)
        .count();
    multiples.len() >= OCCURRING && adjacent >= 2
}

/// The step by least squares over its multiples.
fn refined(sample: &[f64], step: f64) -> f64 {
    let (mut product, mut square) = (0.0, 0.0);
    for v in sample {
        let multiple = (v / step).round();
        product += v * multiple;
        square += multiple * multiple;
    }
    if square > 0.0 { product / square } else { step }
}
