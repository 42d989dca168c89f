//! Signed-rank tests against R and properties of estimate and interval.

use super::super::golden::{SIGNED_RANK, TIED};
use super::*;
use proptest::prelude::*;

#[track_caller]
fn close(actual: f64, expected: f64) {
    assert!(
        (actual - expected).abs() < 1e-7,
        "{actual} instead of {expected}"
    );
}

#[test]
fn signed_ranks_agree_with_r() {
    for (sample, p, estimate, low, high) in SIGNED_RANK {
        let paired = Paired::without_weights(sample.to_vec());
        close(paired.p_value(0.0), p);
        close(paired.estimate(), estimate);
        close(paired.interval(0.05).low, low);
        close(paired.interval(0.05).high, high);
    }
}

#[test]
fn ties_agree_with_exact_rank_tests() {
    for (sample, p) in TIED {
        close(Paired::without_weights(sample.to_vec()).p_value(0.0), p);
    }
}

proptest! {
    #[test]
    fn estimate_and_interval_move_with_the_data(d in proptest::collection::vec(-1.0f64..1.0, 6..40), shift in -2.0f64..2.0, factor in 0.1f64..5.0) {
        let plain = Paired::without_weights(d.clone());
        let moved = Paired::without_weights(d.iter().map(|v| v * factor + shift).collect());
        prop_assert!((moved.estimate() - (plain.estimate() * factor + shift)).abs() < 1e-6);
        let (a, b) = (plain.interval(0.05), moved.interval(0.05));
        prop_assert!((b.low - (a.low * factor + shift)).abs() < 1e-6);
        prop_assert!((b.high - (a.high * factor + shift)).abs() < 1e-6);
    }

    #[test]
    fn flipping_signs_flips_everything(d in proptest::collection::vec(-1.0f64..1.0, 6..40), w in proptest::collection::vec(0.1f64..1.0, 40)) {
        let w = w[..d.len()].to_vec();
        let plain = Paired::with_weights(d.clone(), w.clone());
        let flipped = Paired::with_weights(d.iter().map(|v| -v).collect(), w);
        prop_assert!((plain.estimate() + flipped.estimate()).abs() < 1e-7);
        let (low, high) = (plain.interval(0.05).low, flipped.interval(0.05).high);
        // Weights may leave too few pairs that count to bound anything.
        let are_unbounded = low.is_infinite() && high.is_infinite();
        prop_assert!(are_unbounded || (low + high).abs() < 1e-7, "{low} {high}");
        prop_assert!((plain.p_value(0.0) - flipped.p_value(0.0)).abs() < 1e-9);
    }

    #[test]
    fn interval_and_p_value_agree(d in proptest::collection::vec(-1.0f64..1.5, 6..60)) {
        let paired = Paired::without_weights(d);
        let interval = paired.interval(0.05);
        let excludes_zero = interval.low > 1e-9 || interval.high < -1e-9;
        let includes_zero = interval.low < -1e-9 && interval.high > 1e-9;
        prop_assert!(!excludes_zero || paired.p_value(0.0) <= 0.05);
        prop_assert!(!includes_zero || paired.p_value(0.0) > 0.05);
        prop_assert!(interval.low <= paired.estimate() + 1e-9 && paired.estimate() <= interval.high + 1e-9);
    }

    #[test]
    fn the_order_of_blocks_changes_nothing(d in proptest::collection::vec(-1.0f64..1.0, 6..30)) {
        let mut reversed = d.clone();
        reversed.reverse();
        let (a, b) = (Paired::without_weights(d), Paired::without_weights(reversed));
        prop_assert!((a.p_value(0.0) - b.p_value(0.0)).abs() < 1e-12);
        prop_assert!((a.estimate() - b.estimate()).abs() < 1e-9);
    }
}

#[test]
fn too_few_pairs_give_no_bounds() {
    let paired = Paired::without_weights(vec![0.1, 0.2, 0.3, 0.4, 0.5]);
    assert!(paired.interval(0.05).low.is_infinite());
    let paired = Paired::without_weights(vec![0.1, 0.2, 0.3, 0.4, 0.5, 0.6]);
    let interval = paired.interval(0.05);
    close(interval.low, 0.1);
    close(interval.high, 0.6);
    assert!(
        Paired::without_weights(Vec::new())
            .interval(0.05)
            .low
            .is_infinite()
    );
}

#[test]
fn a_weight_of_two_counts_like_two_neighbours() {
    // Walsh averages weigh w_i w_j: a heavy pair draws the estimate.
    let light = Paired::with_weights(vec![0.0, 0.0, 0.0, 1.0], vec![1.0, 1.0, 1.0, 0.01]);
    assert!(light.estimate().abs() < 1e-6);
    let heavy = Paired::with_weights(vec![0.0, 0.1, 0.2, 1.0], vec![0.1, 0.1, 0.1, 1.0]);
    assert!(heavy.estimate() > 0.5);
}
