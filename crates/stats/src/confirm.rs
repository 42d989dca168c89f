//! Compares several arms with a baseline, at one family-wise error level.
//!
//! The [`Judge`] says which statistic of the runs is compared. At every look, Holm's procedure
//! (1979) runs over group-sequential levels for α, α/2 … α/m (valid for spending functions whose
//! levels grow with α: Maurer and Bretz 2013). The interval of an arm is at the level at which Holm
//! judged it, so that verdict and interval always agree.
//!
//! To find the best arm, the winner is also compared with all others (Hsu's multiple comparisons
//! with the best, 1984): by how much could any of them still be better?

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
/// as normal and the weights as fixed beforehand, which is not quite true; the rest makes up for
/// that and for unusual noise.
const GUARD: f64 = 0.8;

/// Means of fewer runs are not judged before the end, as noise may be skewed.
const MIN_RUNS_FOR_MEANS: usize = 24;

/// The smallest difference that still has a sign, `ln(ratio)`.
const MIN_DIFFERENCE: f64 = 1e-9;

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

/// What a comparison is to find out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// The statistic of the runs that is judged.
    pub judge: Judge,
    /// How blocks are weighted.
    pub score: Score,
    /// Family-wise two-sided error.
    pub alpha: f64,
    /// Smallest effect of interest, `ln(ratio)`.
    pub delta: f64,
    /// The kind of figure that is compared.
    pub figure: Figure,
    /// Is the figure the inverse of the cost?
    pub is_rate: bool,
    /// May the comparison go on without a limit, until it is settled?
    pub is_open_ended: bool,
}

impl Question {
    /// The two-sided error that each of `contrasts` can spend in total.
    fn error_of_one(&self, contrasts: usize) -> f64 {
        GUARD * self.alpha / contrasts.max(1) as f64
    }

    /// The fewest blocks that allow a claim on this many contrasts. For a percentile only the runs
    /// beyond it count, of which both arms together need as many.
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

    /// How the error is spent over the looks. Statistics that a few runs may dominate spend it late.
    fn choose_spending(&self, contrasts: usize) -> Spending {
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

    /// The schedule of looks for this many contrasts.
    #[must_use]
    pub fn schedule(&self, contrasts: usize) -> Schedule {
        let least = match self.judge {
            Judge::Mean => MIN_RUNS_FOR_MEANS,
            Judge::Typical | Judge::Percentile(_) => MIN_PAIRS,
        };
        Schedule::new(self.choose_spending(contrasts), least)
    }
}

/// The comparison of arms with a baseline over all looks.
#[derive(Debug, Clone)]
pub struct Confirmation {
    pairs: Vec<Pair>,
    /// Columns that compete with each other, their baseline first: each is compared with the best
    /// of its group.
    rivals: Vec<Vec<usize>>,
    question: Question,
    /// The value that looks for claims test, `ln(ratio)`: 0, or a limit.
    tested: f64,
    /// Number of dropped contrasts whose difference was not shown: they still share the error.
    open_elsewhere: usize,
    /// One design per number of arms that Holm may divide α by, from 1.
    designs: Vec<GroupSequential>,
    /// Sizes of the scores at the previous look, one list per contrast.
    scores_before: Vec<Vec<f64>>,
}

/// The test of a pair at a look.
struct PairTest {
    pair: Pair,
    p_value: f64,
    /// The number of arms that Holm divided α by.
    step: usize,
    /// The nominal level that follows.
    level: f64,
}

/// The data of one look.
struct LookData<'a> {
    /// Responses as measured.
    data: &'a Responses,
    /// The figures of every arm as measured, in their own unit.
    columns: Vec<Vec<f64>>,
    judge: Judge,
    /// Responses after spreading a coarse figure's values over its steps.
    spread: Responses,
    resolution: Option<Resolution>,
    /// Mean response of each block.
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
                agreement::choose_score(plain, sharp)
            }
        }
    }

    /// The interval, widened by the error that a coarse figure may cause.
    fn widened_interval(
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
        let bias = resolution.max_bias(arm, self.judge) + resolution.max_bias(baseline, self.judge);
        let wider = Interval {
            low: interval.low - bias,
            high: interval.high + bias,
        };
        if interval.holds(0.0) || !resolution.is_ordered(arm, baseline) {
            return wider;
        }
        match interval.low > 0.0 {
            true => Interval {
                low: wider.low.max(MIN_DIFFERENCE),
                ..wider
            },
            false => Interval {
                high: wider.high.min(-MIN_DIFFERENCE),
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
            .map(|m| GroupSequential::new(question.choose_spending(m)))
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

    /// Looks for claims then test whether every arm is slower by more than `limit`, `ln(ratio)`,
    /// instead of whether it differs.
    #[must_use]
    pub fn with_limit(mut self, limit: Option<f64>) -> Self {
        self.tested = limit.unwrap_or(0.0);
        self
    }

    /// Continues with only the columns `kept` (ascending, the baseline among them). Error that was
    /// spent stays spent.
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

    /// Continues without the arms of `dropped`, whose verdicts are final. Those whose difference was
    /// not shown still share the error.
    pub fn drop_arms(&mut self, dropped: &[Contrast], kept: &[usize]) {
        let is_rejected = |c: &Contrast| !c.interval.holds(0.0);
        self.open_elsewhere += dropped.iter().filter(|c| !is_rejected(c)).count();
        self.keep_columns(kept);
    }

    /// Looks at the data, with `most` blocks possible in total. Every call spends error: call it only
    /// when the schedule says so, and a last time with `most` blocks done. `None` if `depth` asks
    /// only for claims and not every arm allows one.
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
        // A cheap check first: the plain test rejects whatever the closed one rejects.
        let level = levels.first().copied().unwrap_or(0.0);
        let is_open = |family: &dyn Family| inversion::p_value(family, self.tested) > level;
        if depth == Depth::Claims && families.iter().any(|family| is_open(family.as_ref())) {
            return None;
        }
        let p_values: Vec<f64> = families
            .iter()
            .map(|family| inversion::closed_p_value(family.as_ref(), 0.0))
            .collect();
        let steps = holm_steps(&p_values, &levels, self.open_elsewhere);
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
                self.judge_contrast(&test, families[index].as_ref(), &seen)
            })
            .collect();
        Some(self.summarise(&seen, contrasts, &levels))
    }

    /// Nominal levels for α, α/2 … α/m at this look. Of the contrasts' correlations with the look
    /// before, the smallest is used, which is the cautious choice.
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
            .map(|design| design.add_look(blocks, most, least))
            .collect()
    }

    fn judge_contrast(
        &self,
        test: &PairTest,
        family: &dyn Family,
        seen: &LookData<'_>,
    ) -> Contrast {
        let &PairTest {
            pair: Pair { arm, baseline },
            p_value,
            step,
            level,
        } = test;
        let Question { alpha, delta, .. } = self.question;
        let estimate = inversion::estimate(family);
        let mut interval = seen.widened_interval(family, estimate, level, arm, baseline);
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
        .find_caveats(&seen.spread, seen.around, interval);
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
                behind[arm] = self.lower_end(arm, winner, seen, &contrasts, strictest);
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

    /// Lower end of the interval of `arm` against `winner` at `level`. It is already known if one of
    /// them is the other's baseline and that level was used.
    fn lower_end(
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
        seen.widened_interval(family.as_ref(), estimate, level, arm, winner)
            .low
    }
}

/// Holm's step-down: for each p-value, the number of arms that α was divided by when it was judged.
/// `levels[m − 1]` is the level for α/m; `elsewhere` is the number of further arms that were not
/// rejected.
fn holm_steps(p_values: &[f64], levels: &[f64], elsewhere: usize) -> Vec<usize> {
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
