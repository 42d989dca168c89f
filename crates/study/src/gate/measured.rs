//! What has been measured of one benchmark.

use std::time::Duration;

use pinwise_record::{GatePair, Stopped};
use pinwise_stats::Responses;
use pinwise_stats::caveats::Circumstances;
use pinwise_stats::regression::{Regression, RegressionLook, Standing};

/// Index of each build among the columns.
pub(super) const BASE: usize = 0;
pub(super) const HEAD: usize = 1;

/// The state of one benchmark.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// Whole pairs that count.
    pub(super) pairs: Vec<GatePair>,
    /// What the last look showed.
    pub(super) look: Option<RegressionLook>,
    /// Why it cannot be judged, and in which build.
    pub(super) failed: Option<String>,
    /// The only build that has the program, where the other does not.
    pub(super) only_in: Option<usize>,
    /// Was the warm-up pair run?
    pub(super) is_warm: bool,
    regression: Regression,
    data: Responses,
    around: Circumstances,
    /// Seconds per pair, sorted.
    pair_times_s: Vec<f64>,
}

/// A pair of runs that went well.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    /// Figures and costs, the base first.
    pub(super) figures: [f64; 2],
    pub(super) costs: [f64; 2],
    /// The builds in the order in which they ran.
    pub(super) order: [usize; 2],
    /// The build of this benchmark that ran right before them, if one did.
    pub(super) before: Option<usize>,
    /// CPUs that others used meanwhile.
    pub(super) load: Option<f64>,
    /// From the start of the gate.
    pub(super) at: Duration,
}

impl Measured {
    pub(super) fn new(regression: Regression) -> Self {
        Self {
            pairs: Vec::new(),
            look: None,
            failed: None,
            only_in: None,
            is_warm: false,
            regression,
            data: Responses::new(2),
            around: Circumstances::default(),
            pair_times_s: Vec::new(),
        }
    }

    /// What is known of it.
    pub(super) fn standing(&self) -> Standing {
        let look = self.look.as_ref();
        look.map_or(Standing::Undecided, |look| look.standing)
    }

    /// Is there something left to find out?
    pub(super) fn is_open(&self) -> bool {
        self.failed.is_none() && self.standing() == Standing::Undecided
    }

    pub(super) const fn least_pairs(&self) -> usize {
        self.regression.least_pairs()
    }

    /// Typical seconds per pair; `None` before the first.
    pub(super) fn pair_s(&self) -> Option<f64> {
        self.pair_times_s.get(self.pair_times_s.len() / 2).copied()
    }

    /// Seconds until it is decided, as far as the last look shows; before the
    /// first, until there are as many pairs as a verdict needs. `None` before the
    /// first pair.
    pub(super) fn needed_s(&self, delta: f64) -> Option<f64> {
        let seen = self.look.as_ref();
        let more = match seen.filter(|look| look.shows_an_interval()) {
            Some(look) => (look.work_factor(delta) - 1.0) * look.pairs as f64,
            None => self.least_pairs().saturating_sub(self.pairs.len()) as f64,
        };
        Some(more.max(1.0) * self.pair_s()?)
    }

    /// A run took its turn, whether it counts or not.
    pub(super) fn spend(&mut self, duration: Duration) {
        let time_s = duration.as_secs_f64();
        let place = self.pair_times_s.partition_point(|t| *t < time_s);
        self.pair_times_s.insert(place, time_s);
    }

    /// Adds a pair, and looks if it is time, where `more` pairs may follow.
    /// Says whether it is decided by that.
    pub(super) fn take(&mut self, pair: &Pair, more: usize) -> bool {
        let [first, second] = pair.order;
        if !self.is_warm {
            self.is_warm = true;
            return false;
        }
        if !self.data.push(&pair.costs.map(f64::ln)) {
            return false;
        }
        let mut slots = vec![0; 2];
        let mut predecessors = vec![None; 2];
        slots[second] = 1;
        predecessors[first] = pair.before;
        predecessors[second] = Some(first);
        self.around.slots.push(slots);
        self.around.before.push(predecessors);
        self.around.load.push(pair.load);
        self.pairs.push(GatePair {
            at_s: pair.at.as_secs_f64(),
            base: pair.figures[BASE],
            head: pair.figures[HEAD],
            head_first: first == HEAD,
        });
        let most = self.data.blocks().saturating_add(more);
        let look = self.regression.look_if_due(&self.data, &self.around, most);
        if let Some(look) = look {
            self.look = Some(look);
        }
        !self.is_open()
    }

    /// Looks for the last time, unless it is decided already; after an
    /// interruption `more` pairs were still possible.
    pub(super) fn close(&mut self, stopped: Stopped, more: usize) {
        if !self.is_open() {
            return;
        }
        let more = match stopped {
            Stopped::Interrupted => more,
            _ => 0,
        };
        let most = self.data.blocks().saturating_add(more);
        let look = self.regression.look(&self.data, &self.around, most);
        if let Some(look) = look {
            self.look = Some(look);
        }
    }
}
