//! Computes how much each block counts.
//!
//! On a shared machine most of the noise is in the blocks that ran while other programs worked. Those
//! blocks take longer as a whole, so that their level shows it.
//!
//! *Which level.* A block's own level comes from the two runs that are compared. If one arm spreads
//! more than the other, level and difference are correlated: weights would prefer the blocks in which
//! the noisier arm was lucky (with equal centres, spreads of 1 to 5 and 130 pairs: 78 % false
//! claims). So a block's own level is used only while the difference does not seem to depend on it
//! ([`interaction`]). Else it is the mean level of the two neighbouring blocks, which does not depend
//! on the runs of this block.
//!
//! *Which weight.* The excess over the quiet level suggests how much noise there was. From a few dozen
//! blocks on, the noise is also measured directly, by the sizes of the differences in the blocks with
//! the nearest levels; then both are used.
//!
//! The limit on the dependence is strict. If arms spread alike, it costs a third of the experiments a
//! little power; if they do not, undetected dependences are too small to matter (see
//! `docs/benchmarks.md`).

use super::describe::quantile;
use super::interaction;
use super::paired::hodges_lehmann;

/// The scale of excess levels is at least this many times the median step between neighbouring
/// blocks, so that plain noise is not mistaken for load.
const STEP_FACTOR: f64 = 2.0;
/// A block's own level is used if the test of dependence gives fewer standard deviations.
const MAX_DEPENDENCE: f64 = 1.0;
/// With fewer blocks the noise near each level is not measured.
const MIN_BLOCKS: usize = 40;
/// The levels nearest to a block's are those of one in this many blocks, above and below.
const NEAR_ONE_IN: usize = 7;
/// Noise counts as at least this share of the typical noise.
const MIN_NOISE: f64 = 0.2;

/// Computes the weights of blocks for a contrast, from the blocks' levels (means of `ln(cost)`) and
/// the contrast's differences, both in time order.
#[must_use]
pub fn weigh_blocks(levels: &[f64], differences: &[f64]) -> Vec<f64> {
    let own = weigh_by_levels(levels);
    let is_dependent =
        interaction::z_of_dependence(differences, &own).is_some_and(|z| z.abs() >= MAX_DEPENDENCE);
    match is_dependent {
        true => {
            let beside = mean_neighbours(levels);
            weigh_by_noise(weigh_by_levels(&beside), &beside, differences)
        }
        false => weigh_by_noise(own, levels, differences),
    }
}

/// Geometric means of the given weights and of the inverse noise near each level.
fn weigh_by_noise(weights: Vec<f64>, levels: &[f64], differences: &[f64]) -> Vec<f64> {
    if levels.len() < MIN_BLOCKS {
        return weights;
    }
    let noise = noise_near_levels(levels, differences);
    let typical = quantile(&noise, 0.5);
    if typical <= 0.0 {
        return weights;
    }
    let both = weights.iter().zip(noise);
    both.map(|(weight, noise)| (weight / (noise / typical).max(MIN_NOISE)).sqrt())
        .collect()
}

/// For each block the median distance of differences from the typical one, over the other blocks with
/// the nearest levels.
fn noise_near_levels(levels: &[f64], differences: &[f64]) -> Vec<f64> {
    let centre = hodges_lehmann(differences);
    let size = |block: usize| (differences[block] - centre).abs();
    let count = levels.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| levels[a].total_cmp(&levels[b]));
    let reach = count.div_ceil(NEAR_ONE_IN);
    let place = |near: &[f64], size: f64| near.partition_point(|other| *other < size);
    let mut near: Vec<f64> = Vec::new();
    let mut noise = vec![0.0; count];
    let mut end = 0;
    for (at, &block) in order.iter().enumerate() {
        while end < count && end <= at + reach {
            let size = size(order[end]);
            near.insert(place(&near, size), size);
            end += 1;
        }
        if let Some(gone) = at.checked_sub(reach + 1) {
            near.remove(place(&near, size(order[gone])));
        }
        // A block's weight must not depend on its own difference.
        let own = near.remove(place(&near, size(block)));
        noise[block] = near[near.len() / 2];
        near.insert(place(&near, own), own);
    }
    noise
}

/// For each block the mean level of its two neighbours; at the ends that of the only neighbour.
fn mean_neighbours(levels: &[f64]) -> Vec<f64> {
    let count = levels.len();
    (0..count)
        .map(|block| {
            let before = block.checked_sub(1).map(|b| levels[b]);
            let after = levels.get(block + 1).copied();
            match (before, after) {
                (Some(before), Some(after)) => 0.5 * (before + after),
                (Some(only), None) | (None, Some(only)) => only,
                (None, None) => levels[block],
            }
        })
        .collect()
}

/// Computes weights in (0, 1] from levels: `1 / (1 + excess / scale)`, with the excess over the first
/// decile.
#[must_use]
pub fn weigh_by_levels(levels: &[f64]) -> Vec<f64> {
    if levels.len() < 3 {
        return vec![1.0; levels.len()];
    }
    let floor = quantile(levels, 0.1);
    let excess: Vec<f64> = levels.iter().map(|l| (l - floor).max(0.0)).collect();
    let steps: Vec<f64> = levels.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    let scale = quantile(&excess, 0.5).max(STEP_FACTOR * quantile(&steps, 0.5));
    if scale <= 0.0 {
        return vec![1.0; levels.len()];
    }
    excess.iter().map(|e| 1.0 / (1.0 + e / scale)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn blocks_with_large_differences_count_less() {
        // Every second level has ten times the noise, without being much longer.
        let levels: Vec<f64> = (0..80).map(|i| 0.01 * f64::from(i % 2)).collect();
        let noise = |i: u32| f64::from(i * 17 % 41) / 20.0 - 1.0;
        let of_two = |i: u32| noise(i) * if i % 2 == 1 { 10.0 } else { 1.0 };
        let differences: Vec<f64> = (0..80).map(of_two).collect();
        let weights = weigh_blocks(&levels, &differences);
        assert!(weights[41] < 0.5 * weights[40], "{weights:?}");
        // Reversing all signs changes nothing.
        let turned: Vec<f64> = differences.iter().map(|d| -d).collect();
        for (a, b) in weights.iter().zip(weigh_blocks(&levels, &turned)) {
            assert!((a - b).abs() < 1e-6);
        }
    }

    #[test]
    fn loaded_blocks_count_less() {
        let mut levels = vec![0.0, 0.01, -0.01, 0.005, 0.0, -0.005, 0.01, 0.0];
        levels.extend([0.7, 0.8]);
        let weights = weigh_by_levels(&levels);
        assert!(weights[0] > 0.4);
        assert!(weights[8] < 0.1 && weights[9] < weights[8]);
    }

    #[test]
    fn a_level_that_goes_with_the_difference_is_not_used() {
        // The baseline never varies: the level is half of the difference.
        let differences: Vec<f64> = (0..40)
            .map(|i| f64::from(i * 17 % 40) / 20.0 - 1.0)
            .collect();
        let levels: Vec<f64> = differences.iter().map(|d| 0.5 * d).collect();
        let weights = weigh_blocks(&levels, &differences);
        let beside = mean_neighbours(&levels);
        let expected = weigh_by_noise(weigh_by_levels(&beside), &beside, &differences);
        assert_eq!(weights, expected);
        // Both arms ran under a load that does not change the difference.
        let even: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
        let load: Vec<f64> = (0..40).map(|i| f64::from(i / 4 % 2)).collect();
        let expected = weigh_by_noise(weigh_by_levels(&load), &load, &even);
        assert_eq!(weigh_blocks(&load, &even), expected);
    }

    #[test]
    fn equal_levels_have_equal_weights() {
        assert_eq!(weigh_by_levels(&[1.0; 6]), vec![1.0; 6]);
        assert_eq!(weigh_by_levels(&[]), Vec::<f64>::new());
    }

    proptest! {
        #[test]
        fn a_shift_of_all_levels_changes_no_weight(levels in proptest::collection::vec(-1.0f64..1.0, 3..40), shift in -3.0f64..3.0) {
            let moved: Vec<f64> = levels.iter().map(|l| l + shift).collect();
            for (a, b) in weigh_by_levels(&levels).into_iter().zip(weigh_by_levels(&moved)) {
                prop_assert!((a - b).abs() < 1e-6);
                prop_assert!(a > 0.0 && a <= 1.0);
            }
        }
    }
}
