//! The plan of a comparison: arms, metric and method.

use crate::error::StudyError;
use std::time::Duration;

use pinwise_machine::{Binding, Companion, Output, RunSetting};
use pinwise_placement::{Placement, RealiseError, Realised, merge_equivalent};
use pinwise_record::{ComparisonStudy, Finding, ServiceRecord, Stopped};
use pinwise_stats::confirm::{Question, Score};
use pinwise_stats::judge::Judge;
use pinwise_stats::resolution::Figure;
use pinwise_stats::verdict::Effort;
use pinwise_topology::Topology;
use pinwise_workload::{Better, Command, Metric, Workload};

/// One arm: a command at a place.
#[derive(Debug, Clone)]
pub struct ArmPlan {
    /// Unique name.
    pub name: String,
    /// The command to run.
    pub workload: Workload,
    /// The CPUs that it runs on.
    pub place: Realised,
    /// Requested arms that are equivalent and were merged with this one.
    pub same_as: Vec<String>,
    /// Is this how the command runs if the user changes nothing?
    pub is_default: bool,
    /// How its threads are bound; `None` if all may use all of the place's CPUs.
    pub binding: Option<Binding>,
    /// Settings while it runs, beside its placement.
    pub settings: Vec<RunSetting>,
}

impl ArmPlan {
    /// Do its runs have a cgroup with a CPU quota of their own, which other processes cannot use up?
    pub(super) fn has_own_limit(&self) -> bool {
        let mut groups = self.settings.iter().filter_map(RunSetting::group);
        groups.any(|group| group.limit.is_some())
    }

    /// The command that runs beside the arm's runs.
    pub(super) fn companion(&self) -> Option<&Companion> {
        self.settings.iter().find_map(|setting| match setting {
            RunSetting::Companion(companion) => Some(companion),
            _ => None,
        })
    }

    /// Its name.
    pub(super) fn companion_name(&self) -> Option<&str> {
        self.companion().map(|companion| companion.name.as_str())
    }
}

/// A companion whose own figure is read from its output during a run.
#[derive(Debug, Clone)]
pub struct CompanionMetric {
    /// The companion's name.
    pub name: String,
    /// Its figure.
    pub metric: Metric,
}

/// Is the metric a count, or a measurement that a clock may have rounded?
pub(crate) fn figure_kind(metric: &Metric) -> Figure {
    match metric.is_count() {
        Some(true) => Figure::Counted,
        Some(false) => Figure::Measured,
        None => Figure::Unknown,
    }
}

/// Settings of the method.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// Family-wise two-sided error rate.
    pub alpha: f64,
    /// Smallest effect of interest, relative.
    pub min_effect: f64,
    /// Go on until the half-width of every interval is at most this, relative.
    pub precision: Option<f64>,
    /// Time for the whole comparison.
    pub budget: Option<Duration>,
    /// Runs per arm, on average over the arms.
    pub max_runs: Option<usize>,
    /// Does it go on until the answer is known? A budget or a number of runs may still end it
    /// early, but looks are not planned by them.
    pub is_open_ended: bool,
    /// Warm-up blocks; `None` for one, or two if the first was slow.
    pub warmup: Option<usize>,
    /// The statistic of the runs that is judged.
    pub judge: Judge,
    /// How blocks are weighted if the typical run is judged.
    pub score: Score,
    /// Allowed slow-down, relative. With it, the comparison goes on until it is known for each arm
    /// whether it exceeds the limit, rather than until the best arm is known.
    pub limit: Option<f64>,
    /// With a limit: does it go on until the best arm is known, too?
    pub requires_verdict: bool,
}

impl Tuning {
    /// The limit as `ln(ratio)`.
    #[must_use]
    pub fn log_limit(&self) -> Option<f64> {
        self.limit.map(f64::ln_1p)
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            alpha: 0.05,
            min_effect: 0.01,
            precision: None,
            budget: Some(Duration::from_secs(60)),
            max_runs: None,
            is_open_ended: false,
            warmup: None,
            judge: Judge::default(),
            score: Score::default(),
            limit: None,
            requires_verdict: false,
        }
    }
}

/// A comparison that can be carried out.
#[derive(Debug, Clone)]
pub struct ComparePlan {
    /// At least two arms, or one that is only timed.
    pub arms: Vec<ArmPlan>,
    /// Is there only one arm, which is timed, and nothing to compare?
    pub is_timing: bool,
    /// Index of the arm the others are compared with.
    pub baseline: usize,
    /// What is compared.
    pub metric: Metric,
    /// Unit of the figure where the metric has none; empty if unknown.
    pub unit: String,
    /// Is CPU time judged as well? Only for two commands in one place: if a placement is compared,
    /// CPU time may grow while wall-clock time stays.
    pub with_cpu: bool,
    /// Settings of the method.
    pub tuning: Tuning,
    /// Part of the budget that planning has used.
    pub spent_before: Duration,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Where the commands' output goes.
    pub output: Output,
    /// Are the figures of all arms of interest, and not only the best arm? Then no arm is screened
    /// out, and there is no warning that the budget is too short for a verdict.
    pub is_survey: bool,
    /// Findings from planning.
    pub known: Vec<Finding>,
    /// The command of pinwise that compares.
    pub study: ComparisonStudy,
    /// Id of the record.
    pub id: String,
    /// Arguments on the command line; empty if there was none.
    pub argv: Vec<String>,
    /// Start time, RFC 3339.
    pub started: String,
    /// The user's labels.
    pub tags: Vec<String>,
    /// Index of the arm that is the baseline under another name.
    pub placebo: Option<usize>,
    /// The running service that is placed in turns; `None` if every run starts a command.
    pub service: Option<ServiceRecord>,
    /// Companions whose own figures are read.
    pub companions: Vec<CompanionMetric>,
}

/// No arms (the first will be the baseline), default settings of the method, seed 0, no id.
impl Default for ComparePlan {
    fn default() -> Self {
        Self {
            arms: Vec::new(),
            is_timing: false,
            baseline: 0,
            metric: Metric::wall(),
            unit: String::new(),
            with_cpu: false,
            tuning: Tuning::default(),
            spent_before: Duration::ZERO,
            seed: 0,
            output: Output::Discard,
            is_survey: false,
            known: Vec::new(),
            study: ComparisonStudy::Compare,
            id: String::new(),
            argv: Vec::new(),
            started: String::new(),
            tags: Vec::new(),
            placebo: None,
            service: None,
            companions: Vec::new(),
        }
    }
}

impl ComparePlan {
    /// One command under several placements, the first of which is the
    /// baseline; equivalent ones are merged. The other fields have their defaults.
    ///
    /// # Errors
    /// [`RealiseError`] if a placement is not possible on this machine.
    pub fn compare_placements(
        command: Command,
        topology: &Topology,
        placements: &[Placement],
    ) -> Result<Self, RealiseError> {
        let places: Vec<Realised> = placements
            .iter()
            .map(|placement| placement.realise(topology))
            .collect::<Result<_, _>>()?;
        let arms = merge_equivalent(places)
            .into_iter()
            .map(|merged| {
                let place = merged.placement;
                ArmPlan {
                    name: place.placement.to_string(),
                    workload: Workload::new(command.clone()),
                    is_default: place.placement == Placement::os_default(),
                    binding: Binding::for_place(&place, None),
                    settings: Vec::new(),
                    place,
                    same_as: merged.also_named,
                }
            })
            .collect();
        Ok(Self {
            arms,
            ..Self::default()
        })
    }

    /// The metric of this arm's companion, if it has one.
    pub(super) fn companion_metric(&self, arm: &ArmPlan) -> Option<&CompanionMetric> {
        let companion = arm.companion()?;
        let mut metrics = self.companions.iter();
        metrics.find(|metric| metric.name == companion.name)
    }

    /// Checks that there is something to compare, and that settings are in their ranges.
    ///
    /// # Errors
    /// [`StudyError::Plan`] with the first violation.
    pub fn check(&self) -> Result<(), StudyError> {
        let reject = |text: &str| Err(StudyError::Plan(text.to_owned()));
        if self.arms.len() < 2 && !(self.is_timing && self.arms.len() == 1) {
            return reject(
                "there is nothing to compare: only one arm is left on this machine; add another --place or --command",
            );
        }
        let tuning = &self.tuning;
        if !(tuning.min_effect > 0.0 && tuning.min_effect < 1.0) {
            return reject("--min-effect must lie between 0 and 100 %");
        }
        if !(tuning.alpha > 0.0 && tuning.alpha < 0.5) {
            return reject("the error level must lie between 0 and 0.5");
        }
        if tuning.precision.is_some_and(|p| !(p > 0.0 && p < 1.0)) {
            return reject("--precision must lie between 0 and 100 %");
        }
        if tuning.max_runs == Some(0) {
            return reject("--max-runs must be at least 1");
        }
        let has_end = tuning.budget.is_some() || tuning.max_runs.is_some();
        if !has_end && !tuning.is_open_ended {
            return reject("a budget is needed: --budget or --max-runs");
        }
        Ok(())
    }

    /// The question to the statistics.
    #[must_use]
    pub fn question(&self) -> Question {
        Question {
            judge: self.tuning.judge,
            score: self.tuning.score,
            alpha: self.tuning.alpha,
            delta: self.tuning.min_effect.ln_1p(),
            figure: figure_kind(&self.metric),
            is_rate: self.metric.better() == Better::Higher,
            is_open_ended: self.tuning.is_open_ended,
        }
    }

    /// Is CPU time judged beside wall-clock time? Only if typical runs of two arms are compared.
    pub(super) fn judges_cpu_time(&self) -> bool {
        self.with_cpu && self.arms.len() == 2 && self.tuning.judge == Judge::Typical
    }

    /// The fewest blocks that allow a verdict on this many arms.
    #[must_use]
    pub fn least_blocks(&self, arms: usize) -> usize {
        self.question().least_blocks(arms.saturating_sub(1))
    }

    /// What to give more of (runs, budget, time), depending on what stopped the experiment.
    #[must_use]
    pub fn more_effort(&self, stopped: Option<&Stopped>) -> &'static str {
        match (self.effort(stopped), self.tuning.budget) {
            (Effort::Runs, _) => "more runs",
            (Effort::Time, Some(_)) => "a longer --budget",
            (Effort::Time, None) => "more time",
        }
    }

    /// The unit of further effort: time, unless the number of runs stopped the experiment or is the
    /// only limit.
    #[must_use]
    pub fn effort(&self, stopped: Option<&Stopped>) -> Effort {
        let by_runs = stopped == Some(&Stopped::Runs);
        let has_runs_only = self.tuning.budget.is_none() && self.tuning.max_runs.is_some();
        match by_runs || has_runs_only {
            true => Effort::Runs,
            false => Effort::Time,
        }
    }
}
