//! Computes p-values of a sum of scores under random signs.
//!
//! If two arms are the same, swapping their labels within a block reverses the sign of that block's
//! difference and changes nothing else. As the order was drawn at random, both signs were equally
//! likely. So, given the scores' sizes, the null distribution of their signed sum is known exactly,
//! whatever the noise (Fisher's randomisation test; Pitman 1937).
//!
//! With few scores the p-value is exact, by dynamic programming on a grid of integers; scores other
//! than ranks are rounded to that grid. With more scores it is the saddlepoint approximation of
//! Lugannani and Rice (1980), which at the switch is within 4 % of the exact tail for p above
//! 0.0001. From 200 scores on it is the normal tail with its Edgeworth correction.

use super::normal;

/// The distribution of ranks is exact if the product of scores and grid points is at most this, that
/// is for up to 58 ranks. The other methods are less precise for ranks, whose sums form a lattice.
const MAX_COST_OF_RANKS: usize = 200_000;
/// Other scores are rounded to a grid for which that product is about this.
const COST_OF_OTHERS: f64 = 80_000.0;
/// The distribution of other scores is exact for up to this many.
const MAX_EXACT_SCORES: usize = 45;
/// The sum is dominated if one score has more than this share of the variance.
const DOMINANT_SHARE: f64 = 0.06;
/// If the sum is dominated, all signs of this many of the largest scores are enumerated.
const ENUMERATED_SCORES: usize = 10;
/// From this many scores on, the sum is normal except for its kurtosis.
const MIN_FOR_EDGEWORTH: usize = 200;

/// Two-sided p-value of `Σ signed` under random signs: twice the smaller tail. Scores of 0 are
/// ignored; 1 if there are no others.
#[must_use]
pub fn two_sided_p(signed: &[f64]) -> f64 {
    let largest = signed.iter().fold(0.0f64, |m, s| m.max(s.abs()));
    if largest <= 0.0 {
        return 1.0;
    }
    let (grid, are_ranks) = to_integer_grid(signed, largest);
    let is_exact = if are_ranks {
        let sum: usize = grid.iter().map(|&g| size_of_score(g)).sum();
        sum * grid.len() <= MAX_COST_OF_RANKS
    } else {
        grid.len() <= MAX_EXACT_SCORES
    };
    if is_exact {
        exact_p(&grid)
    } else if is_dominated(signed, largest) {
        enumerated_p(signed)
    } else if signed.len() < MIN_FOR_EDGEWORTH {
        saddlepoint_p(signed)
    } else {
        edgeworth_p(signed)
    }
}

/// Converts scores to integers; also says whether they are ranks or mid-ranks, which need no
/// rounding. Other scores are rounded, but never to 0: with few pairs each of them counts. The grid
/// is as fine as the cost allows, so that one huge score does not make the others imprecise.
fn to_integer_grid(signed: &[f64], largest: f64) -> (Vec<i64>, bool) {
    let doubled_is_whole = |s: &f64| (2.0 * s - (2.0 * s).round()).abs() < 1e-9;
    let are_ranks = largest < 1e6 && signed.iter().all(doubled_is_whole);
    let sum: f64 = signed.iter().map(|s| s.abs()).sum();
    let factor = if are_ranks {
        2.0
    } else {
        COST_OF_OTHERS / (signed.len() as f64 * sum)
    };
    let taking_part = signed.iter().filter(|s| s.abs() > 0.0);
    let on_grid = |s: &f64| round_to_i64((s * factor).abs().max(1.0).copysign(*s));
    (taking_part.map(on_grid).collect(), are_ranks)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "callers bound the value to a few thousand"
)]
fn round_to_i64(value: f64) -> i64 {
    value.round() as i64
}

fn size_of_score(score: i64) -> usize {
    usize::try_from(score.unsigned_abs()).unwrap_or(usize::MAX)
}

fn exact_p(grid: &[i64]) -> f64 {
    let mut sizes: Vec<usize> = grid.iter().map(|&g| size_of_score(g)).collect();
    let total: usize = sizes.iter().sum();
    let positive = grid.iter().filter(|&&g| g > 0);
    let positive: usize = positive.map(|&g| size_of_score(g)).sum();
    // Counts in how many ways the positive scores can have each sum, up to the one at hand. It starts
    // with the smallest score, as few sums are reached then, and uses two rows, since in one row each
    // addition would have to wait for the previous one.
    sizes.sort_unstable();
    let smaller = positive.min(total - positive);
    let mut ways = vec![0.0f64; smaller + 1];
    let mut next = ways.clone();
    ways[0] = 1.0;
    let mut reached = 0;
    for &size in &sizes {
        reached = smaller.min(reached + size);
        let size = size.min(reached + 1);
        next[..size].copy_from_slice(&ways[..size]);
        let with_and_without = ways.iter().zip(&ways[size..=reached]);
        for (sum, (with, without)) in next[size..=reached].iter_mut().zip(with_and_without) {
            *sum = with + without;
        }
        std::mem::swap(&mut ways, &mut next);
    }
    // There are fewer than 2¹⁰⁰⁰ ways, so that neither their number nor the share overflows.
    let halves = sizes.iter().fold(1.0, |share, _| 0.5 * share);
    (2.0 * halves * ways.iter().sum::<f64>()).min(1.0)
}

/// Does one score have a large share of the variance? Then the sum's distribution has several modes,
/// which no expansion around a normal distribution describes.
fn is_dominated(signed: &[f64], largest: f64) -> bool {
    let variance: f64 = signed.iter().map(|s| s * s).sum();
    largest * largest > DOMINANT_SHARE * variance
}

/// Enumerates all signs of the largest scores, with the normal tail for the rest.
fn enumerated_p(signed: &[f64]) -> f64 {
    let sum = signed.iter().sum::<f64>().abs();
    let mut sizes: Vec<f64> = signed.iter().map(|s| s.abs()).collect();
    sizes.sort_unstable_by(|a, b| b.total_cmp(a));
    let (large, rest) = sizes.split_at(ENUMERATED_SCORES.min(sizes.len()));
    let sd = rest.iter().map(|s| s * s).sum::<f64>().sqrt();
    let signs = 1usize << large.len();
    let tails: f64 = (0..signs)
        .map(|mask| {
            let signed =
                large.iter().enumerate().map(
                    |(bit, size)| {
                        if mask >> bit & 1 == 1 { *size } else { -size }
                    },
                );
            let left = sum - signed.sum::<f64>();
            if sd > 0.0 {
                normal::upper_tail(left / sd)
            } else {
                f64::from(u8::from(left <= 0.0))
            }
        })
        .sum();
    (2.0 * tails / signs as f64).clamp(f64::MIN_POSITIVE, 1.0)
}

/// The normal tail, corrected for the fourth cumulant `−2 Σ a⁴`. (Odd cumulants of a symmetric sum
/// are 0.)
fn edgeworth_p(signed: &[f64]) -> f64 {
    let (sum, square, fourth) = signed.iter().fold((0.0, 0.0, 0.0), |acc, s| {
        let square = s * s;
        (acc.0 + s, acc.1 + square, acc.2 + square * square)
    });
    let z = sum.abs() / square.sqrt();
    let kurtosis = -2.0 * fourth / (square * square);
    let correction = normal::density(z) * kurtosis / 24.0 * (z * z * z - 3.0 * z);
    (2.0 * (normal::upper_tail(z) + correction)).clamp(f64::MIN_POSITIVE, 1.0)
}

/// The saddlepoint approximation; `K(t) = Σ ln cosh(a t)` is the cumulant generating function of the
/// sum.
fn saddlepoint_p(signed: &[f64]) -> f64 {
    let sum = signed.iter().sum::<f64>().abs();
    let most = signed.iter().map(|s| s.abs()).sum::<f64>();
    let variance = signed.iter().map(|s| s * s).sum::<f64>();
    let count = i32::try_from(signed.len()).unwrap_or(i32::MAX);
    let least = 2.0f64.powi(1 - count);
    if sum >= most * (1.0 - 1e-12) {
        return least;
    }
    let z = sum / variance.sqrt();
    if z < 0.05 {
        return (2.0 * normal::upper_tail(z)).min(1.0);
    }
    let point = solve_saddle(signed, sum, variance);
    let (k, curvature) = signed.iter().fold((0.0, 0.0), |(k, c), s| {
        let x = s * point;
        let sech = 1.0 / x.cosh();
        (k + ln_cosh(x), c + s * s * sech * sech)
    });
    let w = (2.0 * (point * sum - k)).max(0.0).sqrt();
    let u = point * curvature.sqrt();
    let tail = normal::upper_tail(w) + normal::density(w) * (1.0 / u - 1.0 / w);
    (2.0 * tail).clamp(least, 1.0)
}

/// Solves `K'(t) = sum`, whose left side increases, by Newton's method guarded by bisection.
fn solve_saddle(signed: &[f64], sum: f64, variance: f64) -> f64 {
    let slope = |t: f64| -> (f64, f64) {
        signed.iter().fold((0.0, 0.0), |(first, second), s| {
            let tanh = (s * t).tanh();
            (first + s * tanh, second + s * s * (1.0 - tanh * tanh))
        })
    };
    let (mut low, mut high) = (0.0, sum / variance);
    while slope(high).0 < sum {
        low = high;
        high *= 2.0;
    }
    let mut t = 0.5 * (low + high);
    for _ in 0..60 {
        let (value, derivative) = slope(t);
        if value < sum {
            low = t;
        } else {
            high = t;
        }
        let newton = t + (sum - value) / derivative;
        let next = if newton > low && newton < high {
            newton
        } else {
            0.5 * (low + high)
        };
        if (next - t).abs() <= 1e-12 * t.abs() {
            return next;
        }
        t = next;
    }
    t
}

fn ln_cosh(x: f64) -> f64 {
    let x = x.abs();
    x + (-2.0 * x).exp().ln_1p() - std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(signed: &[f64], expected: f64) {
        let p = two_sided_p(signed);
        assert!((p - expected).abs() < 1e-12, "{p} instead of {expected}");
    }

    #[test]
    fn p_values_of_few_scores_are_those_counted_by_hand() {
        check(&[], 1.0);
        check(&[0.0, 0.0], 1.0);
        check(&[1.0, 2.0, 3.0], 0.25);
        check(&[1.0, -2.0, 3.0], 0.75);
        check(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2.0 / 64.0);
        check(&[0.5, 0.5, -0.5], 1.0);
    }

    #[test]
    fn the_saddlepoint_approximates_the_exact_distribution() {
        for step in 0..14u32 {
            let signed: Vec<f64> = (1..=40u32)
                .map(|i| f64::from(i) * if i % 15 < step { 1.0 } else { -1.0 })
                .collect();
            let exact = exact_p(&to_integer_grid(&signed, 40.0).0);
            let approximate = saddlepoint_p(&signed);
            let tolerance = if exact > 1e-4 { 0.04 } else { 0.1 };
            assert!(
                (approximate / exact - 1.0).abs() < tolerance,
                "{approximate} instead of {exact}"
            );
        }
    }

    #[test]
    fn the_normal_tail_agrees_with_the_saddlepoint() {
        for step in 0..9u32 {
            let signed: Vec<f64> = (1..=220u32)
                .map(|i| f64::from(i) * if i * 7 % 22 < 11 + step { 1.0 } else { -1.0 })
                .collect();
            let (a, b) = (saddlepoint_p(&signed), edgeworth_p(&signed));
            let tolerance = if a > 1e-4 { 0.01 } else { 0.1 };
            assert!(
                a < 1e-7 || (b / a - 1.0).abs() < tolerance,
                "{b} instead of {a}"
            );
        }
    }

    proptest! {
        #[test]
        fn p_is_a_probability_and_symmetric(signed in proptest::collection::vec(-5.0f64..5.0, 0..120)) {
            let p = two_sided_p(&signed);
            prop_assert!((0.0..=1.0).contains(&p));
            let flipped: Vec<f64> = signed.iter().map(|s| -s).collect();
            prop_assert!((two_sided_p(&flipped) - p).abs() < 1e-9);
        }

        #[test]
        fn tails_agree_with_enumeration(signs in proptest::collection::vec(any::<bool>(), 1..11)) {
            let signed: Vec<f64> = signs.iter().enumerate()
                .map(|(i, &s)| (i as f64 + 1.0) * if s { 1.0 } else { -1.0 }).collect();
            let observed = signed.iter().sum::<f64>().abs();
            let all = 1u32 << signed.len();
            let extreme = (0..all).filter(|mask| {
                let sum: f64 = signed.iter().enumerate()
                    .map(|(i, s)| if mask & (1 << i) != 0 { s.abs() } else { -s.abs() }).sum();
                sum >= observed - 1e-9
            }).count();
            let expected = (2.0 * extreme as f64 / f64::from(all)).min(1.0);
            prop_assert!((two_sided_p(&signed) - expected).abs() < 1e-9);
        }
    }
}
