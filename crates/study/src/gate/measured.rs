//! What has been measured of one benchmark.

use std::time::Duration;

use crate::throttling::Stops;
use pinwise_record::{GateLink, GatePair, Stopped};
use pinwise_stats::Responses;
use pinwise_stats::beside::CPU_BOUND;
use pinwise_stats::caveats::Circumstances;
use pinwise_stats::chain::Link;
use pinwise_stats::fixed_width::FixedWidth;
use pinwise_stats::regression::{Regression, RegressionLook, Standing};

/// Index of each build among the columns.
pub(super) const BASE: usize = 0;
pub(super) const HEAD: usize = 1;

/// A figure of a benchmark and what is known of it.
#[derive(Debug, Clone)]
struct JudgedFigure {
    regression: Regression,
    data: Responses,
    /// What the last look showed.
    look: Option<RegressionLook>,
}

impl JudgedFigure {
    fn new(regression: Regression) -> Self {
        Self {
            regression,
            data: Responses::new(2),
            look: None,
        }
    }

    fn standing(&self) -> Standing {
        let look = self.look.as_ref();
        look.map_or(Standing::Undecided, |look| look.standing)
    }

    /// Looks if a look is due, or `at_once`, when `more` pairs may follow.
    fn look(&mut self, around: &Circumstances, more: usize, at_once: bool) {
        let most = self.data.blocks().saturating_add(more);
        let look = match at_once {
            true => self.regression.look(&self.data, around, most),
            false => self.regression.look_if_due(&self.data, around, most),
        };
        if look.is_some() {
            self.look = look;
        }
    }
}

/// Ratios as a history chains them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Links {
    pub(super) figure: Option<GateLink>,
    pub(super) cpu: Option<GateLink>,
}

/// The state of one benchmark.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// Whole pairs that count.
    pub(super) pairs: Vec<GatePair>,
    /// Why it cannot be judged, and in which build.
    pub(super) failed: Option<String>,
    /// Builds with a run that was killed at its time-out.
    pub(super) is_late: [bool; 2],
    /// Wall-clock times of the runs of both builds that ended, the warm-up included.
    pub(super) ended_s: [Vec<f64>; 2],
    /// The only build that has the program, if the other does not.
    pub(super) only_in: Option<usize>,
    /// Was the warm-up pair run?
    pub(super) is_warm: bool,
    /// Runs of both builds that a limit on CPU time stopped.
    pub(super) stops: [Stops; 2],
    figure: JudgedFigure,
    /// CPU time, if it is judged and all runs have it.
    cpu: Option<JudgedFigure>,
    /// The largest of all runs.
    cpu_share: f64,
    around: Circumstances,
    /// Seconds per pair, sorted.
    pair_times_s: Vec<f64>,
    /// When its pairs are enough for a history.
    width: FixedWidth,
    /// Do they have to be?
    is_chained: bool,
    /// Known once they are, or at the end.
    pub(super) links: Option<Links>,
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
    /// CPU time, seconds, the base first.
    pub(super) cpu_s: Option<[f64; 2]>,
    /// The larger CPU time over wall time of the two.
    pub(super) cpu_share: f64,
}

impl Measured {
    pub(super) fn new(
        figure: Regression,
        cpu: Option<Regression>,
        width: FixedWidth,
        is_chained: bool,
    ) -> Self {
        Self {
            pairs: Vec::new(),
            failed: None,
            is_late: [false; 2],
            ended_s: Default::default(),
            only_in: None,
            is_warm: false,
            figure: JudgedFigure::new(figure),
            cpu: cpu.map(JudgedFigure::new),
            cpu_share: 0.0,
            stops: Default::default(),
            around: Circumstances::default(),
            pair_times_s: Vec::new(),
            width,
            is_chained,
            links: None,
        }
    }

    /// What the last look at its figure showed.
    pub(super) const fn look(&self) -> Option<&RegressionLook> {
        self.figure.look.as_ref()
    }

    /// The same for its CPU time, if that is judged.
    pub(super) fn cpu_look(&self) -> Option<&RegressionLook> {
        let cpu = self.cpu.as_ref();
        cpu.filter(|_| self.cpu_share >= CPU_BOUND)?.look.as_ref()
    }

    /// Is it slower by its CPU time, while its figure decides nothing and may have changed as much?
    /// Taking less time may well need more CPU time.
    pub(super) fn is_slower_by_cpu(&self) -> bool {
        self.holds_for_judged_times(Regression::is_slower_by_cpu)
    }

    /// Is it not slower by its CPU time, while its figure is near enough but would take long to
    /// decide? Nothing passes by that, since CPU time does not include waiting.
    pub(super) fn is_passed_by_cpu(&self) -> bool {
        let pair_s = self.pair_s().unwrap_or(0.0);
        self.holds_for_judged_times(|judge, figure, cpu| {
            judge.is_passed_by_cpu(figure, cpu, pair_s)
        })
    }

    fn holds_for_judged_times(
        &self,
        is_true: impl Fn(&Regression, &RegressionLook, &RegressionLook) -> bool,
    ) -> bool {
        let both = self.look().zip(self.cpu_look());
        both.is_some_and(|(figure, cpu)| is_true(&self.figure.regression, figure, cpu))
    }

    /// What is known of it.
    pub(super) fn standing(&self) -> Standing {
        match self.is_slower_by_cpu() {
            true => Standing::Slower,
            false => self.figure.standing(),
        }
    }

    /// CPUs that others used during pairs that count, if that is known.
    pub(super) fn loads(&self) -> impl Iterator<Item = f64> {
        self.around.load.iter().flatten().copied()
    }

    /// Is anything still undecided?
    pub(super) fn is_open(&self) -> bool {
        self.failed.is_none() && (!self.is_decided() || self.needs_pairs())
    }

    fn is_decided(&self) -> bool {
        self.standing() != Standing::Undecided || self.is_passed_by_cpu()
    }

    /// Does a history need more pairs?
    const fn needs_pairs(&self) -> bool {
        self.is_chained && self.links.is_none()
    }

    /// Is it decided, and open for its history only?
    pub(super) fn is_only_measured(&self) -> bool {
        self.is_open() && self.is_decided()
    }

    pub(super) const fn least_pairs(&self) -> usize {
        self.figure.regression.least_pairs()
    }

    /// Typical seconds per pair; `None` before the first.
    pub(super) fn pair_s(&self) -> Option<f64> {
        self.pair_times_s.get(self.pair_times_s.len() / 2).copied()
    }

    /// Seconds until it is decided, as far as the last look shows; before the
    /// first, until there are as many pairs as a verdict needs. `None` before the
    /// first pair.
    pub(super) fn needed_s(&self, delta: f64) -> Option<f64> {
        let seen = self.look();
        let more = match seen.filter(|look| look.shows_an_interval()) {
            _ if self.is_decided() => self.width.pairs().saturating_sub(self.pairs.len()) as f64,
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

    /// Adds a pair, and looks if a look is due, when `more` pairs may follow. Returns whether that
    /// decided it.
    pub(super) fn take(&mut self, pair: &Pair, more: usize) -> bool {
        let [first, second] = pair.order;
        if !self.is_warm {
            self.is_warm = true;
            return false;
        }
        if !self.figure.data.push(&pair.costs.map(f64::ln)) {
            return false;
        }
        self.take_cpu(pair);
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
            base_cpu_s: pair.cpu_s.map(|cpu_s| cpu_s[BASE]),
            head_cpu_s: pair.cpu_s.map(|cpu_s| cpu_s[HEAD]),
        });
        self.measure();
        match self.is_decided() {
            false => self.look_at_all(more, false),
            true if !self.needs_pairs() => self.look_again(),
            true => {}
        }
        !self.is_open()
    }

    /// Takes the ratios for a history once these pairs are enough, whatever is decided.
    fn measure(&mut self) {
        if !self.needs_pairs() || self.pairs.len() < self.width.pairs() {
            return;
        }
        let (links, stored) = self.link_pairs();
        if self.width.is_enough(&links) {
            self.links = Some(stored);
        }
    }

    /// The ratios of all pairs.
    fn link_pairs(&self) -> (Vec<Link>, Links) {
        let link = |judged: &JudgedFigure| self.width.link(&judged.data, &self.around);
        let cpu = self.cpu.as_ref();
        let cpu = cpu.filter(|_| self.cpu_share >= CPU_BOUND).and_then(link);
        let figure = link(&self.figure);
        let stored = |link: Link| GateLink {
            ratio: link.estimate.exp(),
            error: link.error,
            pairs: self.pairs.len(),
        };
        let links = Links {
            figure: figure.map(stored),
            cpu: cpu.map(stored),
        };
        (figure.into_iter().chain(cpu).collect(), links)
    }

    /// Pairs after the verdict show its size better. They do not take it back: its error was spent.
    fn look_again(&mut self) {
        let standing = self.standing();
        let looks = |state: &Self| {
            let cpu = state.cpu.as_ref();
            (state.figure.look.clone(), cpu.map(|cpu| cpu.look.clone()))
        };
        let (figure, cpu_look) = looks(self);
        self.look_at_all(0, true);
        if self.standing() != standing {
            self.figure.look = figure;
            if let (Some(cpu), Some(look)) = (&mut self.cpu, cpu_look) {
                cpu.look = look;
            }
        }
    }

    /// Adds the CPU time of a pair; if one run has none, CPU time is not judged.
    fn take_cpu(&mut self, pair: &Pair) {
        self.cpu_share = self.cpu_share.max(pair.cpu_share);
        let logs = pair.cpu_s.map(|cpu_s| cpu_s.map(f64::ln));
        self.cpu = self.cpu.take().and_then(|mut cpu| {
            let is_whole = cpu.data.push(&logs?);
            is_whole.then_some(cpu)
        });
    }

    fn look_at_all(&mut self, more: usize, at_once: bool) {
        for judged in std::iter::once(&mut self.figure).chain(&mut self.cpu) {
            judged.look(&self.around, more, at_once);
        }
    }

    /// Looks for the last time, unless it is decided already; after an interruption `more` pairs
    /// were still possible.
    pub(super) fn close(&mut self, stopped: Stopped, more: usize) {
        if self.failed.is_some() {
            return;
        }
        if !self.is_decided() {
            let more = match stopped {
                Stopped::Interrupted => more,
                _ => 0,
            };
            self.look_at_all(more, true);
        }
        // If time or the user ended it, that did not depend on its ratio.
        if self.needs_pairs() {
            self.links = Some(self.link_pairs().1);
        }
    }
}
