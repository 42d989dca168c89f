//! Which arm leads, which might beat the leader, and what to run next.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use pinwise_stats::surrogate::{Arms, Belief, Loss, probability_below, sd_of, shortfall};

/// `os-default`'s number among the arms.
pub(super) const DEFAULT: usize = 0;
/// Maximum number of challengers of a block: every block also pays for `os-default`.
const MAX_CHALLENGERS: usize = 4;
/// A challenger runs together with the most promising one if it promises at least this share of
/// that one's gain.
const NEARLY_AS_DANGEROUS: f64 = 0.25;
/// The leader runs again if its deviation is at least this share of its challenger's.
const AS_UNKNOWN: f64 = 1.0;

/// Rivals whose joint distribution is drawn: the most dangerous ones. The others hardly matter, and
/// the cost grows with the square.
const MAX_RIVALS: usize = 80;
/// The expected loss may be this many times the indifference zone, and the probability that the loss
/// exceeds the second many times the zone may be the allowed error. (Expected opportunity cost as a stopping rule: Chick
/// and Inoue, Oper. Res. 2001; Branke, Chick and Schmidt 2007. Half the zone costs a fifth more
/// runs and saves no regret.)
const MAX_EXPECTED_LOSS: f64 = 1.0;
pub(super) const LARGE_LOSS_FACTOR: f64 = 3.0;
/// Residuals of arms above this many times the zone are worth a look at each arm.
const UNEXPLAINED_FACTOR: f64 = 8.0;
/// A probability above this is more likely than not.
pub(super) const MORE_LIKELY_THAN_NOT: f64 = 0.5;

/// What a search knows so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing {
    /// The arm to take if the search ended now.
    pub(super) leader: usize,
    /// The loss of taking it compared with the best of all, in ln(cost); probabilities that it
    /// exceeds the zone, and [`LARGE_LOSS_FACTOR`] times that.
    pub(super) loss: Loss,
    /// For every arm, the expected gain over the leader, with worse outcomes counted as none.
    pub(super) promise: Vec<f64>,
    /// For every arm, the probability that it beats the leader by more than the zone.
    pub(super) beats: Vec<f64>,
    /// Is the question answered?
    pub(super) is_settled: bool,
}

impl Standing {
    /// Probability that some arm beats the leader by more than the zone.
    pub(super) fn probability_of_better(&self) -> f64 {
        self.loss.exceeds[0].min(1.0)
    }
}

/// How arms are judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// Indifference zone in ln(cost).
    pub(super) zone: f64,
    /// Probability of a large loss that may be left.
    pub(super) error: f64,
    /// Factor by which variances are widened.
    pub(super) widening: f64,
    /// Seed of what is drawn.
    pub(super) seed: u64,
}

/// Judges the open arms. The leader is the arm of least expected cost, but `os-default` if hardly
/// any beats that: doing nothing needs no reason.
pub(super) fn standing(belief: &Belief, open: &[usize], rule: &Rule) -> Standing {
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

/// Does it more probably than not beat `os-default` by more than the zone?
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
    let mut chance = ChaCha8Rng::seed_from_u64(rule.seed);
    let bounds = [rule.zone, LARGE_LOSS_FACTOR * rule.zone];
    let loss = belief.loss(leader, &rivals, bounds, rule.widening, &mut chance);
    Standing {
        leader,
        is_settled: loss.expected <= MAX_EXPECTED_LOSS * rule.zone && loss.exceeds[1] <= rule.error,
        loss,
        promise,
        beats,
    }
}

/// The arms of the next block, `os-default` among them: the most dangerous challengers, and the
/// leader if it is hardly better known than they are.
pub(super) fn next_block(belief: &Belief, standing: &Standing, runs: &[usize]) -> Vec<usize> {
    let leader = standing.leader;
    let mut rivals: Vec<usize> = (0..standing.promise.len())
        .filter(|&arm| arm != DEFAULT && standing.promise[arm] > 0.0)
        .collect();
    rivals.sort_by(|&a, &b| standing.promise[b].total_cmp(&standing.promise[a]));
    let worst = rivals.first().map_or(0.0, |&arm| standing.promise[arm]);
    rivals.retain(|&arm| standing.promise[arm] >= NEARLY_AS_DANGEROUS * worst);
    rivals.truncate(MAX_CHALLENGERS);
    let unknown = |arm: usize| deviation(belief, arm);
    let first = rivals.first().map_or(0.0, |&arm| unknown(arm));
    let is_unknown = runs[leader] == 0 || unknown(leader) >= AS_UNKNOWN * first;
    let mut block = vec![DEFAULT];
    if leader != DEFAULT && (is_unknown || rivals.is_empty()) {
        block.push(leader);
    }
    block.extend(rivals);
    block
}

/// If arms differ for no reason that the model knows, a block of those that never ran, the most
/// promising first; else `os-default` alone. The cost of such arms is a guess, and the best of some
/// dozens lies far out in its tail.
pub(super) fn unmeasured_block(
    belief: &Belief,
    standing: &Standing,
    runs: &[usize],
    open: &[usize],
    rule: &Rule,
) -> Vec<usize> {
    let own = belief.own_sd();
    let is_blind = own > UNEXPLAINED_FACTOR * rule.zone && own > belief.explained_sd();
    let never_ran = |arm: &usize| is_blind && runs[*arm] == 0 && *arm != DEFAULT;
    let arms = open.iter().copied().filter(never_ran).collect();
    block_of_most(arms, &|arm| standing.promise[arm])
}

/// The arm that never ran and is farthest in its features from all that did.
pub(super) fn farthest_unmeasured(arms: &Arms, runs: &[usize], open: &[usize]) -> Option<usize> {
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

/// Does the placement matter, as far as is known?
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Matters {
    /// This arm is slower than `os-default` by more than the zone, for sure.
    Yes(usize),
    /// Arms are expected to differ from `os-default` by this little, as a root mean square of
    /// ln(cost).
    No(f64),
    /// It takes more runs to know.
    Unknown,
}

/// Finds out whether placement matters at all if nothing beats `os-default`.
pub(super) fn matters(belief: &Belief, open: &[usize], rule: &Rule) -> Matters {
    // The surest of some dozens of arms exceeds 0.99 by chance once in twenty times.
    const SURE: f64 = 0.998;
    /// Placements that typically differ by no more than this many zones hardly matter.
    const INDIFFERENT_ZONES: f64 = 2.5;
    let others: Vec<usize> = open.iter().copied().filter(|&arm| arm != DEFAULT).collect();
    let slower = |arm: usize| {
        1.0 - probability_below(&belief.difference(arm, DEFAULT), rule.zone, rule.widening)
    };
    let surest = others.iter().map(|&arm| (arm, slower(arm)));
    if let Some((arm, _)) = surest
        .filter(|(_, sure)| *sure >= SURE)
        .max_by(|a, b| a.1.total_cmp(&b.1))
    {
        return Matters::Yes(arm);
    }
    let squares: f64 = others.iter().map(|&arm| square(belief, arm)).sum();
    let typical = (squares / others.len().max(1) as f64).sqrt();
    if typical <= INDIFFERENT_ZONES * rule.zone {
        Matters::No(typical)
    } else {
        Matters::Unknown
    }
}

/// A block that shows more about whether placement matters: the arms that may
/// differ most from `os-default`.
pub(super) fn next_survey(belief: &Belief, open: &[usize]) -> Vec<usize> {
    let others = open.iter().copied().filter(|&arm| arm != DEFAULT);
    block_of_most(others.collect(), &|arm| square(belief, arm))
}

/// A block of `os-default` and at most [`MAX_CHALLENGERS`] arms that have most of something.
fn block_of_most(mut arms: Vec<usize>, most_of: &dyn Fn(usize) -> f64) -> Vec<usize> {
    arms.sort_by(|&a, &b| most_of(b).total_cmp(&most_of(a)));
    arms.truncate(MAX_CHALLENGERS);
    std::iter::once(DEFAULT).chain(arms).collect()
}

/// Expected square of what an arm costs over `os-default`, in ln(cost).
fn square(belief: &Belief, arm: usize) -> f64 {
    let differences = belief.difference(arm, DEFAULT);
    let of = |d: &pinwise_stats::surrogate::Normal| d.weight * (d.sd * d.sd + d.mean * d.mean);
    differences.iter().map(of).sum()
}

/// Standard deviation of what an arm costs over `os-default`.
fn deviation(belief: &Belief, arm: usize) -> f64 {
    let differences = belief.difference(arm, DEFAULT);
    sd_of(&differences)
}
