//! Chooses the leader and the arms to run next.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use pinwise_stats::surrogate::{Arms, Belief, Loss, probability_below, sd_of, shortfall};

/// Index of `os-default` among the arms.
pub(super) const DEFAULT: usize = 0;
/// Maximum number of challengers in a block, which also runs `os-default`.
const MAX_CHALLENGERS: usize = 4;
/// A challenger runs beside the most promising one if it promises at least this share of its gain.
const MIN_PROMISE_SHARE: f64 = 0.25;
/// The leader runs again if its standard deviation is at least this share of its challenger's.
const MIN_DEVIATION_SHARE: f64 = 1.0;
/// The joint distribution of at most this many rivals, the most promising ones, is sampled: the
/// others hardly matter, and the cost grows with the square.
const MAX_RIVALS: usize = 80;
/// A search ends if the expected loss is at most this many times the indifference zone, and if the
/// probability of a loss of [`LARGE_LOSS_FACTOR`] times the zone is at most the allowed error.
/// (Expected opportunity cost as a stopping rule: Chick and Inoue, Oper. Res. 2001; Branke, Chick and
/// Schmidt 2007. Half the zone costs a fifth more runs and saves no regret.)
const MAX_EXPECTED_LOSS: f64 = 1.0;
/// A loss of this many times the indifference zone is large.
pub(super) const LARGE_LOSS_FACTOR: f64 = 3.0;
/// If arms differ by more than this many times the zone for reasons that the model does not explain,
/// every arm is run.
const UNEXPLAINED_FACTOR: f64 = 8.0;
/// A probability above this is more likely than not.
pub(super) const MORE_LIKELY_THAN_NOT: f64 = 0.5;

/// The state of the arms so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    /// The arm to choose if the search ended now.
    pub(super) leader: usize,
    /// The loss in ln(cost) of choosing it rather than the best arm; probabilities that it exceeds
    /// the zone, and [`LARGE_LOSS_FACTOR`] times the zone.
    pub(super) loss: Loss,
    /// By arm: the expected improvement over the leader in ln(cost); worse outcomes count as 0.
    pub(super) promise: Vec<f64>,
    /// By arm: the probability that it beats the leader by more than the zone.
    pub(super) beats: Vec<f64>,
    /// Is the expected loss small enough to end the search?
    pub(super) is_settled: bool,
}

impl Standing {
    /// Probability that some arm beats the leader by more than the zone.
    pub(super) fn probability_of_better(&self) -> f64 {
        self.loss.exceeds[0].min(1.0)
    }
}

/// Parameters by which arms are judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// Indifference zone in ln(cost).
    pub(super) zone: f64,
    /// Allowed probability of a large loss.
    pub(super) error: f64,
    /// Factor by which variances are widened.
    pub(super) widening: f64,
    /// Seed of random samples.
    pub(super) seed: u64,
}

/// Judges the `open` arms, those that may still lead. The leader is the arm with the lowest expected
/// cost, but `os-default` if hardly any arm beats that: doing nothing needs no reason.
pub(super) fn judge_arms(belief: &Belief, open: &[usize], rule: &Rule) -> Standing {
    let doing_nothing = compare_with_leader(belief, DEFAULT, open, rule);
    if doing_nothing.is_settled {
        return doing_nothing;
    }
    let least = open
        .iter()
        .copied()
        .min_by(|&a, &b| belief.arm(a).mean.total_cmp(&belief.arm(b).mean));
    match least {
        Some(leader) if leader != DEFAULT && beats_default(belief, leader, rule) => {
            compare_with_leader(belief, leader, open, rule)
        }
        _ => doing_nothing,
    }
}

/// Does the arm more probably than not beat `os-default` by more than the zone?
pub(super) fn beats_default(belief: &Belief, arm: usize, rule: &Rule) -> bool {
    let differences = belief.difference(arm, DEFAULT);
    probability_below(&differences, -rule.zone, rule.widening) > MORE_LIKELY_THAN_NOT
}

fn compare_with_leader(belief: &Belief, leader: usize, open: &[usize], rule: &Rule) -> Standing {
    let mut promise = vec![0.0; belief.arms()];
    let mut beats = vec![0.0; belief.arms()];
    for &arm in open.iter().filter(|&&arm| arm != leader) {
        let differences = belief.difference(arm, leader);
        promise[arm] = shortfall(&differences, rule.widening);
        beats[arm] = probability_below(&differences, -rule.zone, rule.widening);
    }
    let mut rivals: Vec<usize> = open.iter().copied().filter(|&arm| arm != leader).collect();
    rivals.sort_by(|&a, &b| promise[b].total_cmp(&promise[a]));
    rivals.truncate(MAX_RIVALS);
    let mut rng = ChaCha8Rng::seed_from_u64(rule.seed);
    let bounds = [rule.zone, LARGE_LOSS_FACTOR * rule.zone];
    let loss = belief.estimate_loss(leader, &rivals, bounds, rule.widening, &mut rng);
    Standing {
        leader,
        is_settled: loss.expected <= MAX_EXPECTED_LOSS * rule.zone && loss.exceeds[1] <= rule.error,
        loss,
        promise,
        beats,
    }
}

/// The arms of the next block: `os-default`, the most promising challengers, and the leader if it is
/// hardly better known than they are.
pub(super) fn next_block(belief: &Belief, standing: &Standing, runs: &[usize]) -> Vec<usize> {
    let leader = standing.leader;
    let mut rivals: Vec<usize> = (0..standing.promise.len())
        .filter(|&arm| arm != DEFAULT && standing.promise[arm] > 0.0)
        .collect();
    rivals.sort_by(|&a, &b| standing.promise[b].total_cmp(&standing.promise[a]));
    let highest = rivals.first().map_or(0.0, |&arm| standing.promise[arm]);
    rivals.retain(|&arm| standing.promise[arm] >= MIN_PROMISE_SHARE * highest);
    rivals.truncate(MAX_CHALLENGERS);
    let sd = |arm: usize| sd_of(&belief.difference(arm, DEFAULT));
    let rival_sd = rivals.first().map_or(0.0, |&arm| sd(arm));
    let is_unknown = runs[leader] == 0 || sd(leader) >= MIN_DEVIATION_SHARE * rival_sd;
    let mut block = vec![DEFAULT];
    if leader != DEFAULT && (is_unknown || rivals.is_empty()) {
        block.push(leader);
    }
    block.extend(rivals);
    block
}

/// If arms differ for reasons that the model does not explain, a block of arms that never ran, the
/// most promising first; else `os-default` alone. The cost of such arms is a guess, and the best of
/// some dozens may be far better than predicted.
pub(super) fn unmeasured_block(
    belief: &Belief,
    standing: &Standing,
    runs: &[usize],
    open: &[usize],
    rule: &Rule,
) -> Vec<usize> {
    let own = belief.own_sd();
    let is_unexplained = own > UNEXPLAINED_FACTOR * rule.zone && own > belief.explained_sd();
    let never_ran = |arm: &usize| is_unexplained && runs[*arm] == 0 && *arm != DEFAULT;
    let arms = open.iter().copied().filter(never_ran).collect();
    block_of_highest(arms, &|arm| standing.promise[arm])
}

/// Finds the arm that never ran with the features farthest from those of all arms that did.
pub(super) fn find_farthest_unmeasured(
    arms: &Arms,
    runs: &[usize],
    open: &[usize],
) -> Option<usize> {
    let distance = |a: usize, b: usize| {
        let pairs = arms.features[a].iter().zip(&arms.features[b]);
        let squares = pairs.map(|(x, y)| (x - y).powi(2));
        squares.sum::<f64>()
    };
    let nearest = |arm: usize| {
        let ran = (0..runs.len()).filter(|&other| runs[other] > 0);
        ran.map(|other| distance(arm, other))
            .fold(f64::INFINITY, f64::min)
    };
    let never_ran = open.iter().copied().filter(|&arm| runs[arm] == 0);
    never_ran.max_by(|&a, &b| nearest(a).total_cmp(&nearest(b)))
}

/// Does the placement matter?
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Relevance {
    /// Yes: this arm is certainly slower than `os-default` by more than the zone.
    Matters(usize),
    /// No: the expected root mean square difference from `os-default` is only this, in ln(cost).
    HardlyMatters(f64),
    /// More runs are needed.
    Unknown,
}

/// Judges whether placement matters at all if nothing beats `os-default`.
pub(super) fn judge_relevance(belief: &Belief, open: &[usize], rule: &Rule) -> Relevance {
    /// Among some dozens of arms, one exceeds 0.99 by chance in a search of twenty.
    const MIN_PROBABILITY: f64 = 0.998;
    /// Placements that typically differ by no more than this many zones hardly matter.
    const MAX_ZONES: f64 = 2.5;
    let others: Vec<usize> = open.iter().copied().filter(|&arm| arm != DEFAULT).collect();
    let slower = |arm: usize| {
        1.0 - probability_below(&belief.difference(arm, DEFAULT), rule.zone, rule.widening)
    };
    let probabilities = others.iter().map(|&arm| (arm, slower(arm)));
    if let Some((arm, _)) = probabilities
        .filter(|(_, probability)| *probability >= MIN_PROBABILITY)
        .max_by(|a, b| a.1.total_cmp(&b.1))
    {
        return Relevance::Matters(arm);
    }
    let squares: f64 = others
        .iter()
        .map(|&arm| expected_square_difference(belief, arm))
        .sum();
    let typical = (squares / others.len().max(1) as f64).sqrt();
    if typical <= MAX_ZONES * rule.zone {
        Relevance::HardlyMatters(typical)
    } else {
        Relevance::Unknown
    }
}

/// A block to learn whether placement matters: the arms that may differ most from `os-default`.
pub(super) fn next_survey(belief: &Belief, open: &[usize]) -> Vec<usize> {
    let others = open.iter().copied().filter(|&arm| arm != DEFAULT);
    block_of_highest(others.collect(), &|arm| {
        expected_square_difference(belief, arm)
    })
}

/// A block of `os-default` and the [`MAX_CHALLENGERS`] arms with the highest `value`.
fn block_of_highest(mut arms: Vec<usize>, value: &dyn Fn(usize) -> f64) -> Vec<usize> {
    arms.sort_by(|&a, &b| value(b).total_cmp(&value(a)));
    arms.truncate(MAX_CHALLENGERS);
    std::iter::once(DEFAULT).chain(arms).collect()
}

/// Expected square of an arm's difference from `os-default`, in ln(cost).
fn expected_square_difference(belief: &Belief, arm: usize) -> f64 {
    let differences = belief.difference(arm, DEFAULT);
    let squares = differences
        .iter()
        .map(|d| d.weight * (d.sd * d.sd + d.mean * d.mean));
    squares.sum()
}
