//! The step of a matrix's clock.
//!
//! A coarse clock (5.2 ns on Windows machines, 16.7 ns on a Power9) gives multiples of its step
//! only. A pair is then wrong by up to a step either way: siblings of 7.7 ns show 5.2 or 10.4, and
//! values one step apart may be equal.

use super::figures::count;

/// Finer steps do not matter: they are small compared with the nearest pair.
const FINEST_SHARE: f64 = 0.1;
/// Mean distance to a multiple, in steps; 0.25 without a step.
const ON_STEP: f64 = 0.09;
/// Multiples that must occur. Tight groups of figures fit steps by accident, but not four of them
/// with no figure between.
const OCCURRING: usize = 4;
/// Minimum number of figures at one multiple, absolute and as a share of all: siblings are 2 % of
/// the pairs of 64 CPUs.
const MIN_FIGURES: usize = 2;
const SHARE: f64 = 0.01;
/// Mean distance of these to the multiple, in steps.
const ON_TOOTH: f64 = 0.15;
/// Ratio of consecutive candidates.
const SCAN: f64 = 1.005;
/// Candidates between the first fit and one 15 % smaller.
const FURTHER: usize = 30;

/// The coarsest step that the figures (in ns) are multiples of; `None` if there is none that
/// matters.
pub(super) fn step_ns(figures: &[f64]) -> Option<f64> {
    let smallest = figures
        .iter()
        .copied()
        .filter(|v| *v > 0.0)
        .fold(f64::INFINITY, f64::min);
    if !smallest.is_normal() {
        return None;
    }
    let sample = sample(figures);
    let coarsest = 1.0 / FINEST_SHARE;
    // Limited by the ratio of the two ends, whatever the figures. The first steps that fit are
    // slightly too large; a few further down is the best one, before its half is reached.
    std::iter::successors(Some(coarsest * 1.1), |times| Some(times / SCAN))
        .take_while(|times| *times >= 1.0)
        .map(|times| smallest * FINEST_SHARE * times)
        .map(|step| (step, off_step(&sample, step)))
        .skip_while(|(_, off)| off.is_none())
        .take(FURTHER)
        .filter_map(|(step, off)| Some((step, off?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(step, _)| refine_step(&sample, step))
}

/// Some hundred figures, spread evenly over the sorted ones: enough to see a comb.
fn sample(figures: &[f64]) -> Vec<f64> {
    const MAX_SAMPLE: usize = 512;
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let stride = sorted.len().div_ceil(MAX_SAMPLE).max(1);
    sorted.into_iter().step_by(stride).collect()
}

/// Mean distance of the figures to multiples of a step, in steps; `None` if they are not such
/// multiples.
fn off_step(sample: &[f64], step: f64) -> Option<f64> {
    let distance = |v: &f64| (v / step - (v / step).round()).abs();
    let off = sample.iter().map(distance).sum::<f64>() / count(sample.len());
    if off > ON_STEP {
        return None;
    }
    let occupied: Vec<f64> = sample
        .chunk_by(|a, b| ((a / step).round() - (b / step).round()).abs() < 0.5)
        .filter(|figures| is_tooth(figures, sample.len(), distance))
        .map(|figures| (figures[0] / step).round())
        .collect();
    let adjacent = occupied
        .windows(2)
        .filter(|pair| pair[1] - pair[0] < 1.5)
        .count();
    (occupied.len() >= OCCURRING && adjacent >= 2).then_some(off)
}

/// Do the figures about one multiple form a tooth of the comb, instead of single disturbed pairs?
/// Two levels at 26 and 57 ns and a few stray pairs fit a step of 28.
fn is_tooth(figures: &[f64], all: usize, distance: impl Fn(&f64) -> f64) -> bool {
    let off = figures.iter().map(distance).sum::<f64>() / count(figures.len());
    figures.len() >= MIN_FIGURES && count(figures.len()) >= SHARE * count(all) && off <= ON_TOOTH
}

/// The step by least squares over its multiples.
fn refine_step(sample: &[f64], step: f64) -> f64 {
    let (mut product, mut square) = (0.0, 0.0);
    for v in sample {
        let multiple = (v / step).round();
        product += v * multiple;
        square += multiple * multiple;
    }
    if square > 0.0 { product / square } else { step }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(figures: &[f64], expected: Option<f64>) {
        let found = step_ns(figures);
        let is_right = match (found, expected) {
            (Some(found), Some(expected)) => (found / expected - 1.0).abs() < 0.02,
            (found, expected) => found == expected,
        };
        assert!(is_right, "{found:?} instead of {expected:?} of {figures:?}");
    }

    #[test]
    fn steps_that_matter_are_found() {
        let teeth = [5.0, 5.3, 10.3, 10.7, 15.3, 15.7, 20.7, 20.9, 26.0];
        check(&teeth, Some(5.2));
        let far = [16.7, 16.6, 383.2, 383.5, 400.0, 400.1, 416.6, 416.7, 433.4];
        check(&far, Some(16.67));
        check(&[7.7, 15.5, 16.1, 16.9, 18.2, 19.5, 20.4, 21.7], None);
        // Two tight groups fit many steps, but prove none.
        check(&[31.9, 31.9, 38.6, 38.6, 38.7], None);
        // Two levels, and disturbed pairs.
        let mut levels: Vec<f64> = (0..50).map(|i| 26.4 + 0.01 * f64::from(i % 7)).collect();
        levels.extend((0..150).map(|i| 56.5 + 0.02 * f64::from(i % 11)));
        levels.extend([70.0, 82.0, 86.0, 112.0, 138.0]);
        check(&levels, None);
        check(&[], None);
        check(&[0.0, 0.0], None);
        check(&[5e-324, 1.0, f64::MAX], None);
    }
}
