//! Two series of blocks that were measured apart in time.
//!
//! Nothing is paired here, and the blocks of one series are no independent
//! values: what disturbs a machine lasts longer than a run. Each series is cut
//! into four stretches of time, the stretches' medians are compared by a t
//! statistic with three degrees of freedom (Ibragimov and Müller 2010, 2016):
//! that holds whatever the correlation within a stretch. Where a series drifts
//! so slowly that not even stretches tell apart noise and drift, by its
//! effective number of values (Geyer 1992, initial positive sequence), nothing
//! is said. It cannot see what lasted all through one of the series.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::describe::{mean, quantile, sd};
use super::paired::Interval;

/// Stretches of each series. Simulated series with correlations up to 0.8 from
/// block to block keep the level with four, and not with more.
const STRETCHES: usize = 4;

/// Fewest blocks of a series: two in each stretch.
pub const FEWEST_BLOCKS: usize = 2 * STRETCHES;

/// Fewest values that the blocks of a series must be worth.
const FEWEST_EFFECTIVE: f64 = 4.0;

/// What two series tell of a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// `b − a`.
    pub estimate: f64,
    /// Where the change is, at 95 %; or why that cannot be said.
    pub interval: Result<Interval, Unknown>,
}

/// Why there is no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// A series has fewer than [`FEWEST_BLOCKS`].
    FewBlocks,
    /// A series drifts too slowly for its length.
    Drift,
}

/// The change from one series to another, in order of time; `None` where
/// either is empty.
#[must_use]
pub fn change(a: &[f64], b: &[f64]) -> Option<Change> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    if a.len().min(b.len()) < FEWEST_BLOCKS {
        return Some(Change {
            estimate: quantile(b, 0.5) - quantile(a, 0.5),
            interval: Err(Unknown::FewBlocks),
        });
    }
    let (of_a, of_b) = (stretches(a), stretches(b));
    let estimate = mean(&of_b) - mean(&of_a);
    let is_steady = effective(a).min(effective(b)) >= FEWEST_EFFECTIVE;
    let variance = (sd(&of_a).powi(2) + sd(&of_b).powi(2)) / STRETCHES as f64;
    let half = t_quantile() * variance.sqrt();
    let interval = Interval {
        low: estimate - half,
        high: estimate + half,
    };
    Some(Change {
        estimate,
        interval: is_steady.then_some(interval).ok_or(Unknown::Drift),
    })
}

/// 97.5 % of Student's t with one degree less than there are stretches.
fn t_quantile() -> f64 {
    let student = StudentsT::new(0.0, 1.0, STRETCHES as f64 - 1.0);
    student.map_or(f64::INFINITY, |student| student.inverse_cdf(0.975))
}

/// Medians of stretches as equal as can be.
fn stretches(series: &[f64]) -> Vec<f64> {
    let edge = |stretch: usize| stretch * series.len() / STRETCHES;
    (0..STRETCHES)
        .map(|stretch| quantile(&series[edge(stretch)..edge(stretch + 1)], 0.5))
        .collect()
}

/// How many independent values the mean of a series is worth.
fn effective(series: &[f64]) -> f64 {
    let n = series.len();
    let centre = mean(series);
    let centred: Vec<f64> = series.iter().map(|value| value - centre).collect();
    let squares: f64 = centred.iter().map(|value| value * value).sum();
    if squares <= 0.0 {
        return n as f64;
    }
    // Around a mean of their own, values seem correlated by −1/n.
    let correlation = |lag: usize| {
        let products = centred.iter().zip(&centred[lag..]).map(|(x, y)| x * y);
        products.sum::<f64>() / squares + 1.0 / n as f64
    };
    let mut time = -1.0;
    for pair in 0..n / 4 {
        let first = if pair == 0 {
            1.0
        } else {
            correlation(2 * pair)
        };
        let both = first + correlation(2 * pair + 1);
        if both <= 0.0 {
            break;
        }
        time += 2.0 * both;
    }
    n as f64 / time.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// A series around `level` with this correlation from block to block.
    fn series(random: &mut ChaCha8Rng, blocks: usize, level: f64, correlation: f64) -> Vec<f64> {
        // A sum of twelve uniform values is near enough to a normal one.
        let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        let mut state = 0.05 * normal();
        let fresh = 0.05 * f64::sqrt(1.0 - correlation * correlation);
        (0..blocks)
            .map(|_| {
                state = correlation * state + fresh * normal();
                level + state + 0.01 * normal()
            })
            .collect()
    }

    /// Shares of claims and of silence over many pairs of series.
    fn shares(blocks: usize, effect: f64, correlation: f64) -> (f64, f64) {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let (mut claims, mut silent) = (0, 0);
        for _ in 0..1000 {
            let a = series(&mut random, blocks, 0.0, correlation);
            let b = series(&mut random, blocks, effect, correlation);
            match change(&a, &b).unwrap().interval {
                Ok(interval) if interval.low > 0.0 || interval.high < 0.0 => claims += 1,
                Ok(_) => {}
                Err(_) => silent += 1,
            }
        }
        (f64::from(claims) / 1000.0, f64::from(silent) / 1000.0)
    }

    #[test]
    fn equal_series_are_rarely_told_apart() {
        for (blocks, correlation) in [(8, 0.0), (12, 0.3), (40, 0.6), (100, 0.8)] {
            let (claims, _) = shares(blocks, 0.0, correlation);
            assert!(claims <= 0.05, "{blocks} {correlation}: {claims}");
        }
    }

    #[test]
    fn a_change_of_a_tenth_is_found() {
        let (claims, silent) = shares(40, 0.1, 0.3);
        assert!(claims >= 0.95 && silent <= 0.02, "{claims} {silent}");
    }

    #[test]
    fn a_series_that_only_drifts_says_nothing() {
        let rising: Vec<f64> = (0..20).map(f64::from).collect();
        let found = change(&rising, &rising).unwrap();
        assert_eq!(found.interval, Err(Unknown::Drift));
        assert!(found.estimate.abs() < 1e-12);
    }

    #[test]
    fn few_blocks_give_a_ratio_only() {
        let found = change(&[1.0; 7], &[1.5; 9]).unwrap();
        assert_eq!(found.interval, Err(Unknown::FewBlocks));
        assert!((found.estimate - 0.5).abs() < 1e-12);
        assert_eq!(change(&[], &[1.0]), None);
    }

    #[test]
    fn the_interval_is_that_of_students_t() {
        // R 4.5: qt(0.975, 3) = 3.182446305284263
        assert!((t_quantile() - 3.182_446_305_284_263).abs() < 1e-6);
        // Stretches 0, 1, 0, 1 against 4, 4, 4, 4: variance of the mean 1/12.
        let a = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0];
        let interval = change(&a, &[4.0; 8]).unwrap().interval.unwrap();
        let half = t_quantile() * (1.0f64 / 12.0).sqrt();
        assert!((interval.low - (3.5 - half)).abs() < 1e-9, "{interval:?}");
    }
}
