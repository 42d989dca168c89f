//! Finds the step of the clock with which a matrix was measured.
//!
//! A coarse clock (5.2 ns on Windows machines, 16.7 ns on a Power9) gives only multiples of its step.
//! Each figure is then off by up to a step: siblings of 7.7 ns show 5.2 or 10.4, and figures one step
//! apart may be equal.

use super::figures::count;

/// The smallest step to find, as a share of the smallest figure: finer ones do not matter.
const MIN_STEP_SHARE: f64 = 0.1;
/// Limits the mean distance of figures to a multiple, in steps; without a step it is 0.25.
const MAX_MEAN_DISTANCE: f64 = 0.09;
/// Minimum number of multiples that occur. Tight groups of figures fit steps by accident, but not
/// four of them with no figure between.
const MIN_MULTIPLES: usize = 4;
/// Minimum number of figures at one multiple, absolute and as a share of all: siblings are 2 % of
/// the pairs of 64 CPUs.
const MIN_FIGURES: usize = 2;
const MIN_FIGURE_SHARE: f64 = 0.01;
/// Limits the mean distance of the figures at one multiple to it, in steps.
const MAX_DISTANCE_AT_MULTIPLE: f64 = 0.15;
/// Ratio of consecutive candidates.
const CANDIDATE_RATIO: f64 = 1.005;
/// Number of candidates between the first fit and one 15 % smaller.
const CANDIDATES_AFTER_FIT: usize = 30;

/// Finds the coarsest step of which the figures (in ns) are multiples; `None` if there is none that
/// matters.
pub(super) fn find_step_ns(figures: &[f64]) -> Option<f64> {
    let smallest = figures
        .iter()
        .copied()
        .filter(|v| *v > 0.0)
        .fold(f64::INFINITY, f64::min);
    if !smallest.is_normal() {
        return None;
    }
    let sample = thin_out(figures);
    let coarsest = 1.0 / MIN_STEP_SHARE;
    // Limited by the ratio of the two ends, whatever the figures. The first steps that fit are
    // slightly too large; a few further down is the best one, before its half is reached.
    std::iter::successors(Some(coarsest * 1.1), |times| Some(times / CANDIDATE_RATIO))
        .take_while(|times| *times >= 1.0)
        .map(|times| smallest * MIN_STEP_SHARE * times)
        .map(|step| (step, mean_distance_to_multiples(&sample, step)))
        .skip_while(|(_, off)| off.is_none())
        .take(CANDIDATES_AFTER_FIT)
        .filter_map(|(step, off)| Some((step, off?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(step, _)| refine_step(&sample, step))
}

/// Takes at most 512 figures, spread evenly over the sorted ones: enough to find a step.
fn thin_out(figures: &[f64]) -> Vec<f64> {
    const MAX_SAMPLE: usize = 512;
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let stride = sorted.len().div_ceil(MAX_SAMPLE).max(1);
    sorted.into_iter().step_by(stride).collect()
}

/// Mean distance of the figures to multiples of a step, in steps; `None` if they are not such
/// multiples.
fn mean_distance_to_multiples(sample: &[f64], step: f64) -> Option<f64> {
    let distance = |v: &f64| (v / step - (v / step).round()).abs();
    let off = sample.iter().map(distance).sum::<f64>() / count(sample.len());
    if off > MAX_MEAN_DISTANCE {
        return None;
    }
    let occupied: Vec<f64> = sample
        .chunk_by(|a, b| ((a / step).round() - (b / step).round()).abs() < 0.5)
        .filter(|figures| is_multiple_occupied(figures, sample.len(), distance))
        .map(|figures| (figures[0] / step).round())
        .collect();
    let adjacent = occupied
        .windows(2)
        .filter(|pair| pair[1] - pair[0] < 1.5)
        .count();
    (occupied.len() >= MIN_MULTIPLES && adjacent >= 2).then_some(off)
}

/// Are there enough figures at one multiple, and near enough to it? Two levels at 26 and 57 ns and a
/// few disturbed pairs would otherwise fit a step of 28.
fn is_multiple_occupied(figures: &[f64], all: usize, distance: impl Fn(&f64) -> f64) -> bool {
    let off = figures.iter().map(distance).sum::<f64>() / count(figures.len());
    figures.len() >= MIN_FIGURES
        && count(figures.len()) >= MIN_FIGURE_SHARE * count(all)
        && off <= MAX_DISTANCE_AT_MULTIPLE
}

/// Refines the step by least squares over its multiples.
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

    fn check_step(figures: &[f64], expected: Option<f64>) {
        let found = find_step_ns(figures);
        let is_right = match (found, expected) {
            (Some(found), Some(expected)) => (found / expected - 1.0).abs() < 0.02,
            (found, expected) => found == expected,
        };
        assert!(is_right, "{found:?} instead of {expected:?} of {figures:?}");
    }

    #[test]
    fn steps_that_matter_are_found() {
        let multiples = [5.0, 5.3, 10.3, 10.7, 15.3, 15.7, 20.7, 20.9, 26.0];
        check_step(&multiples, Some(5.2));
        let far = [16.7, 16.6, 383.2, 383.5, 400.0, 400.1, 416.6, 416.7, 433.4];
        check_step(&far, Some(16.67));
        check_step(&[7.7, 15.5, 16.1, 16.9, 18.2, 19.5, 20.4, 21.7], None);
        // Two tight groups fit many steps, but prove none.
        check_step(&[31.9, 31.9, 38.6, 38.6, 38.7], None);
        // Two levels, and disturbed pairs.
        let mut levels: Vec<f64> = (0..50).map(|i| 26.4 + 0.01 * f64::from(i % 7)).collect();
        levels.extend((0..150).map(|i| 56.5 + 0.02 * f64::from(i % 11)));
        levels.extend([70.0, 82.0, 86.0, 112.0, 138.0]);
        check_step(&levels, None);
        check_step(&[], None);
        check_step(&[0.0, 0.0], None);
        check_step(&[5e-324, 1.0, f64::MAX], None);
    }
}
