//! Screening many arms: sequential halving over blocks of survivors.
//!
//! Each round runs every surviving arm and the baseline in random-order
//! blocks, scores the arms by all blocks they ran in, and keeps the better
//! half (Karnin, Koren and Somekh 2013). Arms are compared only within blocks,
//! so a drifting machine favours none. Screening has no error guarantee; what
//! it keeps is confirmed on fresh blocks, and its own estimates are never
//! printed as results (the best of 20 equal arms looks 2 to 10 % better than
//! it is).

use super::describe::quantile;
use super::paired::Paired;
use super::weights;

/// Arms that reach the confirmation, beside the baseline.
pub const FINALISTS: usize = 3;
/// From this many arms on, the baseline included, screening comes first.
pub const FROM_ARMS: usize = 8;
/// Share of the budget that screening takes.
pub const BUDGET_SHARE: f64 = 0.4;

/// Responses of the screening: one row per block, `None` for arms that had
/// been eliminated.
pub type ScreeningRows = [Vec<Option<f64>>];

/// Number of rounds that reduce `challengers` to the finalists.
#[must_use]
pub fn rounds(challengers: usize) -> usize {
    let mut left = challengers;
    let mut rounds = 0;
    while left > FINALISTS {
        left = survivors(left);
        rounds += 1;
    }
    rounds
}

/// How many of `challengers` survive a round.
#[must_use]
pub fn survivors(challengers: usize) -> usize {
    challengers.div_ceil(2).max(FINALISTS.min(challengers))
}

/// The better part of `open` (arms other than the baseline) after a round,
/// best first.
#[must_use]
pub fn select(rows: &ScreeningRows, baseline: usize, open: &[usize]) -> Vec<usize> {
    let mut scored: Vec<(f64, usize)> = scores(rows, baseline, open);
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    scored.truncate(survivors(open.len()));
    scored.into_iter().map(|(_, arm)| arm).collect()
}

/// Each arm's typical distance from the middle of its block (lower is
/// better), loaded blocks counting less.
fn scores(rows: &ScreeningRows, baseline: usize, open: &[usize]) -> Vec<(f64, usize)> {
    let middles: Vec<f64> = rows
        .iter()
        .map(|row| {
            let present: Vec<f64> = open
                .iter()
                .chain(std::iter::once(&baseline))
                .filter_map(|&arm| row[arm])
                .collect();
            quantile(&present, 0.5)
        })
        .collect();
    let weights = weights::from_levels(&middles);
    open.iter()
        .map(|&arm| {
            let (distances, counts) = rows
                .iter()
                .zip(&middles)
                .zip(&weights)
                .filter_map(|((row, middle), weight)| Some((row[arm]? - middle, *weight)))
                .unzip();
            (Paired::weighted(distances, counts).estimate(), arm)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_and_survivors() {
        assert_eq!(rounds(3), 0);
        assert_eq!(rounds(7), 2);
        assert_eq!(rounds(20), 3);
        assert_eq!(rounds(63), 5);
        assert_eq!(survivors(7), 4);
        assert_eq!(survivors(4), 3);
        assert_eq!(survivors(2), 2);
    }

    #[test]
    fn the_best_arms_survive_a_drift() {
        let rows: Vec<Vec<Option<f64>>> = (0..6)
            .map(|block| {
                let drift = f64::from(block) * 0.5;
                let arms = (0..8).map(|arm| Some(drift + f64::from(arm) * 0.01));
                arms.collect()
            })
            .collect();
        assert_eq!(select(&rows, 7, &[6, 5, 4, 3, 2, 1, 0]), [0, 1, 2, 3]);
    }

    #[test]
    fn eliminated_arms_do_not_disturb() {
        let rows = vec![
            vec![Some(0.0), Some(0.1), Some(9.0), Some(0.05)],
            vec![Some(1.0), Some(1.1), None, Some(1.05)],
        ];
        assert_eq!(select(&rows, 3, &[1, 0]), [0, 1]);
    }
}
