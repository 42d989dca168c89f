//! Caveats: reasons against a verdict although its interval is clear.
//!
//! The random order makes the comparison of these runs fair. But the answer may not hold elsewhere:
//! an arm may slow down whatever runs next, be slow until it has warmed up, gain only under load, or
//! be better in most runs and much worse in the others. The random order lets each of these be
//! tested; a caveat that contradicts the verdict withholds it.
//!
//! * *Load*: do the differences depend on how loaded the machine was?
//! * *Order*: do they depend on which arm ran before? Predecessors are random, too, so that with two
//!   arms half of the blocks compare both arms after the same predecessor.
//! * *Time*: do they change during the experiment, above all in its beginning?
//! * *Tail*: do the mean and the 90th percentile contradict the typical run?
//!
//! The first three are tests by [`interaction`]; the error over all arms is 1 % for load and for
//! order, and 2.5 % for time. A positive test does not make a verdict wrong. The verdict stays if
//! the unaffected blocks alone give it as well (those after equal predecessors; those of the second
//! half), or if the change over time is small compared with the difference.
//!
//! The caveat on the tail is not a test: a chance of one half that the mean lies on the other side
//! is enough to withhold the verdict. Before the end, and with few blocks, less is enough: one or
//! two of ten runs may have been slow by chance, and it cannot be known yet whether a tenth of all
//! runs is slow.

use super::decision::{Decision, decide};
use super::inversion::{Family, estimate, interval_around, p_value};
use super::judge::Judge;
use super::paired::{Interval, Paired, hodges_lehmann};
use super::{Responses, interaction, normal};

mod centres;
mod early;
mod load;
mod time;

pub use centres::Centres;
pub(super) use early::MIN_RUNS_FOR_SAME;
pub use load::{LoadLevel, LoadLevels};

/// Chance of a false alarm of each test, over all arms.
const ALARM: f64 = 0.01;
/// Fewer blocks than this are not tested.
const MIN_BLOCKS: usize = 8;
/// A part of the blocks contradicts a claim if its estimate is below this share of the whole one.
const MIN_SHARE: f64 = 0.5;

/// A percentile on the opposite side contradicts a claim if its p-value is at most this.
const OPPOSITE_PERCENTILE: f64 = 0.25;
/// The same for the mean.
const OPPOSITE_MEAN: f64 = 0.5;
/// The same for the mean of few blocks before the end.
const OPPOSITE_MEAN_OF_FEW: f64 = 0.8;
/// At the last look, another judge's estimate beyond δ contradicts "the same" if its p-value is at
/// most this.
const NOT_SAME: f64 = 0.1;
/// The same at earlier looks.
const NOT_SAME_EARLIER: f64 = 0.5;

/// A mean beyond this many δ contradicts "the same" whatever its p-value: one slow run of ten proves
/// nothing, but may be one of many.
const FAR_FROM_SAME: f64 = 2.0;

/// Under which circumstances the blocks ran, in time order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Circumstances {
    /// Position of each column within its block: `slots[block][column]`.
    pub slots: Vec<Vec<usize>>,
    /// The column that ran right before: `before[block][column]`; `None` if no run of this
    /// experiment did.
    pub before: Vec<Vec<Option<usize>>>,
    /// How loaded the machine was, in any unit; `None` if unknown.
    pub load: Vec<Option<f64>>,
}

impl Circumstances {
    /// The circumstances of only the columns `kept`; other predecessors become `None`.
    #[must_use]
    pub fn with_columns(&self, kept: &[usize]) -> Self {
        let place = |column: usize| kept.iter().position(|&k| k == column);
        let keep = |row: &Vec<Option<usize>>| -> Vec<Option<usize>> {
            kept.iter().map(|&k| row[k].and_then(place)).collect()
        };
        Self {
            slots: self
                .slots
                .iter()
                .map(|row| kept.iter().map(|&column| row[column]).collect())
                .collect(),
            before: self.before.iter().map(keep).collect(),
            load: self.load.clone(),
        }
    }
}

/// The typical `ln(ratio)` in two parts of the blocks, in which it differs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// In the first part: under light load, after equal predecessors, or early.
    pub first: f64,
    /// In the second part: under heavy load, after unequal predecessors, or late.
    pub second: f64,
    /// Does it contradict the verdict?
    pub contradicts: bool,
}

/// The estimate and interval of another judge, `ln(ratio)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Other {
    /// The judge.
    pub judge: Judge,
    /// Its estimate.
    pub estimate: f64,
    /// Its interval at the level of the contrast.
    pub interval: Interval,
    /// Does it contradict the verdict?
    pub contradicts: bool,
}

/// A block of which it is known what ran before.
struct BlockWithPredecessor {
    difference: f64,
    /// The columns that ran before the arm and before the baseline.
    before: (usize, usize),
    /// The column that ran last before the block.
    last: usize,
    /// The response of the block's first run less that of the last run before it; `None` if one of
    /// them is a third arm's.
    step: Option<f64>,
    /// Did the arm run before the baseline?
    is_arm_first: bool,
}

impl BlockWithPredecessor {
    /// Did both runs have equal predecessors, as far as arm and baseline are concerned?
    fn is_even(&self, arm: usize, baseline: usize) -> bool {
        let (a, b) = self.before;
        (a == arm) == (b == arm) && (a == baseline) == (b == baseline)
    }
}

/// All caveats on the verdict of an arm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Caveats {
    /// The difference depends on load: in the lightest and in the heaviest third.
    pub load: Option<Split>,
    /// The difference by load, whether it depends on it or not.
    pub by_load: Option<LoadLevels>,
    /// The difference depends on what ran before: after equal and after unequal predecessors.
    pub order: Option<Split>,
    /// The difference depends on time: in the first and in the last third.
    pub time: Option<Split>,
    /// The estimates of the other judges.
    pub others: Vec<Other>,
    /// Median and mean, if they contradict the interval.
    pub centres: Option<Centres>,
    /// It is too early: the verdict should wait for some more blocks.
    pub is_early: bool,
}

impl Caveats {
    /// Does load change the sign of the answer, or its size by more than itself?
    #[must_use]
    pub fn depends_on_load(&self) -> bool {
        self.load.is_some_and(|split| split.contradicts)
    }

    /// Does the answer depend on what ran before?
    #[must_use]
    pub fn depends_on_order(&self) -> bool {
        self.order.is_some_and(|split| split.contradicts)
    }

    /// Does the answer hold only for the beginning?
    #[must_use]
    pub fn depends_on_time(&self) -> bool {
        self.time.is_some_and(|split| split.contradicts)
    }

    /// Do the mean or the percentile contradict the answer, or median and mean the interval?
    #[must_use]
    pub fn depends_on_tail(&self) -> bool {
        self.centres.is_some() || self.others.iter().any(|other| other.contradicts)
    }

    /// Only the caveats that suggest a slow-down of at least this size, `ln(ratio)`: no others matter
    /// if the interval rules such a slow-down out.
    #[must_use]
    pub fn only_slower(&self, delta: f64) -> Self {
        let is_slower = |split: &Split| split.first.max(split.second) >= delta;
        let has_slower = |centres: &Centres| centres.median.max(centres.mean) >= delta;
        let mut others = self.others.clone();
        for other in &mut others {
            other.contradicts &= other.estimate >= delta;
        }
        Self {
            load: self.load.filter(is_slower),
            order: self.order.filter(is_slower),
            time: self.time.filter(is_slower),
            centres: self.centres.filter(has_slower),
            others,
            ..self.clone()
        }
    }

    /// Do the caveats withhold the verdict? If load changes only the size of a difference, they do
    /// not.
    #[must_use]
    pub fn withholds(&self) -> bool {
        let load_turns = self
            .load
            .is_some_and(|split| split.contradicts && split.first * split.second < 0.0);
        load_turns
            || self.is_early
            || self.depends_on_order()
            || self.depends_on_time()
            || self.depends_on_tail()
    }
}

/// A contrast as it was judged before any caveat.
#[derive(Debug, Clone, Copy)]
pub struct JudgedContrast {
    /// Column of the arm.
    pub arm: usize,
    /// Column of the baseline.
    pub baseline: usize,
    /// The judge.
    pub judge: Judge,
    /// The estimate, `ln(ratio)`.
    pub estimate: f64,
    /// Nominal level of the look.
    pub level: f64,
    /// Smallest effect of interest δ, `ln(ratio)`.
    pub delta: f64,
    /// The decision by the interval alone.
    pub decision: Decision,
    /// Number of contrasts of the comparison.
    pub contrasts: usize,
    /// Blocks that may still come; 0 at the last look.
    pub blocks_left: f64,
}

impl JudgedContrast {
    /// Is there no later look?
    fn is_last(&self) -> bool {
        self.blocks_left <= 0.0
    }

    /// Finds all caveats; `interval` is the one that the decision follows from.
    #[must_use]
    pub fn find_caveats(
        &self,
        data: &Responses,
        around: &Circumstances,
        interval: Interval,
    ) -> Caveats {
        let mut caveats = Caveats {
            others: self.ask_others(data),
            centres: self.find_other_centres(data, interval),
            ..Caveats::default()
        };
        let differences = data.differences(self.arm, self.baseline);
        caveats.is_early = self.is_early(data, &differences, around);
        if data.blocks() >= MIN_BLOCKS {
            caveats.by_load = LoadLevels::from_differences(&differences, around);
            caveats.load = caveats
                .by_load
                .and_then(|levels| self.split_by_load(&differences, around, &levels));
            caveats.order = self.split_by_order(data, around);
            caveats.time = self.split_by_time(&differences);
        }
        caveats
    }

    fn is_alarming(&self, z: f64) -> bool {
        self.is_beyond(z, ALARM)
    }

    /// Is a test positive that has this chance of a false alarm over all arms?
    fn is_beyond(&self, z: f64, alarm: f64) -> bool {
        2.0 * normal::upper_tail(z.abs()) < alarm / self.contrasts.max(1) as f64
    }

    /// The decision by these differences alone.
    fn decide_by(&self, differences: Vec<f64>) -> Decision {
        let pairs = Paired::without_weights(differences).redescending();
        let interval = interval_around(&pairs, estimate(&pairs), self.level);
        decide(interval, self.delta)
    }

    /// Tests whether the difference depends on the order of runs.
    ///
    /// An arm may slow down whatever runs next. Then the step from the last run of a block to the
    /// first run of the next block is higher after that arm; both runs were drawn at random. Or an
    /// arm may do better or worse after itself than after others. Then, with the difference between
    /// the arms removed, the second run of a block differs from the first in another way if the
    /// previous block ended with the arm that begins this one.
    fn split_by_order(&self, data: &Responses, around: &Circumstances) -> Option<Split> {
        let known = self.list_known_blocks(data, around)?;
        let own: Vec<f64> = known.iter().map(|block| block.difference).collect();
        if !self.is_alarming_of_two(self.left_behind_z(&known))
            && !self.is_alarming_of_two(self.repetition_z(&known))
        {
            return None;
        }
        let is_even = |at: usize| known[at].is_even(self.arm, self.baseline);
        let even = select(&own, is_even);
        let first = estimate_typical(even.clone())?;
        // The arm must be better both after itself and after the baseline.
        let halves = [true, false].map(|is_arm_first| {
            estimate_typical(select(&own, |at| {
                is_even(at) && known[at].is_arm_first == is_arm_first
            }))
        });
        let is_lopsided = halves.iter().flatten().any(|half| half / first < MIN_SHARE);
        Some(Split {
            first,
            second: estimate_typical(select(&own, |at| !is_even(at)))?,
            contradicts: is_lopsided || self.decide_by(even) != self.decision,
        })
    }

    fn is_alarming_of_two(&self, z: Option<f64>) -> bool {
        z.is_some_and(|z| self.is_beyond(z, ALARM / 2.0))
    }

    /// Standard normal if no arm affects the next run; positive if the run after the arm takes
    /// longer than that after the baseline.
    fn left_behind_z(&self, known: &[BlockWithPredecessor]) -> Option<f64> {
        let steps: Vec<(f64, f64)> = known
            .iter()
            .filter_map(|block| {
                let after = match block.last {
                    last if last == self.arm => 1.0,
                    last if last == self.baseline => -1.0,
                    _ => return None,
                };
                Some((block.step?, after))
            })
            .collect();
        let (steps, after): (Vec<f64>, Vec<f64>) = steps.into_iter().unzip();
        interaction::z_of_dependence(&steps, &after)
    }

    /// Standard normal if arms do as well after themselves as after others.
    fn repetition_z(&self, known: &[BlockWithPredecessor]) -> Option<f64> {
        let own: Vec<f64> = known.iter().map(|block| block.difference).collect();
        let centre = hodges_lehmann(&own);
        let by_place: Vec<f64> = known
            .iter()
            .map(|block| {
                let sign = if block.is_arm_first { -1.0 } else { 1.0 };
                sign * (block.difference - centre)
            })
            .collect();
        let is_even = |block: &BlockWithPredecessor| {
            f64::from(u8::from(block.is_even(self.arm, self.baseline)))
        };
        let even: Vec<f64> = known.iter().map(is_even).collect();
        interaction::z_of_dependence(&by_place, &even)
    }

    /// Lists the blocks of which it is known what ran before; `None` if there are too few.
    fn list_known_blocks(
        &self,
        data: &Responses,
        around: &Circumstances,
    ) -> Option<Vec<BlockWithPredecessor>> {
        if around.before.len() != data.blocks() {
            return None;
        }
        let rows: Vec<&[f64]> = data.rows().collect();
        let differences = data.differences(self.arm, self.baseline);
        let centre = hodges_lehmann(&differences);
        // The response of a column's run, with the difference between the arms removed.
        let aligned = |block: usize, column: usize| {
            let shift = if column == self.arm { centre } else { 0.0 };
            rows[block][column] - shift
        };
        let is_one = |column: &usize| *column == self.arm || *column == self.baseline;
        let known: Vec<BlockWithPredecessor> = (0..rows.len())
            .filter_map(|block| {
                let slots = &around.slots[block];
                let before = &around.before[block];
                let first = slots.iter().position(|&slot| slot == 0)?;
                let last = before[first]?;
                let is_next = block > 0 && is_one(&first) && is_one(&last);
                Some(BlockWithPredecessor {
                    difference: differences[block],
                    before: (before[self.arm]?, before[self.baseline]?),
                    last,
                    step: is_next.then(|| aligned(block, first) - aligned(block - 1, last)),
                    is_arm_first: slots[self.arm] < slots[self.baseline],
                })
            })
            .collect();
        (known.len() >= MIN_BLOCKS).then_some(known)
    }

    /// The estimates of the judges that were not asked for.
    fn ask_others(&self, data: &Responses) -> Vec<Other> {
        [Judge::Typical, Judge::Mean, Judge::Percentile(90)]
            .into_iter()
            .filter(|&judge| judge != self.judge)
            .map(|judge| self.ask(judge, data))
            .collect()
    }

    fn ask(&self, judge: Judge, data: &Responses) -> Other {
        let family = judge.family(data, self.arm, self.baseline);
        let estimate = estimate(family.as_ref());
        let interval = interval_around(family.as_ref(), estimate, self.level);
        Other {
            judge,
            estimate,
            interval,
            contradicts: self.is_contradicted(judge, family.as_ref(), estimate, interval),
        }
    }

    /// Does another judge contradict the decision? If the typical run was asked for, a chance of one
    /// half that the mean lies on the other side is enough. If the mean or a percentile was asked
    /// for, only a clear decision for the opposite is.
    fn is_contradicted(
        &self,
        judge: Judge,
        family: &dyn Family,
        estimate: f64,
        interval: Interval,
    ) -> bool {
        let side = match self.decision {
            Decision::Faster => 1.0,
            Decision::Slower => -1.0,
            Decision::Same if self.judge == Judge::Typical => {
                let limit = match self.is_last() {
                    true => NOT_SAME,
                    false => NOT_SAME_EARLIER,
                };
                return estimate.abs() > self.delta
                    && judge != Judge::Typical
                    && (p_value(family, 0.0) <= limit
                        || judge == Judge::Mean && estimate.abs() > FAR_FROM_SAME * self.delta);
            }
            Decision::Same | Decision::Undecided => return false,
        };
        if self.judge != Judge::Typical {
            let by_other = decide(interval, self.delta);
            return matches!(
                (self.decision, by_other),
                (Decision::Faster, Decision::Slower) | (Decision::Slower, Decision::Faster)
            );
        }
        let is_few = !self.is_last() && family.blocks() < MIN_RUNS_FOR_SAME;
        let level = match judge {
            Judge::Mean if is_few => OPPOSITE_MEAN_OF_FEW,
            Judge::Mean => OPPOSITE_MEAN,
            _ => OPPOSITE_PERCENTILE,
        };
        side * estimate > 0.0 && p_value(family, 0.0) <= level
    }
}

/// The values of the blocks that fulfil a condition.
fn select(values: &[f64], is_in: impl Fn(usize) -> bool) -> Vec<f64> {
    let all = values.iter().enumerate();
    all.filter(|(block, _)| is_in(*block))
        .map(|(_, value)| *value)
        .collect()
}

fn estimate_typical(differences: Vec<f64>) -> Option<f64> {
    let estimate = hodges_lehmann(&differences);
    estimate.is_finite().then_some(estimate)
}

#[cfg(test)]
mod tests;
