//! Several arms against a baseline, at one family-wise error level.
//!
//! Every arm is compared with its baseline by what the [`Judge`] looks at. Holm's
//! procedure (1979) runs at every look over group-sequential levels for α, α/2
//! … α/m (valid for spending functions whose levels grow with α: Maurer and
//! Bretz 2013). The interval printed for an arm is at the level at which Holm
//! judged it, so verdict and interval are the same statement.
//!
//! For "which is best", the winner is also compared with all others (Hsu's
//! multiple comparisons with the best, 1984): how much better could any of
//! them still be?

use super::caveats::{Circumstances, JudgedContrast};
pub use super::decision::{Decision, decide};
use super::describe::mean;
use super::inversion::{self, Family};
use super::judge::Judge;
use super::look::lowest_cost;
pub use super::look::{Contrast, Look, Pair};
use super::paired::{Interval, Paired};
use super::resolution::{self, Figure, Resolution};
use super::sequential::{Depth, GroupSequential, MIN_PAIRS, Schedule, Spending, least_pairs};
use super::{Responses, agreement, weights};

/// Share of the error level that the design spends. It treats the joint distribution of the looks
/// as normal and the choice of weights as given, which is not quite true: this share makes up for
/// that, and leaves room for noise that nobody has recorded.
const GUARD: f64 = 0.8;

/// Means of few runs of skewed noise are not looked at before the end.
const MIN_RUNS_FOR_MEANS: usize = 24;

/// A difference that counts as none, but has a sign.
const NOTHING: f64 = 1e-9;

/// How blocks are weighted when the typical run is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Score {
    /// Redescending ranks for heavy tails, weighted by the noise at each load level, while they
    /// agree with plain ranks ([`agreement`]).
    #[default]
    Weighted,
    /// Plain signed ranks: every block counts alike.
    Rank,
}

/// What a comparison asks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// What of the runs is judged.
    pub judge: Judge,
    /// How blocks count.
    pub score: Score,
    /// Family-wise two-sided error.
    pub alpha: f64,
    /// Smallest effect of interest, `ln(ratio)`.
    pub delta: f64,
    /// What kind of figure it is.
    pub figure: Figure,
    /// Is the figure the inverse of the cost?
    pub is_rate: bool,
    /// May it go on for ever, until it is settled?
    pub is_open_ended: bool,
}

impl Question {
    /// The two-sided error that one of `contrasts` has to spend in total.
    fn error_of_one(&self, contrasts: usize) -> f64 {
        GUARD * self.alpha / contrasts.max(1) as f64
    }

    /// The fewest blocks that allow a claim on this many contrasts. A percentile is judged by the
    /// runs beyond it, of which both arms together need this many.
    #[must_use]
    pub fn least_blocks(&self, contrasts: usize) -> usize {
        let pairs = least_pairs(self.error_of_one(contrasts));
        match self.judge {
            Judge::Typical | Judge::Mean => pairs,
            Judge::Percentile(percentile) => {
                (50 * pairs).div_ceil(100 - usize::from(percentile.min(99)))
            }
        }
    }

    /// How it is spent. If few runs could decide the statistic, nothing is claimed early.
    fn spending(&self, contrasts: usize) -> Spending {
        let error = self.error_of_one(contrasts);
        match (self.judge, self.is_open_ended) {
            (Judge::Typical, false) => Spending::new(error),
            (Judge::Mean | Judge::Percentile(_), false) => Spending::late(error),
            (Judge::Typical, true) => Spending::open_ended(error, MIN_PAIRS),
            (Judge::Mean | Judge::Percentile(_), true) => {
                Spending::open_ended(error, MIN_RUNS_FOR_MEANS)
            }
        }
    }

    /// When to look at this many contrasts.
    #[must_use]
    pub fn schedule(&self, contrasts: usize) -> Schedule {
        let least = match self.judge {
            Judge::Mean => MIN_RUNS_FOR_MEANS,
            Judge::Typical | Judge::Percentile(_) => MIN_PAIRS,
        };
        Schedule::new(self.spending(contrasts), least)
    }
}

/// The running confirmation of arms against a baseline.
#[derive(Debug, Clone)]
pub struct Confirmation {
    pairs: Vec<Pair>,
    /// Columns that compete with each other, their baseline first: each is compared with the best
    /// of its group.
    rivals: Vec<Vec<usize>>,
    question: Question,
    /// The value that looks for claims ask about, `ln(ratio)`: 0, or a limit.
    tested: f64,
    /// Contrasts no longer looked at that were not rejected.
    open_elsewhere: usize,
    /// One design per number of arms that Holm may divide α by, from 1.
    designs: Vec<GroupSequential>,
    scores_before: Vec<Vec<f64>>,
}

/// What the test of a pair gave at a look.
struct PairTest {
    pair: Pair,
    p_value: f64,
    /// Holm's step, from 1, and its nominal level.
    step: usize,
    level: f64,
}

/// The data of one look.
struct LookData<'a> {
    /// As measured.
    data: &'a Responses,
    /// The figures of every arm, as measured.
    columns: Vec<Vec<f64>>,
    judge: Judge,
    /// Spread over the steps of a coarse figure.
    spread: Responses,
    resolution: Option<Resolution>,
    levels: Vec<f64>,
    around: &'a Circumstances,
    /// Blocks that may still come.
    blocks_left: f64,
}

impl<'a> LookData<'a> {
    fn new(data: &'a Responses, around: &'a Circumstances, most: f64, question: &Question) -> Self {
        let is_rate = question.is_rate;
        let value = |response: &f64| if is_rate { -response } else { *response }.exp();
        let values = |arm: usize| data.column(arm).iter().map(value).collect();
        let columns: Vec<Vec<f64>> = (0..data.arms()).map(values).collect();
        let resolution = resolution::find_step(&columns, question.figure);
        let spread = match resolution {
            Some(found) => found.spread(data, &around.slots, is_rate),
            None => data.clone(),
        };
        Self {
            levels: spread.rows().map(mean).collect(),
            data,
            columns,
            judge: question.judge,
            spread,
            resolution,
            around,
            blocks_left: most - data.blocks() as f64,
        }
    }

    fn family(&self, question: &Question, arm: usize, baseline: usize) -> Box<dyn Family> {
        if question.judge != Judge::Typical {
            return question.judge.family(&self.spread, arm, baseline);
        }
        let differences = self.spread.differences(arm, baseline);
        let plain = Paired::without_weights(differences.clone());
        match question.score {
            Score::Rank => Box::new(plain),
            Score::Weighted => {
                let weights = weights::weigh_blocks(&self.levels, &differences);
                let sharp = Paired::with_weights(differences, weights).redescending();
                agreement::sharp_while_it_agrees(plain, sharp)
            }
        }
    }

    /// The interval, widened by what coarse steps may hide.
    fn interval(
        &self,
        family: &dyn Family,
        estimate: f64,
        level: f64,
        arm: usize,
        baseline: usize,
    ) -> Interval {
        let interval = inversion::interval_around(family, estimate, level);
        let Some(resolution) = self.resolution else {
            return interval;
        };
        let (arm, baseline) = (&self.columns[arm], &self.columns[baseline]);
        let bias = resolution.bias(arm, self.judge) + resolution.bias(baseline, self.judge);
        let wider = Interval {
            low: interval.low - bias,
            high: interval.high + bias,
        };
        if interval.holds(0.0) || !resolution.is_ordered(arm, baseline) {
            return wider;
        }
        match interval.low > 0.0 {
            true => Interval {
                low: wider.low.max(NOTHING),
                ..wider
            },
            false => Interval {
                high: wider.high.min(-NOTHING),
                ..wider
            },
        }
    }
}

impl Confirmation {
    /// Compares every other of `arms` columns with `baseline`.
    #[must_use]
    pub fn new(arms: usize, baseline: usize, question: Question) -> Self {
        let others: Vec<usize> = (0..arms).filter(|&arm| arm != baseline).collect();
        let pairs = others.iter().map(|&arm| Pair { arm, baseline });
        let rivals = [baseline].into_iter().chain(others.iter().copied());
        Self::with_pairs(pairs.collect(), vec![rivals.collect()], question)
    }

    /// Compares these pairs of columns. `rivals`: the columns that compete with each other, in each
    /// group the baseline first; the winner is sought in the first group.
    #[must_use]
    pub fn with_pairs(pairs: Vec<Pair>, rivals: Vec<Vec<usize>>, question: Question) -> Self {
        let designs = (1..=pairs.len())
            .map(|m| GroupSequential::new(question.spending(m)))
            .collect();
        Self {
            rivals,
            scores_before: vec![Vec::new(); pairs.len()],
            pairs,
            question,
            tested: 0.0,
            open_elsewhere: 0,
            designs,
        }
    }

    /// Tests for each arm whether it is slower by more than `limit`, `ln(ratio)`, instead of
    /// whether it differs: looks for claims wait for that.
    #[must_use]
    pub fn with_limit(mut self, limit: Option<f64>) -> Self {
        self.tested = limit.unwrap_or(0.0);
        self
    }

    /// Goes on with only the columns `kept` (ascending, the baseline among them):
    /// error already spent stays spent.
    pub fn keep_columns(&mut self, kept: &[usize]) {
        let place = |column: usize| kept.iter().position(|&k| k == column);
        let before = std::mem::take(&mut self.scores_before);
        let keep = |pair: &Pair| {
            Some(Pair {
                arm: place(pair.arm)?,
                baseline: place(pair.baseline)?,
            })
        };
        let both = self.pairs.iter().zip(before);
        (self.pairs, self.scores_before) = both
            .filter_map(|(pair, scores)| Some((keep(pair)?, scores)))
            .unzip();
        for rivals in &mut self.rivals {
            *rivals = rivals.iter().filter_map(|&column| place(column)).collect();
        }
        self.rivals.retain(|rivals| !rivals.is_empty());
    }

    /// Goes on without the arms behind `dropped`, whose verdicts stand: those that
    /// were not rejected still share the error.
    pub fn drop_arms(&mut self, dropped: &[Contrast], kept: &[usize]) {
        let is_rejected = |c: &Contrast| !c.interval.holds(0.0);
        self.open_elsewhere += dropped.iter().filter(|c| !is_rejected(c)).count();
        self.keep_columns(kept);
    }

    /// Looks at the data when `most` blocks are possible in total. Every call spends error: look
    /// only when planned, and last with `most` blocks done. `None` if only claims were requested
    /// and not every arm allows one.
    pub fn look(
        &mut self,
        data: &Responses,
        around: &Circumstances,
        most: f64,
        depth: Depth,
    ) -> Option<Look> {
        let seen = LookData::new(data, around, most, &self.question);
        let families: Vec<Box<dyn Family>> = self
            .pairs
            .iter()
            .map(|pair| seen.family(&self.question, pair.arm, pair.baseline))
            .collect();
        let levels = self.nominal_levels(&families, data.blocks() as f64, most);
        // The open test rejects whatever the closed one does.
        let level = levels.first().copied().unwrap_or(0.0);
        let is_open = |family: &dyn Family| inversion::p_value(family, self.tested) > level;
        if depth == Depth::Claims && families.iter().any(|family| is_open(family.as_ref())) {
            return None;
        }
        let p_values: Vec<f64> = families
            .iter()
            .map(|family| inversion::closed_p_value(family.as_ref(), 0.0))
            .collect();
        let steps = holm(&p_values, &levels, self.open_elsewhere);
        let is_claimed = |index: usize| p_values[index] <= levels[steps[index] - 1];
        let is_about_0 = self.tested == 0.0;
        if depth == Depth::Claims && is_about_0 && !(0..families.len()).all(is_claimed) {
            return None;
        }
        let contrasts: Vec<Contrast> = (0..families.len())
            .map(|index| {
                let test = PairTest {
                    pair: self.pairs[index],
                    p_value: p_values[index],
                    step: steps[index],
                    level: levels[steps[index] - 1],
                };
                self.contrast(&test, families[index].as_ref(), &seen)
            })
            .collect();
        Some(self.summarise(&seen, contrasts, &levels))
    }

    /// Nominal levels for α, α/2 … α/m at this look. The looks' correlation is
    /// the smallest of the contrasts', which is the cautious choice.
    fn nominal_levels(&mut self, families: &[Box<dyn Family>], blocks: f64, most: f64) -> Vec<f64> {
        let mut least = 1.0f64;
        for (family, before) in families.iter().zip(&mut self.scores_before) {
            let now: Vec<f64> = family.scores(0.0).iter().map(|s| s.abs()).collect();
            if !before.is_empty() {
                least = least.min(correlation(before, &now));
            }
            *before = now;
        }
        self.designs
            .iter_mut()
            .map(|design| design.look(blocks, most, least))
            .collect()
    }

    fn contrast(&self, test: &PairTest, family: &dyn Family, seen: &LookData<'_>) -> Contrast {
        let &PairTest {
            pair: Pair { arm, baseline },
            p_value,
            step,
            level,
        } = test;
        let Question { alpha, delta, .. } = self.question;
        let estimate = inversion::estimate(family);
        let mut interval = seen.interval(family, estimate, level, arm, baseline);
        if p_value > level && !interval.holds(0.0) {
            interval = Interval {
                low: interval.low.min(0.0),
                high: interval.high.max(0.0),
            };
        }
        let shown_p = if interval.holds(0.0) {
            p_value.max(level.next_up())
        } else {
            p_value
        };
        let is_coarse = seen.resolution.is_some_and(|found| found.relative > delta);
        let mut decision = decide(interval, delta);
        if decision == Decision::Same && is_coarse {
            decision = Decision::Undecided;
        }
        let caveats = JudgedContrast {
            arm,
            baseline,
            judge: self.question.judge,
            estimate,
            level,
            delta,
            decision,
            contrasts: self.pairs.len(),
            blocks_left: seen.blocks_left,
        }
        .caveats(&seen.spread, seen.around, interval);
        if caveats.withholds() {
            decision = Decision::Undecided;
        }
        Contrast {
            arm,
            baseline,
            estimate,
            interval,
            confidence: 1.0 - alpha / step as f64,
            p_adjusted: (shown_p * alpha / level.max(f64::MIN_POSITIVE)).min(1.0),
            nominal_level: level,
            decision,
            caveats,
        }
    }

    fn summarise(&self, seen: &LookData<'_>, contrasts: Vec<Contrast>, levels: &[f64]) -> Look {
        let strictest = levels
            .get((contrasts.len() + self.open_elsewhere).saturating_sub(1))
            .copied()
            .unwrap_or(self.question.alpha);
        let mut behind = vec![0.0; seen.data.arms()];
        for rivals in &self.rivals {
            let winner = lowest_cost(rivals, &contrasts);
            for &arm in rivals.iter().filter(|&&arm| arm != winner) {
                behind[arm] = self.lowest(arm, winner, seen, &contrasts, strictest);
            }
        }
        let first = self.rivals.first().map_or(&[][..], Vec::as_slice);
        let winner = lowest_cost(first, &contrasts);
        Look {
            blocks: seen.data.blocks(),
            contrasts,
            winner,
            behind,
            is_settled: false,
            resolution: seen.resolution,
        }
        .settle_within(self.question.delta)
    }

    /// Lower end of the interval of `arm` against `winner` at `level`: already known if one of them
    /// is the other's baseline and that level was used.
    fn lowest(
        &self,
        arm: usize,
        winner: usize,
        seen: &LookData<'_>,
        contrasts: &[Contrast],
        level: f64,
    ) -> f64 {
        let known = |arm: usize, baseline: usize| {
            contrasts
                .iter()
                .find(|c| (c.arm, c.baseline) == (arm, baseline) && c.nominal_level <= level)
                .map(|c| c.interval)
        };
        if let Some(interval) = known(arm, winner) {
            return interval.low;
        }
        if let Some(interval) = known(winner, arm) {
            return -interval.high;
        }
        let family = seen.family(&self.question, arm, winner);
        let estimate = inversion::estimate(family.as_ref());
        seen.interval(family.as_ref(), estimate, level, arm, winner)
            .low
    }
}

/// Holm's step-down: for each p-value, the number of arms that α was divided
/// by when it was judged. `levels[m − 1]` is the level for α/m; `elsewhere` are
/// further arms that are not rejected.
fn holm(p_values: &[f64], levels: &[f64], elsewhere: usize) -> Vec<usize> {
    let mut steps = vec![0; p_values.len()];
    let mut open: Vec<usize> = (0..p_values.len()).collect();
    open.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut still_open = open.len() + elsewhere;
    for &index in &open {
        steps[index] = still_open.max(1);
        if still_open > 1 && p_values[index] <= levels[still_open - 1] {
            still_open -= 1;
        } else {
            break;
        }
    }
    for step in &mut steps {
        if *step == 0 {
            *step = still_open.max(1);
        }
    }
    steps
}

/// Correlation of the signed sums before and now under random signs, when the earlier blocks are
/// the first of the present ones.
fn correlation(before: &[f64], now: &[f64]) -> f64 {
    let shared: f64 = before.iter().zip(now).map(|(a, b)| a * b).sum();
    let square = |scores: &[f64]| scores.iter().map(|s| s * s).sum::<f64>();
    let scale = (square(before) * square(now)).sqrt();
    if scale > 0.0 { shared / scale } else { 0.0 }
}

#[cfg(test)]
mod tests;
