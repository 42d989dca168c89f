//! Chooses which joint placements run, until hardly any may still beat the leader.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::model::{Models, Units};
use super::places::{Place, Tree, neighbours};
use super::rounds::Rounds;
use crate::error::StudyError;
use pinwise_machine::Host;
use pinwise_stats::surrogate::informative;
use pinwise_topology::Topology;

/// The number of the plan that places nothing.
const DEFAULT: usize = 0;
/// Rounds of the first block: this many, and two for every program.
const FIRST: usize = 4;
/// Plans of a later block.
const BLOCK: usize = 3;
/// With so many programs …
const MANY: usize = 4;
/// … this many of them differ from the leader by a single move: what the model expects of plans unlike
/// any that ran it is often wrong about, and among a thousand of those some always promise much.
const NEAR: usize = 2;
/// What other plans promise counts this much for them.
const FAR: f64 = 0.02;
/// Rounds of the leader before it may win.
const MIN_ROUNDS: usize = 3;
/// A search ends if no plan promises more than this share of the smallest effect of interest.
const NO_PROMISE: f64 = 0.1;
/// Plans whose neighbours are considered between two blocks.
const HOPS: usize = 3;
/// Plans whose rounds cost this much more than the best one's, as ln, may yet lead.
const CLOSE: f64 = 0.04;
/// Plans that are considered in all: learning from a round takes time in proportion.
const MAX_PLANS: usize = 1500;
/// Share of a time budget that the search may take.
const BUDGET_SHARE: f64 = 0.65;

/// What a search found.
pub(super) struct Found {
    /// All plans, the one that places nothing first.
    pub(super) places: Vec<Place>,
    /// The best of the others.
    pub(super) best: usize,
    /// Figures of each plan's rounds.
    pub(super) tried: Vec<Vec<Vec<f64>>>,
    /// Rounds made.
    pub(super) rounds: usize,
    /// Did the user stop the search?
    pub(super) is_interrupted: bool,
}

/// Searches these plans. `report`: called before each round with the rounds so far and its plan.
pub(super) fn search(
    rounds: &mut Rounds<'_>,
    places: Vec<Place>,
    topology: &Topology,
    report: &mut dyn FnMut(usize, &Place),
) -> Result<Found, StudyError> {
    let models = Models::new(rounds.search, &places, Units::new(topology));
    let begun = rounds.now();
    let mut engine = Engine {
        order: ChaCha8Rng::seed_from_u64(rounds.search.seed),
        failed: vec![false; places.len()],
        tried: vec![Vec::new(); places.len()],
        made: 0,
        block: 0,
        begun,
        places,
        models,
        rounds,
        topology,
        tree: Tree::new(topology),
        known: BTreeMap::new(),
        refined: BTreeSet::new(),
        report,
    };
    let canonical = engine.places.iter().map(|p| engine.tree.canonical(p));
    engine.known = canonical.zip(0..).collect();
    let is_interrupted = match engine.carry_out() {
        Ok(()) => false,
        Err(error) if !error.is_interrupt() || !engine.has_other() => return Err(error),
        Err(_) => true,
    };
    // Was doing nothing best, the next is compared with it.
    let first = engine.learn();
    engine.failed[DEFAULT] = true;
    let best = first
        .filter(|&arm| arm != DEFAULT)
        .or_else(|| engine.learn());
    Ok(Found {
        best: best.unwrap_or(1),
        places: engine.places,
        tried: engine.tried,
        // One of those begun was interrupted.
        rounds: engine.made - usize::from(is_interrupted),
        is_interrupted,
    })
}

struct Engine<'a, 'b> {
    places: Vec<Place>,
    models: Models,
    rounds: &'a mut Rounds<'b>,
    report: &'a mut dyn FnMut(usize, &Place),
    order: ChaCha8Rng,
    /// Plans under which a program failed.
    failed: Vec<bool>,
    tried: Vec<Vec<Vec<f64>>>,
    made: usize,
    block: usize,
    begun: Duration,
    topology: &'a Topology,
    tree: Tree,
    /// The numbers of all plans by their canonical forms.
    known: BTreeMap<String, usize>,
    /// Plans whose neighbours were added.
    refined: BTreeSet<usize>,
}

impl Engine<'_, '_> {
    fn carry_out(&mut self) -> Result<(), StudyError> {
        (self.report)(0, &self.places[DEFAULT]);
        // Caches are cold in it: it shows only whether all programs can be measured together.
        self.rounds.try_out(&self.places[DEFAULT])?;
        self.made = 1;
        let count = FIRST + 2 * self.rounds.search.programs.len();
        let all = self.models.joint_arms();
        let first = informative(&all, &[DEFAULT], count, &|_| true);
        self.run_block(&first)?;
        loop {
            let Some(leader) = self.learn() else {
                return Ok(());
            };
            self.look_around(leader);
            let block = self.next_block(leader);
            if block.is_empty() || self.left() == 0 {
                return Ok(());
            }
            self.run_block(&block)?;
        }
    }

    /// Has a plan run that places something?
    fn has_other(&self) -> bool {
        let mut others = self.tried.iter().skip(DEFAULT + 1);
        others.any(|figures| !figures.is_empty())
    }

    /// Considers the neighbours of a leader, and of what is expected to be better still: the first
    /// plans are coarse.
    fn look_around(&mut self, leader: usize) {
        let mut from = leader;
        for _ in 0..HOPS {
            if self.refine(from) {
                self.models.learn(leader);
            }
            let open = (0..self.places.len()).filter(|&arm| !self.failed[arm]);
            let costs = open.map(|arm| (self.models.cost(arm), arm));
            let Some((_, best)) = costs.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                return;
            };
            from = best;
        }
    }

    /// Adds the neighbours of a plan. Were there any?
    fn refine(&mut self, from: usize) -> bool {
        if from == DEFAULT || !self.refined.insert(from) {
            return false;
        }
        let before = self.places.len();
        for place in neighbours(&self.places[from], self.topology) {
            if self.places.len() == MAX_PLANS {
                break;
            }
            if let Entry::Vacant(entry) = self.known.entry(self.tree.canonical(&place)) {
                entry.insert(self.places.len());
                self.models.add(&place);
                self.places.push(place);
                self.failed.push(false);
                self.tried.push(Vec::new());
            }
        }
        self.places.len() > before
    }

    /// Rounds that may still be made before those that confirm.
    fn left(&self) -> usize {
        let search = self.rounds.search;
        if let Some(budget) = search.budget {
            let spent = self.rounds.now().saturating_sub(self.begun) + self.rounds.saved();
            let block = spent.mul_f64(BLOCK as f64 / self.made.max(1) as f64);
            if spent + block > budget.mul_f64(BUDGET_SHARE) {
                return 0;
            }
        }
        (search.max_rounds - 2 * search.pairs).saturating_sub(self.made)
    }

    /// Learns from the rounds so far; the leader.
    fn learn(&mut self) -> Option<usize> {
        let first = self.leader(|_| true, Models::measured)?;
        self.models.learn(first);
        let least = self.models.measured(first)?;
        // The model is used to tell those apart that rounds hardly do.
        self.leader(
            |cost| cost <= least + CLOSE,
            |models, arm| models.measured(arm).map(|_| models.cost(arm)),
        )
    }

    /// The plan of least cost among those whose rounds cost what they may.
    fn leader(
        &self,
        may: impl Fn(f64) -> bool,
        cost: impl Fn(&Models, usize) -> Option<f64>,
    ) -> Option<usize> {
        let open = (0..self.places.len()).filter(|&arm| !self.failed[arm]);
        let open = open.filter(|&arm| self.models.measured(arm).is_some_and(&may));
        let costs = open.filter_map(|arm| Some((cost(&self.models, arm)?, arm)));
        costs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, arm)| arm)
    }

    /// The plans that promise most and are unlike each other; of a leader that nothing may beat, more
    /// rounds of its own; none if the question is answered.
    fn next_block(&self, leader: usize) -> Vec<usize> {
        let open = (0..self.places.len()).filter(|&arm| !self.failed[arm] && arm != leader);
        let mut promising: Vec<(usize, f64)> = open
            .map(|arm| (arm, self.models.promise(arm, leader)))
            .collect();
        let most = promising.iter().map(|(_, promise)| *promise);
        let most = most.fold(0.0, f64::max);
        if most < NO_PROMISE * self.rounds.search.min_effect {
            let known = self.tried[leader].len();
            return vec![leader; MIN_ROUNDS.saturating_sub(known)];
        }
        let near = self.around(leader);
        let mut block: Vec<usize> = Vec::new();
        while block.len() < BLOCK && !promising.is_empty() {
            let is_near = block.len() < NEAR && self.rounds.search.programs.len() >= MANY;
            let worth = |(arm, promise): &(usize, f64)| {
                let others = block.iter();
                let distances = others.map(|&other| self.models.distance(*arm, other));
                let most = if is_near && !near.contains(arm) {
                    FAR
                } else {
                    1.0
                };
                promise * distances.fold(most, f64::min)
            };
            let best = (0..promising.len())
                .max_by(|&a, &b| worth(&promising[a]).total_cmp(&worth(&promising[b])));
            let Some(best) = best else { break };
            block.push(promising.swap_remove(best).0);
        }
        block
    }

    /// The plans that differ from this one by a single move.
    fn around(&self, plan: usize) -> BTreeSet<usize> {
        let around = neighbours(&self.places[plan], self.topology);
        let texts = around.iter().map(|place| self.tree.canonical(place));
        texts
            .filter_map(|text| self.known.get(&text).copied())
            .collect()
    }

    /// Runs each plan once, in random order, as far as rounds are left.
    fn run_block(&mut self, plans: &[usize]) -> Result<(), StudyError> {
        let mut order = plans.to_vec();
        order.truncate(self.left());
        order.shuffle(&mut self.order);
        for arm in order {
            (self.report)(self.made, &self.places[arm]);
            self.made += 1;
            match self.rounds.round(&self.places[arm]) {
                Ok(figures) => {
                    let costs = self.rounds.costs(&figures);
                    self.models.take(arm, self.block, &costs);
                    self.tried[arm].push(figures);
                }
                // What fails only in some places never wins.
                Err(StudyError::Program { .. }) if arm != DEFAULT => self.failed[arm] = true,
                Err(error) => return Err(error),
            }
        }
        self.block += 1;
        Ok(())
    }
}
