//! What is compared, and how.

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
    /// What runs.
    pub workload: Workload,
    /// The CPUs that it runs on.
    pub place: Realised,
    /// Requested other names that are equivalent.
    pub same_as: Vec<String>,
    /// Is this what happens when nothing is done?
    pub is_default: bool,
    /// How its threads are bound; `None`: they share the place's CPUs.
    pub binding: Option<Binding>,
    /// Settings while it runs, beside its placement.
    pub settings: Vec<RunSetting>,
}

impl ArmPlan {
    /// Does a limit of its own stop its runs? Nobody else uses up that limit.
    pub(super) fn has_own_limit(&self) -> bool {
        let mut groups = self.settings.iter().filter_map(RunSetting::group);
        groups.any(|group| group.limit.is_some())
    }

    /// The command that runs beside its runs.
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

/// A companion whose own figure is read, from what it prints during a run.
#[derive(Debug, Clone)]
pub struct CompanionMetric {
    /// The companion's name.
    pub name: String,
    /// Its figure.
    pub metric: Metric,
}

/// May it have been rounded by a clock? Unless something says so, whole numbers are counts.
pub(crate) fn figure_of(metric: &Metric) -> Figure {
    match metric.is_count() {
        Some(true) => Figure::Counted,
        Some(false) => Figure::Measured,
        None => Figure::Unknown,
    }
}

/// Figures of the method.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// Family-wise two-sided error.
    pub alpha: f64,
    /// Smallest effect of interest, as a share.
    pub min_effect: f64,
    /// Go on until every interval is within ± this share.
    pub precision: Option<f64>,
    /// Time for everything.
    pub budget: Option<Duration>,
    /// Runs per arm, on average over the arms.
    pub max_runs: Option<usize>,
    /// Does it go on until the answer is known? Time and runs are then not a plan; if one is given,
    /// it may end the comparison early.
    pub is_open_ended: bool,
    /// Warm-up blocks; `None` for one, or two if the first was slow.
    pub warmup: Option<usize>,
    /// What of the runs is judged.
    pub judge: Judge,
    /// How blocks are weighted if the typical run is judged.
    pub score: Score,
    /// A slow-down, as a share: it goes on until it is known for each arm whether it exceeds this,
    /// and not until the best arm is known.
    pub limit: Option<f64>,
    /// Is the latter asked as well?
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
    /// Arms: at least two, or one that is only timed.
    pub arms: Vec<ArmPlan>,
    /// Was one arm alone asked for? It is timed, and nothing compared.
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
    /// Figures of the method.
    pub tuning: Tuning,
    /// Time of the budget that planning took.
    pub spent_before: Duration,
    /// Seed of the order of runs.
    pub seed: u64,
    /// What becomes of the commands' output.
    pub output: Output,
    /// Is every arm's figure wanted, and not only the best? Then none is screened, and no warning
    /// says that the budget is too short for a verdict.
    pub is_survey: bool,
    /// Findings that are known beforehand.
    pub known: Vec<Finding>,
    /// What it is made for.
    pub study: ComparisonStudy,
    /// Name under which the record is stored.
    pub id: String,
    /// The arguments that it was made from; empty if no command line was.
    pub argv: Vec<String>,
    /// When it begins, RFC 3339.
    pub started: String,
    /// Labels of the user's.
    pub tags: Vec<String>,
    /// Index of the arm that is the baseline under another name.
    pub placebo: Option<usize>,
    /// The service that runs already and is placed in turns; `None`: every run
    /// starts a command.
    pub service: Option<ServiceRecord>,
    /// Companions whose own figures are read.
    pub companions: Vec<CompanionMetric>,
}

/// Without arms, the first of which will be the baseline; with the method's default figures, seed 0
/// and no name.
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
    /// baseline; equivalent ones are merged. With the method's default
    /// figures, seed 0 and no name: set the fields that should differ.
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

    /// The figure of the companion of this arm, if it is read.
    pub(super) fn figure_beside(&self, arm: &ArmPlan) -> Option<&CompanionMetric> {
        let companion = arm.companion()?;
        let mut all = self.companions.iter();
        all.find(|metric| metric.name == companion.name)
    }

    /// Checks figures that no type can check.
    ///
    /// # Errors
    /// [`StudyError::Plan`] says which.
    pub fn check(&self) -> Result<(), StudyError> {
        let out = |text: &str| Err(StudyError::Plan(text.to_owned()));
        if self.arms.len() < 2 && !(self.is_timing && self.arms.len() == 1) {
            return out(
                "there is nothing to compare: only one arm is left on this machine; add another --place or --command",
            );
        }
        let tuning = &self.tuning;
        if !(tuning.min_effect > 0.0 && tuning.min_effect < 1.0) {
            return out("--min-effect must lie between 0 and 100 %");
        }
        if !(tuning.alpha > 0.0 && tuning.alpha < 0.5) {
            return out("the error level must lie between 0 and 0.5");
        }
        if tuning.precision.is_some_and(|p| !(p > 0.0 && p < 1.0)) {
            return out("--precision must lie between 0 and 100 %");
        }
        if tuning.max_runs == Some(0) {
            return out("--max-runs must be at least 1");
        }
        let has_end = tuning.budget.is_some() || tuning.max_runs.is_some();
        if !has_end && !tuning.is_open_ended {
            return out("a budget is needed: --budget or --max-runs");
        }
        Ok(())
    }

    /// What every run must satisfy.
    #[must_use]
    pub fn question(&self) -> Question {
        Question {
            judge: self.tuning.judge,
            score: self.tuning.score,
            alpha: self.tuning.alpha,
            delta: self.tuning.min_effect.ln_1p(),
            figure: figure_of(&self.metric),
            is_rate: self.metric.better() == Better::Higher,
            is_open_ended: self.tuning.is_open_ended,
        }
    }

    /// Is CPU time judged beside wall-clock time? Of typical runs, and of two arms only.
    pub(super) fn judges_cpu_time(&self) -> bool {
        self.with_cpu && self.arms.len() == 2 && self.tuning.judge == Judge::Typical
    }

    /// The fewest blocks that allow a verdict on this many arms.
    #[must_use]
    pub fn least_blocks(&self, arms: usize) -> usize {
        self.question().least_blocks(arms.saturating_sub(1))
    }

    /// The option that allows the experiment more effort, given what stopped it.
    #[must_use]
    pub fn more_effort(&self, stopped: Option<&Stopped>) -> &'static str {
        match (self.effort(stopped), self.tuning.budget) {
            (Effort::Runs, _) => "more runs",
            (Effort::Time, Some(_)) => "a longer --budget",
            (Effort::Time, None) => "more time",
        }
    }

    /// The unit of further effort: time, unless runs ended it or they alone are limited.
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
