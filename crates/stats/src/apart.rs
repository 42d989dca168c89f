//! Compares a contrast that was measured in two sessions, apart in time.
//!
//! Runs of different sessions cannot be paired, and whatever moves a whole session (the clock rate,
//! the neighbours, the state of the memory) moves all of its arms. So not figures are compared, but
//! ratios: the arm over the baseline in one session with the same ratio in the other.
//!
//! Each session is cut into four stretches of time, whose ratios are compared by a t statistic with
//! three degrees of freedom (Ibragimov and Müller 2010, 2016). This is valid whatever the
//! correlation within a stretch. A session does not show what moves its ratio as a whole; the
//! interval is widened by a standard deviation for that, which the caller gives.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Responses;
use super::describe::{mean, sd};
use super::inversion;
use super::judge::Judge;
use super::normal::upper_quantile;
use super::paired::Interval;

/// Error of all intervals together.
const ALPHA: f64 = 0.05;

/// Stretches of each session. With four, simulated series with correlations up to 0.8 from block to
/// block keep the error level; with more they do not.
const STRETCHES: usize = 4;

/// Minimum number of blocks of a stretch.
const MIN_STRETCH: usize = 2;

/// How to compare two sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionComparison {
    /// The statistic of the runs that is judged.
    pub judge: Judge,
    /// Number of contrasts that are compared; all their intervals hold together (Bonferroni).
    pub contrasts: usize,
    /// Standard deviation by which a ratio moves from session to session, `ln(ratio)`.
    pub between: f64,
    /// Step size of the figure, `ln(ratio)`; 0 if it has none.
    pub step: f64,
}

/// The change of a ratio between two sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// `ln(ratio)` in the first session and in the second.
    pub ratios: [f64; 2],
    /// The 95 % interval of their difference, for all contrasts together; `None` with fewer blocks
    /// than [`SessionComparison::min_blocks`].
    pub interval: Option<Interval>,
}

impl SessionComparison {
    /// Minimum number of blocks of a session that allow an interval.
    #[must_use]
    pub fn min_blocks(&self) -> usize {
        let of_stretch = match self.judge {
            Judge::Typical | Judge::Mean => MIN_STRETCH,
            // One run in this many lies above the percentile.
            Judge::Percentile(percentile) => 100 / usize::from(100 - percentile.min(99)),
        };
        STRETCHES * of_stretch
    }

    /// Estimates the change of a ratio from session `a` to session `b`. Blocks are in order of time,
    /// with the baseline in column 0 and the arm in column 1. `None` if either has no blocks.
    #[must_use]
    pub fn compare(&self, a: &Responses, b: &Responses) -> Option<Change> {
        let blocks = a.blocks().min(b.blocks());
        if blocks == 0 {
            return None;
        }
        if blocks < self.min_blocks() {
            return Some(Change {
                ratios: [a, b].map(|session| self.estimate_ratio(session)),
                interval: None,
            });
        }
        let stretches = [a, b].map(|session| self.stretch_ratios(session));
        let [of_a, of_b] = [&stretches[0], &stretches[1]].map(|ratios| mean(ratios));
        let variances = stretches.iter().map(|ratios| sd(ratios).powi(2));
        let within = self.student_quantile() * (variances.sum::<f64>() / STRETCHES as f64).sqrt();
        let between = upper_quantile(self.tail()) * self.between * std::f64::consts::SQRT_2;
        let half = within.hypot(between) + self.step;
        Some(Change {
            ratios: [of_a, of_b],
            interval: Some(Interval {
                low: of_b - of_a - half,
                high: of_b - of_a + half,
            }),
        })
    }

    /// Estimates `ln(ratio)` of a session that is compared with no other; `None` without blocks.
    #[must_use]
    pub fn estimate_alone(&self, session: &Responses) -> Option<f64> {
        match session.blocks() {
            0 => None,
            few if few < self.min_blocks() => Some(self.estimate_ratio(session)),
            _ => Some(mean(&self.stretch_ratios(session))),
        }
    }

    fn estimate_ratio(&self, session: &Responses) -> f64 {
        inversion::estimate(self.judge.family(session, 1, 0).as_ref())
    }

    /// The ratio in each of the stretches, whose lengths differ by at most a block.
    fn stretch_ratios(&self, session: &Responses) -> Vec<f64> {
        let rows: Vec<&[f64]> = session.rows().collect();
        let edge = |stretch: usize| stretch * rows.len() / STRETCHES;
        let of_stretch = |stretch: usize| {
            let mut part = Responses::new(session.arms());
            for row in &rows[edge(stretch)..edge(stretch + 1)] {
                part.push(row);
            }
            self.estimate_ratio(&part)
        };
        (0..STRETCHES).map(of_stretch).collect()
    }

    /// The one-sided error of each contrast.
    fn tail(&self) -> f64 {
        0.5 * ALPHA / self.contrasts.max(1) as f64
    }

    /// Quantile of Student's t; the degrees of freedom are one less than the stretches.
    fn student_quantile(&self) -> f64 {
        let student = StudentsT::new(0.0, 1.0, STRETCHES as f64 - 1.0);
        student.map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - self.tail()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const COMPARISON: SessionComparison = SessionComparison {
        judge: Judge::Typical,
        contrasts: 1,
        between: 0.0,
        step: 0.0,
    };

    /// Simulates a session with a random level and this `ln(ratio)` of the arm. One part of the
    /// noise is common to both runs of a block; another moves the ratio with this correlation from
    /// block to block.
    fn simulate(random: &mut ChaCha8Rng, blocks: usize, ratio: f64, correlation: f64) -> Responses {
        // A sum of twelve uniform values is near enough to a normal one.
        let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        let level = 0.3 * normal();
        let mut state = 0.03 * normal();
        let fresh = 0.03 * f64::sqrt(1.0 - correlation * correlation);
        let mut responses = Responses::new(2);
        for _ in 0..blocks {
            state = correlation * state + fresh * normal();
            let shared = level + 0.05 * normal();
            responses.push(&[
                shared + 0.01 * normal(),
                shared + ratio + state + 0.01 * normal(),
            ]);
        }
        responses
    }

    /// Share of simulated pairs of sessions between which a change is reported.
    fn claim_rate(
        comparison: SessionComparison,
        blocks: usize,
        effect: f64,
        correlation: f64,
    ) -> f64 {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut claims = 0;
        for _ in 0..1000 {
            let a = simulate(&mut random, blocks, 0.0, correlation);
            let b = simulate(&mut random, blocks, effect, correlation);
            let interval = comparison.compare(&a, &b).unwrap().interval.unwrap();
            claims += u32::from(!interval.holds(0.0));
        }
        f64::from(claims) / 1000.0
    }

    #[test]
    fn equal_ratios_rarely_count_as_different() {
        for (blocks, correlation) in [(8, 0.0), (12, 0.3), (40, 0.6), (100, 0.8)] {
            let found = claim_rate(COMPARISON, blocks, 0.0, correlation);
            assert!(found <= 0.05, "{blocks} {correlation}: {found}");
        }
        let of_five = SessionComparison {
            contrasts: 5,
            ..COMPARISON
        };
        let found = claim_rate(of_five, 40, 0.0, 0.3);
        assert!(found <= 0.015, "{found}");
    }

    #[test]
    fn a_change_of_a_tenth_is_found() {
        let found = claim_rate(COMPARISON, 40, 0.1, 0.3);
        assert!(found >= 0.95, "{found}");
    }

    #[test]
    fn few_blocks_give_ratios_without_an_interval() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let (a, b) = (
            simulate(&mut random, 7, 0.0, 0.0),
            simulate(&mut random, 9, 0.5, 0.0),
        );
        let found = COMPARISON.compare(&a, &b).unwrap();
        assert_eq!(found.interval, None);
        let [of_a, of_b] = found.ratios;
        assert!((of_b - of_a - 0.5).abs() < 0.1, "{found:?}");
        assert_eq!(COMPARISON.compare(&a, &Responses::new(2)), None);
        let tails = SessionComparison {
            judge: Judge::Percentile(90),
            ..COMPARISON
        };
        assert_eq!(tails.min_blocks(), 40);
    }

    #[test]
    fn the_interval_is_that_of_students_t() {
        // R 4.5: qt(0.975, 3) = 3.182446305284263
        assert!((COMPARISON.student_quantile() - 3.182_446_305_284_263).abs() < 1e-6);
        let session_of = |differences: [f64; 8]| {
            let mut session = Responses::new(2);
            for d in differences {
                session.push(&[1.0, 1.0 + d]);
            }
            session
        };
        // Stretches 0, 1, 0, 1 against 4, 4, 4, 4: variance of the mean 1/12.
        let a = session_of([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
        let b = session_of([4.0; 8]);
        let low = |comparison: SessionComparison| {
            let change = comparison.compare(&a, &b).unwrap();
            change.interval.unwrap().low
        };
        let half = COMPARISON.student_quantile() * (1.0f64 / 12.0).sqrt();
        assert!((low(COMPARISON) - (3.5 - half)).abs() < 1e-6);
        // 1.96 × √2 × 0.1 between sessions, and a step.
        let comparison = SessionComparison {
            between: 0.1,
            step: 0.25,
            ..COMPARISON
        };
        let both = half.hypot(1.959_964 * 2.0f64.sqrt() * 0.1) + 0.25;
        assert!((low(comparison) - (3.5 - both)).abs() < 1e-5);
    }
}
