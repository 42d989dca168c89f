//! The machine on which an experiment's arms run, this one or a simulated one, with the settings of
//! its comparisons.

use anyhow::{Result, bail};

use super::claim::ClaimResult;
use crate::compare::{self, ArmPlan, ComparePlan, Observer, Tuning};
use pinwise_machine::{Machine, MachineError, Output};
use pinwise_placement::{Placement, Realised};
use pinwise_record::{Comparison, ComparisonStudy, ContrastRecord, ContrastVerdict, Stopped};
use pinwise_sim::SimulatedMachine;
use pinwise_topology::Topology;
use pinwise_workload::{Command, Metric, Workload};

/// Maximum number of runs per arm on a simulated machine.
const SIMULATED_RUNS: usize = 60;
/// Sufficient half-width of an interval on a simulated machine, relative.
const SIMULATED_PRECISION: f64 = 0.005;

/// One arm of an experiment.
#[derive(Debug, Clone)]
pub(super) struct Arm {
    pub(super) name: &'static str,
    pub(super) command: Vec<String>,
    pub(super) place: String,
    pub(super) environment: Vec<(String, String)>,
}

impl Arm {
    pub(super) fn new(name: &'static str, command: &str, place: &str) -> Self {
        Self {
            name,
            command: command.split(' ').map(str::to_owned).collect(),
            place: place.to_owned(),
            environment: Vec::new(),
        }
    }

    pub(super) fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A machine that the stage owns or borrows.
enum StageMachine<'a> {
    Owned(Box<SimulatedMachine>),
    Borrowed(&'a mut dyn Machine),
}

impl StageMachine<'_> {
    fn machine(&mut self) -> &mut dyn Machine {
        match self {
            Self::Owned(machine) => machine.as_mut(),
            Self::Borrowed(machine) => *machine,
        }
    }
}

/// A machine, and how to compare arms on it.
pub(super) struct Stage<'a> {
    machine: StageMachine<'a>,
    pub(super) topology: Topology,
    metric: Metric,
    seed: u64,
    tuning: Tuning,
    observer: &'a mut dyn Observer,
}

impl<'a> Stage<'a> {
    /// A simulated machine with this description.
    pub(super) fn from_description(
        label: &str,
        text: &str,
        seed: u64,
        observer: &'a mut dyn Observer,
    ) -> Result<Self> {
        let machine = SimulatedMachine::from_text(label, text, seed)?;
        let tuning = Tuning {
            budget: None,
            max_runs: Some(SIMULATED_RUNS),
            precision: Some(SIMULATED_PRECISION),
            ..Tuning::default()
        };
        Self::with_machine(
            StageMachine::Owned(Box::new(machine)),
            Metric::wall(),
            seed,
            tuning,
            observer,
        )
    }

    /// This machine.
    pub(super) fn new(
        machine: &'a mut dyn Machine,
        metric: Metric,
        seed: u64,
        tuning: Tuning,
        observer: &'a mut dyn Observer,
    ) -> Result<Self> {
        Self::with_machine(
            StageMachine::Borrowed(machine),
            metric,
            seed,
            tuning,
            observer,
        )
    }

    fn with_machine(
        mut machine: StageMachine<'a>,
        metric: Metric,
        seed: u64,
        tuning: Tuning,
        observer: &'a mut dyn Observer,
    ) -> Result<Self> {
        let (topology, _) = machine.machine().topology()?;
        Ok(Self {
            machine,
            topology,
            metric,
            seed,
            tuning,
            observer,
        })
    }

    /// Always runs the maximum number of runs: spreads need many.
    pub(super) fn with_all_runs(mut self) -> Self {
        self.tuning.precision = Some(1e-6);
        self
    }

    pub(super) fn machine(&mut self) -> &mut dyn Machine {
        self.machine.machine()
    }

    /// Runs arms against each other; the first is the baseline.
    pub(super) fn compare(&mut self, arms: &[Arm]) -> Result<Answer> {
        let plan = ComparePlan {
            arms: arms
                .iter()
                .map(|arm| self.plan_arm(arm))
                .collect::<Result<_>>()?,
            metric: self.metric.clone(),
            tuning: self.tuning.clone(),
            seed: self.seed,
            output: if self.metric.needs_output() {
                Output::Keep
            } else {
                Output::Discard
            },
            study: ComparisonStudy::Reproduce,
            ..ComparePlan::default()
        };
        let record = compare::run(&plan, self.machine.machine(), self.observer)?;
        if record.stopped == Some(Stopped::Interrupted) {
            return Err(MachineError::Interrupted.into());
        }
        if let Some(arm) = record.arms.iter().find(|arm| arm.invalid.is_some()) {
            bail!("{}", arm.invalid.as_deref().unwrap_or_default());
        }
        Ok(Answer { record })
    }

    fn plan_arm(&self, arm: &Arm) -> Result<ArmPlan> {
        let placement: Placement = arm.place.parse()?;
        let place: Realised = placement.realise(&self.topology)?;
        let workload = Workload {
            environment: arm.environment.clone(),
            ..Workload::new(Command::from_argv(arm.command.clone())?)
        };
        Ok(ArmPlan {
            name: arm.name.to_owned(),
            workload,
            is_default: place.placement == Placement::os_default(),
            binding: None,
            settings: Vec::new(),
            place,
            same_as: Vec::new(),
        })
    }
}

/// The budget was too small for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too few runs for an answer in this time; --budget gives more")]
pub(super) struct TooFew;

/// The result of a comparison.
pub(super) struct Answer {
    record: Comparison,
}

impl Answer {
    /// Change of an arm's speed relative to the baseline, per cent.
    pub(super) fn speed(&self, arm: &str) -> Result<ClaimResult> {
        self.read_ratio(arm, |ratio| 100.0 * (1.0 / ratio - 1.0))
    }

    /// Change of an arm's time relative to the baseline, per cent.
    pub(super) fn time(&self, arm: &str) -> Result<ClaimResult> {
        self.read_ratio(arm, |ratio| 100.0 * (ratio - 1.0))
    }

    /// Share of the baseline's time that an arm saves, per cent.
    pub(super) fn saving(&self, arm: &str) -> Result<ClaimResult> {
        self.read_ratio(arm, |ratio| 100.0 * (1.0 - ratio))
    }

    /// A figure computed from the ratio of costs, with its interval.
    fn read_ratio(&self, arm: &str, to_figure: impl Fn(f64) -> f64) -> Result<ClaimResult> {
        let contrast = self.contrast(arm).ok_or(TooFew)?;
        let end = |ratio: Option<f64>| ratio.map_or(f64::NAN, &to_figure);
        let (one, other) = (end(contrast.low), end(contrast.high));
        Ok(ClaimResult {
            value: to_figure(contrast.ratio),
            low: one.min(other),
            high: one.max(other),
        })
    }

    fn contrast(&self, arm: &str) -> Option<&ContrastRecord> {
        self.record.contrasts.iter().find(|c| c.arm == arm)
    }

    /// Is an arm without a verdict?
    pub(super) fn is_undecided(&self, arm: &str) -> bool {
        self.contrast(arm)
            .is_none_or(|contrast| contrast.verdict == ContrastVerdict::Undecided)
    }

    /// The spread of an arm's runs over that of the baseline's, with the interval; `None` if there are
    /// too few runs.
    pub(super) fn spread(&self, arm: &str) -> Option<ClaimResult> {
        let contrast = self.contrast(arm)?;
        Some(ClaimResult {
            value: contrast.spread_ratio?,
            low: contrast.spread_low?,
            high: contrast.spread_high?,
        })
    }

    /// Coefficient of variation of an arm's runs.
    pub(super) fn variation(&self, arm: &str) -> Option<f64> {
        let arm = self.record.arms.iter().find(|a| a.name == arm)?;
        arm.spread.as_ref().map(|spread| spread.cv)
    }
}
