//! The measurements of one benchmark, and what they show so far.

use std::time::Duration;

use crate::throttling::Stops;
use pinwise_record::{GateLink, GatePair, Stopped};
use pinwise_stats::Responses;
use pinwise_stats::beside::{self, CpuUse};
use pinwise_stats::caveats::Circumstances;
use pinwise_stats::chain::Link;
use pinwise_stats::fixed_width::FixedWidth;
use pinwise_stats::regression::{Regression, RegressionLook, Standing};

/// Index of the base among builds.
pub(super) const BASE: usize = 0;
/// Index of the head among builds.
pub(super) const HEAD: usize = 1;

/// A figure of a benchmark with its test.
#[derive(Debug, Clone)]
struct JudgedFigure {
    regression: Regression,
    data: Responses,
    /// The last look.
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

    /// Takes a look if one is due, or in any case if `at_once`; at most `more` pairs may follow.
    fn update_look(&mut self, circumstances: &Circumstances, more: usize, at_once: bool) {
        let most = self.data.blocks().saturating_add(more);
        let look = match at_once {
            true => self.regression.look(&self.data, circumstances, most),
            false => self.regression.look_if_due(&self.data, circumstances, most),
        };
        if look.is_some() {
            self.look = look;
        }
    }
}

/// Ratios as a history chains them, of the figure and of CPU time.
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
    /// By build: was a run killed at its time-out?
    pub(super) has_timed_out: [bool; 2],
    /// By build: wall-clock times of the runs that ended, warm-up included.
    pub(super) ended_s: [Vec<f64>; 2],
    /// The only build that has the program, if the other does not.
    pub(super) only_in: Option<usize>,
    /// Was the warm-up pair run?
    pub(super) is_warm: bool,
    /// By build: how often a CPU quota throttled its runs.
    pub(super) stops: [Stops; 2],
    figure: JudgedFigure,
    /// CPU time, if it is judged and all runs have it.
    cpu: Option<JudgedFigure>,
    used: CpuUse,
    /// May it pass by CPU time? `None` before the first look.
    may_pass_by_cpu: Option<bool>,
    circumstances: Circumstances,
    /// Seconds per pair, sorted.
    pair_times_s: Vec<f64>,
    /// Decides when the pairs are enough for a history.
    width: FixedWidth,
    /// Is the gate a step of a history?
    is_chained: bool,
    /// The ratios for the history, once the pairs are enough, or at the end.
    pub(super) links: Option<Links>,
}

/// A pair of runs that both succeeded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    /// By build.
    pub(super) figures: [f64; 2],
    /// By build.
    pub(super) costs: [f64; 2],
    /// The builds in the order in which they ran.
    pub(super) order: [usize; 2],
    /// The build of this benchmark that ran right before them, if one did.
    pub(super) before: Option<usize>,
    /// CPUs that other programs used meanwhile.
    pub(super) load: Option<f64>,
    /// Since the start of the gate.
    pub(super) at: Duration,
    /// CPU time by build, seconds.
    pub(super) cpu_s: Option<[f64; 2]>,
    /// CPU time over wall-clock time, the larger of the two.
    pub(super) cpu_share: f64,
    /// Threads that ran or waited for a CPU, on average, by build.
    pub(super) ready: Option<[f64; 2]>,
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
            has_timed_out: [false; 2],
            ended_s: Default::default(),
            only_in: None,
            is_warm: false,
            figure: JudgedFigure::new(figure),
            cpu: cpu.map(JudgedFigure::new),
            used: CpuUse::default(),
            may_pass_by_cpu: None,
            stops: Default::default(),
            circumstances: Circumstances::default(),
            pair_times_s: Vec::new(),
            width,
            is_chained,
            links: None,
        }
    }

    /// The last look at the figure.
    pub(super) const fn look(&self) -> Option<&RegressionLook> {
        self.figure.look.as_ref()
    }

    /// The last look at CPU time, if that is judged.
    pub(super) fn cpu_look(&self) -> Option<&RegressionLook> {
        let cpu = self.cpu.as_ref();
        cpu.filter(|_| self.used.is_comparable())?.look.as_ref()
    }

    /// Does CPU time show a slow-down, while the figure is undecided and may have changed as much?
    /// (A figure that shows less time is no slow-down, even with more CPU time.)
    fn is_slower_by_cpu(&self) -> bool {
        self.holds_for_looks(Regression::is_slower_by_cpu)
    }

    /// Does CPU time exclude a slow-down, while the figure leaves that open? CPU time does not
    /// include waiting, so the builds must be as parallel as each other.
    fn is_passed_by_cpu(&self) -> bool {
        self.may_pass_by_cpu == Some(true)
            && self.holds_for_looks(Regression::is_passed_by_cpu)
            && self.used.is_as_parallel(self.figure.regression.delta())
    }

    /// Does CPU time decide, and not the figure?
    pub(super) fn is_decided_by_cpu(&self) -> bool {
        self.is_slower_by_cpu() || self.is_passed_by_cpu()
    }

    fn holds_for_looks(
        &self,
        is_true: impl Fn(&Regression, &RegressionLook, &RegressionLook) -> bool,
    ) -> bool {
        let looks = self.look().zip(self.cpu_look());
        looks.is_some_and(|(figure, cpu)| is_true(&self.figure.regression, figure, cpu))
    }

    /// The verdict so far.
    pub(super) fn standing(&self) -> Standing {
        if self.is_slower_by_cpu() {
            Standing::Slower
        } else if self.is_passed_by_cpu() {
            Standing::Passed
        } else {
            self.figure.standing()
        }
    }

    /// CPUs that other programs used during each pair, where known.
    pub(super) fn loads(&self) -> impl Iterator<Item = f64> {
        self.circumstances.load.iter().flatten().copied()
    }

    /// Does it need more pairs, for its verdict or for a history?
    pub(super) fn is_active(&self) -> bool {
        self.failed.is_none() && (!self.is_decided() || self.needs_pairs())
    }

    fn is_decided(&self) -> bool {
        self.standing() != Standing::Undecided
    }

    /// Does a history need more pairs?
    const fn needs_pairs(&self) -> bool {
        self.is_chained && self.links.is_none()
    }

    /// Is it decided, and measured further for a history only?
    pub(super) fn is_only_measured(&self) -> bool {
        self.is_active() && self.is_decided()
    }

    pub(super) const fn least_pairs(&self) -> usize {
        self.figure.regression.least_pairs()
    }

    /// Median seconds per pair; `None` before the first.
    pub(super) fn pair_s(&self) -> Option<f64> {
        self.pair_times_s.get(self.pair_times_s.len() / 2).copied()
    }

    /// Expected seconds until it is decided, from the last look; before the first look, until there
    /// are enough pairs for a verdict. `None` before the first pair.
    pub(super) fn needed_s(&self, delta: f64) -> Option<f64> {
        let look = self.look().filter(|look| look.has_interval());
        let more = match look {
            _ if self.is_decided() => self.width.pairs().saturating_sub(self.pairs.len()) as f64,
            Some(look) => (look.work_factor(delta) - 1.0) * look.pairs as f64,
            None => self.least_pairs().saturating_sub(self.pairs.len()) as f64,
        };
        Some(more.max(1.0) * self.pair_s()?)
    }

    /// Notes how long a pair took, whether it counts or not.
    pub(super) fn spend(&mut self, duration: Duration) {
        let time_s = duration.as_secs_f64();
        let index = self.pair_times_s.partition_point(|t| *t < time_s);
        self.pair_times_s.insert(index, time_s);
    }

    /// Adds a pair, and takes a look if one is due; at most `more` pairs may follow. Returns whether
    /// the benchmark needs no more pairs.
    pub(super) fn add_pair(&mut self, pair: &Pair, more: usize) -> bool {
        let [first, second] = pair.order;
        if !self.is_warm {
            self.is_warm = true;
            return false;
        }
        if !self.figure.data.push(&pair.costs.map(f64::ln)) {
            return false;
        }
        self.add_cpu_time(pair);
        let mut slots = vec![0; 2];
        let mut predecessors = vec![None; 2];
        slots[second] = 1;
        predecessors[first] = pair.before;
        predecessors[second] = Some(first);
        self.circumstances.slots.push(slots);
        self.circumstances.before.push(predecessors);
        self.circumstances.load.push(pair.load);
        self.pairs.push(GatePair {
            at_s: pair.at.as_secs_f64(),
            base: pair.figures[BASE],
            head: pair.figures[HEAD],
            head_first: first == HEAD,
            base_cpu_s: pair.cpu_s.map(|cpu_s| cpu_s[BASE]),
            head_cpu_s: pair.cpu_s.map(|cpu_s| cpu_s[HEAD]),
        });
        self.link_if_precise();
        match self.is_decided() {
            false => self.update_looks(more, false),
            true if !self.needs_pairs() => self.refine_looks(),
            true => {}
        }
        !self.is_active()
    }

    /// Keeps the ratios for a history as soon as they are precise enough, whatever the verdict.
    fn link_if_precise(&mut self) {
        if !self.needs_pairs() || self.pairs.len() < self.width.pairs() {
            return;
        }
        let (links, stored) = self.link_pairs();
        if self.width.is_enough(&links) {
            self.links = Some(stored);
        }
    }

    /// The ratios of all pairs, for statistics and as records.
    fn link_pairs(&self) -> (Vec<Link>, Links) {
        let link =
            |judged: &JudgedFigure| self.width.estimate_link(&judged.data, &self.circumstances);
        let cpu = self.cpu.as_ref();
        let cpu = cpu.filter(|_| self.used.is_comparable()).and_then(link);
        let figure = link(&self.figure);
        let to_record = |link: Link| GateLink {
            ratio: link.estimate.exp(),
            error: link.error,
            pairs: self.pairs.len(),
        };
        let links = Links {
            figure: figure.map(to_record),
            cpu: cpu.map(to_record),
        };
        (figure.into_iter().chain(cpu).collect(), links)
    }

    /// After the verdict, narrows the interval with further pairs. A look that would take the verdict
    /// back is discarded, since the verdict is final.
    fn refine_looks(&mut self) {
        let standing = self.standing();
        let looks = |state: &Self| {
            let cpu = state.cpu.as_ref();
            (state.figure.look.clone(), cpu.map(|cpu| cpu.look.clone()))
        };
        let (figure, cpu_look) = looks(self);
        self.update_looks(0, true);
        if self.standing() != standing {
            self.figure.look = figure;
            if let (Some(cpu), Some(look)) = (&mut self.cpu, cpu_look) {
                cpu.look = look;
            }
        }
    }

    /// Adds the CPU time of a pair; if a run has none, CPU time is not judged any more.
    fn add_cpu_time(&mut self, pair: &Pair) {
        // The verdict is final, and pairs after it only narrow its interval.
        if !self.is_decided() {
            self.used.add(pair.cpu_share, pair.ready);
        }
        let logs = pair.cpu_s.map(|cpu_s| cpu_s.map(f64::ln));
        self.cpu = self.cpu.take().and_then(|mut cpu| {
            let is_whole = cpu.data.push(&logs?);
            is_whole.then_some(cpu)
        });
    }

    /// Before the first look, gives CPU time a share of the error of passing if it may pass sooner.
    fn split_passing(&mut self) {
        if self.may_pass_by_cpu.is_some() || self.pairs.len() < self.least_pairs() {
            return;
        }
        let figure = &mut self.figure;
        let cpu = self.cpu.as_mut().filter(|cpu| {
            let [cpu, figure] = [&cpu.data, &figure.data].map(|data| data.differences(HEAD, BASE));
            beside::is_worth_testing(&cpu, &figure)
        });
        self.may_pass_by_cpu = Some(cpu.is_some());
        if let Some(cpu) = cpu {
            figure.regression.split_passing();
            cpu.regression.split_passing();
        }
    }

    fn update_looks(&mut self, more: usize, at_once: bool) {
        self.split_passing();
        for judged in std::iter::once(&mut self.figure).chain(&mut self.cpu) {
            judged.update_look(&self.circumstances, more, at_once);
        }
    }

    /// Takes the last look, unless the verdict is known. After an interruption, up to `more` pairs
    /// would have followed.
    pub(super) fn close(&mut self, stopped: Stopped, more: usize) {
        if self.failed.is_some() {
            return;
        }
        if !self.is_decided() {
            let more = match stopped {
                Stopped::Interrupted => more,
                _ => 0,
            };
            self.update_looks(more, true);
        }
        // The ratios are unbiased: the end of the budget, or the user, did not depend on them.
        if self.needs_pairs() {
            self.links = Some(self.link_pairs().1);
        }
    }
}
