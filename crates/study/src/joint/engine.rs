//! Chooses which plans to run, until hardly any may still beat the leader.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::model::{Models, Units};
use super::places::{Place, Tree, list_neighbours};
use super::rounds::Rounds;
use crate::error::StudyError;
use pinwise_machine::Host;
use pinwise_stats::surrogate::choose_informative;
use pinwise_topology::Topology;

/// Index of the plan that places nothing.
const DEFAULT: usize = 0;
/// Rounds of the first block, plus two for every program.
const FIRST_BLOCK: usize = 4;
/// Plans in a later block.
const BLOCK_PLANS: usize = 3;
/// With at least this many programs …
const MANY_PROGRAMS: usize = 4;
/// … this many plans of a block preferably differ from the leader by a single move. The model is often
/// wrong about plans unlike any that ran, and expects much of some among a thousand of those.
const NEIGHBOURS_FIRST: usize = 2;
/// Weight of the expected improvement of other plans for these.
const DISTANT_WEIGHT: f64 = 0.02;
/// Rounds of the leader before it may win.
const MIN_ROUNDS: usize = 3;
/// A search ends if no plan is expected to improve by more than this share of the smallest effect of
/// interest.
const MIN_IMPROVEMENT_SHARE: f64 = 0.1;
/// Number of plans whose neighbours are added between two blocks.
const EXPANDED_PLANS: usize = 3;
/// Plans may lead if their measured `ln(cost)` exceeds the lowest by at most this.
const MAX_COST_GAP: f64 = 0.04;
/// Maximum number of plans: learning from a round takes time in proportion.
const MAX_PLANS: usize = 1500;
/// Share of a time budget that the search may take.
const BUDGET_SHARE: f64 = 0.65;

/// The result of a search.
pub(super) struct Found {
    /// All plans, the one that places nothing first.
    pub(super) places: Vec<Place>,
    /// Index of the best of the others.
    pub(super) best: usize,
    /// By plan and round: the figures of all programs.
    pub(super) tried: Vec<Vec<Vec<f64>>>,
    /// Number of rounds.
    pub(super) rounds: usize,
    /// Did the user stop the search?
    pub(super) is_interrupted: bool,
}

/// Searches for the best plan, starting from `places`. `report` is called before each round with the
/// number of rounds so far and the plan.
pub(super) fn search(
    rounds: &mut Rounds<'_>,
    places: Vec<Place>,
    topology: &Topology,
    report: &mut dyn FnMut(usize, &Place),
) -> Result<Found, StudyError> {
    let models = Models::new(rounds.search, &places, Units::new(topology));
    let search_start = rounds.now();
    let mut engine = Engine {
        order: ChaCha8Rng::seed_from_u64(rounds.search.seed),
        failed: vec![false; places.len()],
        tried: vec![Vec::new(); places.len()],
        rounds_run: 0,
        block: 0,
        search_start,
        places,
        models,
        rounds,
        topology,
        tree: Tree::new(topology),
        known: BTreeMap::new(),
        refined: BTreeSet::new(),
        report,
    };
    let canonical = engine.places.iter().map(|p| engine.tree.canonical_text(p));
    engine.known = canonical.zip(0..).collect();
    let is_interrupted = match engine.run_blocks() {
        Ok(()) => false,
        Err(error) if !error.is_interrupt() || !engine.has_run_a_placement() => return Err(error),
        Err(_) => true,
    };
    // If the default is best, the best of the others is compared with it.
    let leader = engine.learn();
    engine.failed[DEFAULT] = true;
    let best = leader
        .filter(|&arm| arm != DEFAULT)
        .or_else(|| engine.learn());
    Ok(Found {
        best: best.unwrap_or(1),
        places: engine.places,
        tried: engine.tried,
        // An interrupted round has no figures.
        rounds: engine.rounds_run - usize::from(is_interrupted),
        is_interrupted,
    })
}

struct Engine<'a, 'b> {
    places: Vec<Place>,
    models: Models,
    rounds: &'a mut Rounds<'b>,
    report: &'a mut dyn FnMut(usize, &Place),
    order: ChaCha8Rng,
    /// By plan: did a program fail?
    failed: Vec<bool>,
    /// By plan and round: the figures of all programs.
    tried: Vec<Vec<Vec<f64>>>,
    rounds_run: usize,
    block: usize,
    search_start: Duration,
    topology: &'a Topology,
    tree: Tree,
    /// Indices of all plans by their canonical texts.
    known: BTreeMap<String, usize>,
    /// Plans whose neighbours were added.
    refined: BTreeSet<usize>,
}

impl Engine<'_, '_> {
    fn run_blocks(&mut self) -> Result<(), StudyError> {
        (self.report)(0, &self.places[DEFAULT]);
        // A trial checks that all programs can be measured together. As caches are cold, its figures do
        // not count.
        self.rounds.try_out(&self.places[DEFAULT])?;
        self.rounds_run = 1;
        let count = FIRST_BLOCK + 2 * self.rounds.search.programs.len();
        let plans = self.models.joint_arms();
        let first = choose_informative(&plans, &[DEFAULT], count, &|_| true);
        self.run_block(&first)?;
        loop {
            let Some(leader) = self.learn() else {
                return Ok(());
            };
            self.add_neighbours_of_best(leader);
            let block = self.choose_block(leader);
            if block.is_empty() || self.rounds_left() == 0 {
                return Ok(());
            }
            self.run_block(&block)?;
        }
    }

    /// Has a plan run that places something?
    fn has_run_a_placement(&self) -> bool {
        let mut others = self.tried.iter().skip(DEFAULT + 1);
        others.any(|figures| !figures.is_empty())
    }

    /// Adds the neighbours of the leader and of plans that are expected to be even better, since the
    /// first plans are coarse.
    fn add_neighbours_of_best(&mut self, leader: usize) {
        let mut from = leader;
        for _ in 0..EXPANDED_PLANS {
            if self.add_neighbours(from) {
                self.models.learn(leader);
            }
            let valid = (0..self.places.len()).filter(|&arm| !self.failed[arm]);
            let costs = valid.map(|arm| (self.models.expected_cost(arm), arm));
            let Some((_, best)) = costs.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                return;
            };
            from = best;
        }
    }

    /// Adds the neighbours of a plan; returns whether there were new ones.
    fn add_neighbours(&mut self, from: usize) -> bool {
        if from == DEFAULT || !self.refined.insert(from) {
            return false;
        }
        let before = self.places.len();
        for place in list_neighbours(&self.places[from], self.topology) {
            if self.places.len() == MAX_PLANS {
                break;
            }
            if let Entry::Vacant(entry) = self.known.entry(self.tree.canonical_text(&place)) {
                entry.insert(self.places.len());
                self.models.add(&place);
                self.places.push(place);
                self.failed.push(false);
                self.tried.push(Vec::new());
            }
        }
        self.places.len() > before
    }

    /// Rounds that may still run before the confirmation.
    fn rounds_left(&self) -> usize {
        let search = self.rounds.search;
        if let Some(budget) = search.budget {
            let spent =
                self.rounds.now().saturating_sub(self.search_start) + self.rounds.replayed_time();
            let block = spent.mul_f64(BLOCK_PLANS as f64 / self.rounds_run.max(1) as f64);
            if spent + block > budget.mul_f64(BUDGET_SHARE) {
                return 0;
            }
        }
        (search.max_rounds - 2 * search.pairs).saturating_sub(self.rounds_run)
    }

    /// Learns from the rounds so far and returns the leader, the plan with the lowest expected cost
    /// among those whose measured cost is close to the lowest.
    fn learn(&mut self) -> Option<usize> {
        let first = self.find_cheapest(|_| true, Models::measured_cost)?;
        self.models.learn(first);
        let least = self.models.measured_cost(first)?;
        self.find_cheapest(
            |cost| cost <= least + MAX_COST_GAP,
            |models, arm| models.measured_cost(arm).map(|_| models.expected_cost(arm)),
        )
    }

    /// The plan with the lowest `cost` among those whose measured cost `is_candidate` accepts.
    fn find_cheapest(
        &self,
        is_candidate: impl Fn(f64) -> bool,
        cost: impl Fn(&Models, usize) -> Option<f64>,
    ) -> Option<usize> {
        let valid = (0..self.places.len()).filter(|&arm| !self.failed[arm]);
        let measured =
            valid.filter(|&arm| self.models.measured_cost(arm).is_some_and(&is_candidate));
        let costs = measured.filter_map(|arm| Some((cost(&self.models, arm)?, arm)));
        costs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, arm)| arm)
    }

    /// Chooses the plans to run next: those with the highest expected improvement that differ from each
    /// other. If none is expected to improve enough, the leader until it has [`MIN_ROUNDS`]; then none,
    /// and the search ends.
    fn choose_block(&self, leader: usize) -> Vec<usize> {
        let others = (0..self.places.len()).filter(|&arm| !self.failed[arm] && arm != leader);
        let mut promising: Vec<(usize, f64)> = others
            .map(|arm| (arm, self.models.expected_improvement(arm, leader)))
            .collect();
        let most = promising.iter().map(|(_, improvement)| *improvement);
        let most = most.fold(0.0, f64::max);
        if most < MIN_IMPROVEMENT_SHARE * self.rounds.search.min_effect {
            let rounds = self.tried[leader].len();
            return vec![leader; MIN_ROUNDS.saturating_sub(rounds)];
        }
        let neighbours = self.known_neighbours(leader);
        let mut block: Vec<usize> = Vec::new();
        while block.len() < BLOCK_PLANS && !promising.is_empty() {
            let prefers_neighbours = block.len() < NEIGHBOURS_FIRST
                && self.rounds.search.programs.len() >= MANY_PROGRAMS;
            let worth = |(arm, improvement): &(usize, f64)| {
                let others = block.iter();
                let distances = others.map(|&other| self.models.feature_distance(*arm, other));
                let weight = if prefers_neighbours && !neighbours.contains(arm) {
                    DISTANT_WEIGHT
                } else {
                    1.0
                };
                improvement * distances.fold(weight, f64::min)
            };
            let best = (0..promising.len())
                .max_by(|&a, &b| worth(&promising[a]).total_cmp(&worth(&promising[b])));
            let Some(best) = best else { break };
            block.push(promising.swap_remove(best).0);
        }
        block
    }

    /// The known plans that differ from this one by a single move.
    fn known_neighbours(&self, plan: usize) -> BTreeSet<usize> {
        let places = list_neighbours(&self.places[plan], self.topology);
        let texts = places.iter().map(|place| self.tree.canonical_text(place));
        texts
            .filter_map(|text| self.known.get(&text).copied())
            .collect()
    }

    /// Runs each plan once, in random order, until no rounds are left.
    fn run_block(&mut self, plans: &[usize]) -> Result<(), StudyError> {
        let mut order = plans.to_vec();
        order.truncate(self.rounds_left());
        order.shuffle(&mut self.order);
        for arm in order {
            (self.report)(self.rounds_run, &self.places[arm]);
            self.rounds_run += 1;
            match self.rounds.run_or_replay(&self.places[arm]) {
                Ok(figures) => {
                    let costs = self.rounds.log_costs(&figures);
                    self.models.add_round(arm, self.block, &costs);
                    self.tried[arm].push(figures);
                }
                // A plan under which a program fails cannot win.
                Err(StudyError::Program { .. }) if arm != DEFAULT => self.failed[arm] = true,
                Err(error) => return Err(error),
            }
        }
        self.block += 1;
        Ok(())
    }
}
