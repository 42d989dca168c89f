//! Caveats: reasons against a verdict although its interval is clear.
//!
//! The random order makes a comparison fair between runs as they were made. It
//! does not make the answer hold elsewhere: an arm may leave a mess for whatever
//! runs next, warm up alone, gain under load only, or be better in most runs and
//! much worse in the others. The order that was drawn identifies each of these,
//! so each is tested, and what contradicts a verdict withholds it.
//!
//! * *Load*: do the differences depend on how loaded the machine was?
//! * *Order*: do they depend on which arm ran before? A run's predecessor is as
//!   random as its place, so that half of the blocks (of two arms) compare both
//!   after the same predecessor.
//! * *Time*: do they change while the experiment goes on, early on most of all?
//! * *Tail*: do mean and 90th percentile say the opposite of the typical run?
//!
//! The first three are tests by [`interaction`]: those on load and order at 1 % over all arms, the
//! one on time at 2.5 %. A caveat that fires does not make a verdict wrong. The verdict stays if
//! the unaffected blocks (those after equal predecessors; those of the second half) give it as
//! well, or if the change over time is small compared with the difference itself; half of a few
//! blocks decides nothing alone. The last caveat is not a test: one chance in two that the mean
//! lies on the other side is enough to claim neither. Before the end, and with few blocks, less is
//! enough: one or two of ten runs may have been slow by chance, and whether a tenth of all runs is
//! slow cannot be known yet.

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
pub use load::{LoadLevel, LoadLevels};

/// Chance of a false alarm of each test, over all arms.
const ALARM: f64 = 0.01;
/// Fewer blocks than this are not tested.
const MIN_BLOCKS: usize = 8;
/// Share of the whole estimate that every part must have.
const MIN_SHARE: f64 = 0.5;

/// p-values from which on down an opposite percentile contradicts a claim, and an
/// opposite mean.
const OPPOSITE_PERCENTILE: f64 = 0.25;
const OPPOSITE_MEAN: f64 = 0.5;
/// The latter before the end and in few blocks.
const OPPOSITE_MEAN_OF_FEW: f64 = 0.8;
/// p-values from which on down another judge's estimate contradicts "the same", at the
/// last look and before.
const NOT_SAME: f64 = 0.1;
const NOT_SAME_EARLIER: f64 = 0.5;

/// A mean that is this many times the smallest effect of interest away is not the
/// same, whatever its test says: one slow run of ten proves nothing and may be
/// one of many.
const FAR_FROM_SAME: f64 = 2.0;

/// What happened around the runs of the blocks, in time order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Circumstances {
    /// Place of each column within its block: `slots[block][column]`.
    pub slots: Vec<Vec<usize>>,
    /// The column that ran right before each column's run; `None` if that was no run of this
    /// experiment.
    pub before: Vec<Vec<Option<usize>>>,
    /// How loaded the machine was, in any unit; `None` if unknown.
    pub load: Vec<Option<f64>>,
}

impl Circumstances {
    /// The same of only the columns `kept`; a predecessor that is not among
    /// them is nothing of the experiment any more.
    #[must_use]
    pub fn with_columns(&self, kept: &[usize]) -> Self {
        let place = |column: usize| kept.iter().position(|&k| k == column);
        let of_kept = |row: &Vec<Option<usize>>| -> Vec<Option<usize>> {
            kept.iter().map(|&k| row[k].and_then(place)).collect()
        };
        Self {
            slots: self
                .slots
                .iter()
                .map(|row| kept.iter().map(|&column| row[column]).collect())
                .collect(),
            before: self.before.iter().map(of_kept).collect(),
            load: self.load.clone(),
        }
    }
}

/// Typical `ln(ratio)` in two parts of the blocks, between which it differs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// In the first part: light load, after equal predecessors, early.
    pub first: f64,
    /// In the second: heavy load, after unequal predecessors, late.
    pub second: f64,
    /// Does it contradict the verdict?
    pub contradicts: bool,
}

/// Another judge's estimate and interval, `ln(ratio)`, at the level of the
/// contrast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Other {
    /// What it judges.
    pub judge: Judge,
    /// Estimate.
    pub estimate: f64,
    /// Interval at the contrast's level, for itself.
    pub interval: Interval,
    /// Does it contradict the verdict?
    pub contradicts: bool,
}

/// A block whose predecessor is known.
struct BlockWithPredecessor {
    difference: f64,
    /// The columns before the arm's and the baseline's run.
    before: (usize, usize),
    /// The column that ran last before the block.
    last: usize,
    /// From that run to the block's first one; `None` if one of them is another arm's.
    step: Option<f64>,
    /// Did the arm run before the baseline?
    is_arm_first: bool,
}

impl BlockWithPredecessor {
    /// Neither run was the only one to follow arm or baseline.
    fn is_even(&self, arm: usize, baseline: usize) -> bool {
        let (a, b) = self.before;
        (a == arm) == (b == arm) && (a == baseline) == (b == baseline)
    }
}

/// All caveats on the verdict of an arm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Caveats {
    /// The difference depends on load: lightest and heaviest third.
    pub load: Option<Split>,
    /// The difference by load, whether it depends on it or not.
    pub by_load: Option<LoadLevels>,
    /// On what ran before: after equal and unequal predecessors.
    pub order: Option<Split>,
    /// On time: first and last third.
    pub time: Option<Split>,
    /// What the other judges say.
    pub others: Vec<Other>,
    /// What medians and means say, if they contradict the interval.
    pub centres: Option<Centres>,
    /// Before the end: some more blocks are worth waiting for.
    pub is_early: bool,
}

impl Caveats {
    /// Does load change the answer's sign, or by more than its size?
    #[must_use]
    pub fn depends_on_load(&self) -> bool {
        self.load.is_some_and(|split| split.contradicts)
    }

    /// Does what ran before make the answer?
    #[must_use]
    pub fn depends_on_order(&self) -> bool {
        self.order.is_some_and(|split| split.contradicts)
    }

    /// Is the answer only that of the beginning?
    #[must_use]
    pub fn depends_on_time(&self) -> bool {
        self.time.is_some_and(|split| split.contradicts)
    }

    /// Do mean or percentile say the opposite, or medians or means something else?
    #[must_use]
    pub fn depends_on_tail(&self) -> bool {
        self.centres.is_some() || self.others.iter().any(|other| other.contradicts)
    }

    /// The caveats that speak for a slow-down of this size or more, `ln(ratio)`: all that matters
    /// if the interval rules one out. That other runs, other times or the tail are faster, or
    /// differ by less, says nothing against it.
    #[must_use]
    pub fn of_slower(&self, delta: f64) -> Self {
        let is_slower = |split: &Split| split.first.max(split.second) >= delta;
        let says_slower = |centres: &Centres| centres.median.max(centres.mean) >= delta;
        let mut others = self.others.clone();
        for other in &mut others {
            other.contradicts &= other.estimate >= delta;
        }
        Self {
            load: self.load.filter(is_slower),
            order: self.order.filter(is_slower),
            time: self.time.filter(is_slower),
            centres: self.centres.filter(says_slower),
            others,
            ..self.clone()
        }
    }

    /// Is the verdict withheld? Load that changes the size alone withholds
    /// only the advice.
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
    /// What judged it.
    pub judge: Judge,
    /// Its estimate, `ln(ratio)`.
    pub estimate: f64,
    /// Nominal level of the look.
    pub level: f64,
    /// Smallest effect of interest, `ln(ratio)`.
    pub delta: f64,
    /// What its interval says.
    pub decision: Decision,
    /// Number of contrasts.
    pub contrasts: usize,
    /// Blocks that may still come; 0 at the last look.
    pub blocks_left: f64,
}

impl JudgedContrast {
    /// Is there no later look?
    fn is_last(&self) -> bool {
        self.blocks_left <= 0.0
    }

    /// Looks for all of them; `interval` is the one that was decided by.
    #[must_use]
    pub fn caveats(&self, data: &Responses, around: &Circumstances, interval: Interval) -> Caveats {
        let mut caveats = Caveats {
            others: self.others(data),
            centres: self.centres(data, interval),
            ..Caveats::default()
        };
        let differences = data.differences(self.arm, self.baseline);
        caveats.is_early = self.is_early(data, &differences, around);
        if data.blocks() >= MIN_BLOCKS {
            caveats.by_load = LoadLevels::from_differences(&differences, around);
            caveats.load = caveats
                .by_load
                .and_then(|levels| self.load(&differences, around, &levels));
            caveats.order = self.order(data, around);
            caveats.time = self.time(&differences);
        }
        caveats
    }

    fn is_alarming(&self, z: f64) -> bool {
        self.is_beyond(z, ALARM)
    }

    /// Does a test with this chance of a false alarm over all arms fire?
    fn is_beyond(&self, z: f64, alarm: f64) -> bool {
        2.0 * normal::upper_tail(z.abs()) < alarm / self.contrasts.max(1) as f64
    }

    /// What these differences alone would have said.
    fn decision_of(&self, differences: Vec<f64>) -> Decision {
        let pairs = Paired::without_weights(differences).redescending();
        let interval = interval_around(&pairs, estimate(&pairs), self.level);
        decide(interval, self.delta)
    }

    /// What an arm leaves behind shows in the step from the last run of a block to the first run of
    /// the next: it goes up after the arm that leaves something, whichever comes next, and both
    /// were drawn at random. An arm may also do better or worse after itself than after others;
    /// then, with the difference between the arms removed, the second run of a block differs from
    /// the first by more or less if the previous block ended with the arm that begins this one.
    fn order(&self, data: &Responses, around: &Circumstances) -> Option<Split> {
        let known = self.known_blocks(data, around)?;
        let own: Vec<f64> = known.iter().map(|block| block.difference).collect();
        if !self.is_alarming_of_two(self.left_behind_z(&known))
            && !self.is_alarming_of_two(self.repetition_z(&known))
        {
            return None;
        }
        let is_even = |at: usize| known[at].is_even(self.arm, self.baseline);
        let even = part(&own, is_even);
        let first = typical(even.clone())?;
        // After itself, and after the baseline: an arm that is only better after
        // the other is not better.
        let either = [true, false].map(|is_arm_first| {
            typical(part(&own, |at| {
                is_even(at) && known[at].is_arm_first == is_arm_first
            }))
        });
        let is_lopsided = either.iter().flatten().any(|half| half / first < MIN_SHARE);
        Some(Split {
            first,
            second: typical(part(&own, |at| !is_even(at)))?,
            contradicts: is_lopsided || self.decision_of(even) != self.decision,
        })
    }

    fn is_alarming_of_two(&self, z: Option<f64>) -> bool {
        z.is_some_and(|z| self.is_beyond(z, ALARM / 2.0))
    }

    /// Standard normal if no arm leaves anything behind; positive if what the arm leaves costs more
    /// than what the baseline leaves.
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
        interaction::z(&steps, &after)
    }

    /// Standard normal if arms run alike after themselves and after others.
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
        interaction::z(&by_place, &even)
    }

    /// Blocks for which it is known what ran right before; `None` if there are too few.
    fn known_blocks(
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
        // The response of a column's run, the arms aligned.
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

    fn others(&self, data: &Responses) -> Vec<Other> {
        [Judge::Typical, Judge::Mean, Judge::Percentile(90)]
            .into_iter()
            .filter(|&judge| judge != self.judge)
            .map(|judge| self.other(judge, data))
            .collect()
    }

    fn other(&self, judge: Judge, data: &Responses) -> Other {
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

    /// A user who asks for the typical run is warned by a chance of one in two that the mean lies
    /// on the other side; one who asks for the mean or a percentile has said which matters, and
    /// only certainty of the opposite counts.
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
            let certain = decide(interval, self.delta);
            return matches!(
                (self.decision, certain),
                (Decision::Faster, Decision::Slower) | (Decision::Slower, Decision::Faster)
            );
        }
        let is_few = !self.is_last() && family.blocks() < early::MIN_RUNS_FOR_SAME;
        let level = match judge {
            Judge::Mean if is_few => OPPOSITE_MEAN_OF_FEW,
            Judge::Mean => OPPOSITE_MEAN,
            _ => OPPOSITE_PERCENTILE,
        };
        side * estimate > 0.0 && p_value(family, 0.0) <= level
    }
}

fn part(differences: &[f64], is_in: impl Fn(usize) -> bool) -> Vec<f64> {
    let all = differences.iter().enumerate();
    all.filter(|(block, _)| is_in(*block))
        .map(|(_, d)| *d)
        .collect()
}

fn typical(differences: Vec<f64>) -> Option<f64> {
    let estimate = hodges_lehmann(&differences);
    estimate.is_finite().then_some(estimate)
}

#[cfg(test)]
mod tests;
