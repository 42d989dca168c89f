//! How much a block counts.
//!
//! On a shared machine most of the noise sits in the blocks that ran while
//! others worked. Those blocks run longer as a whole, so their level tells,
//! and the level does not know which arm was which: it is the same whichever
//! way the labels fell. Weights made of it keep the sign-flip test exact.
//!
//! On recorded series of a busy two-CPU machine the weights raise the power at
//! a true 2 % and 130 pairs from 0.78 to 0.90 (medium load) and from 0.39 to
//! 0.55 (heavy load); on independent normal noise, where there is nothing to
//! gain, they cost about 5 % of the runs. `docs/benchmarks.md` has the table.

use super::describe::quantile;

/// Excess levels are judged against at least this many times the median step
/// between neighbouring blocks, so that plain noise is not taken for load.
const STEP_FACTOR: f64 = 2.0;

/// Weights in (0, 1] from block levels (each a mean of `ln(cost)`, in time
/// order): `1 / (1 + excess / scale)`, the excess over the first decile.
#[must_use]
pub fn from_levels(levels: &[f64]) -> Vec<f64> {
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
    fn loaded_blocks_count_less() {
        let mut levels = vec![0.0, 0.01, -0.01, 0.005, 0.0, -0.005, 0.01, 0.0];
        levels.extend([0.7, 0.8]);
        let weights = from_levels(&levels);
        assert!(weights[0] > 0.4);
        assert!(weights[8] < 0.1 && weights[9] < weights[8]);
    }

    #[test]
    fn without_any_variation_all_count_alike() {
        assert_eq!(from_levels(&[1.0; 6]), vec![1.0; 6]);
        assert_eq!(from_levels(&[]), Vec::<f64>::new());
    }

    proptest! {
        #[test]
        fn weights_do_not_see_a_shift(levels in proptest::collection::vec(-1.0f64..1.0, 3..40), shift in -3.0f64..3.0) {
            let moved: Vec<f64> = levels.iter().map(|l| l + shift).collect();
            for (a, b) in from_levels(&levels).into_iter().zip(from_levels(&moved)) {
                prop_assert!((a - b).abs() < 1e-6);
                prop_assert!(a > 0.0 && a <= 1.0);
            }
        }
    }
}
