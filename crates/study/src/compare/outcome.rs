//! Runs a command once and records it: does the run count, and what did it cost?

use std::fmt;
use std::time::Duration;

use super::plan::CompanionMetric;
use crate::throttling::Stops;
use pinwise_format::count;
use pinwise_machine::{
    Binding, CommandRunner, Coverage, End, MachineError, Output, Request, Run, RunSetting,
};
use pinwise_placement::Realised;
use pinwise_record::{CoverageRecord, MetricReading, MoverRecord, Phase, RunRecord};
use pinwise_workload::{Metric, RunFigures, SuccessRule, Workload};

/// How much of a failed run's standard error is shown.
const MAX_STDERR_CHARS: usize = 2000;

/// State of an arm during the experiment.
#[derive(Debug, Clone, Default)]
pub(super) struct ArmState {
    /// Runs of whole blocks.
    pub(super) runs: Vec<RunRecord>,
    /// Runs of warm-up and of dropped blocks.
    pub(super) other_runs: Vec<RunRecord>,
    /// Why its runs do not count.
    pub(super) invalid: Option<String>,
    /// Did a run reach the time-out?
    pub(super) has_timed_out: bool,
    /// Was it left out by screening?
    pub(super) eliminated: bool,
    /// How often a CPU quota throttled its runs.
    pub(super) stops: Stops,
}

impl ArmState {
    pub(super) const fn is_valid(&self) -> bool {
        self.invalid.is_none() && !self.eliminated
    }

    /// Its runs so far, warm-up included.
    pub(super) const fn run_count(&self) -> usize {
        self.runs.len() + self.other_runs.len()
    }

    pub(super) fn keep(&mut self, run: RunRecord) {
        match run.phase {
            Phase::Screening | Phase::Confirmation => self.runs.push(run),
            Phase::Warmup | Phase::Dropped => self.other_runs.push(run),
        }
    }
}

/// Why a run does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFailure {
    reason: String,
    /// The option of `compare` that would help; empty if none would.
    hint: &'static str,
    stderr: String,
}

/// Most characters of a command's standard error that a sentence quotes; more follow on their own.
const MAX_QUOTED: usize = 100;

impl fmt::Display for RunFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)?;
        let is_short = !self.stderr.contains('\n') && self.stderr.chars().count() <= MAX_QUOTED;
        if is_short && !self.stderr.is_empty() {
            write!(out, ": {}", self.stderr)?;
        }
        if !self.hint.is_empty() {
            write!(out, " ({})", self.hint)?;
        }
        if !is_short {
            write!(out, "; its standard error ends with:\n{}", self.stderr)?;
        }
        Ok(())
    }
}

/// When in the experiment a run takes place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) phase: Phase,
    pub(crate) block: usize,
    /// Position in the block.
    pub(crate) order: usize,
    /// Runs in the block.
    pub(crate) block_runs: usize,
    /// Since the start of the experiment.
    pub(crate) at: Duration,
}

/// A run to measure.
#[derive(Debug)]
pub(crate) struct Trial<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) place: &'a Realised,
    pub(crate) binding: Option<&'a Binding>,
    pub(crate) settings: &'a [RunSetting],
    /// The companion whose figure is read as well.
    pub(crate) companion: Option<&'a CompanionMetric>,
    pub(crate) metric: &'a Metric,
    pub(crate) output: Output,
    /// Bytes by which the environment is padded.
    pub(crate) padding: usize,
}

impl Trial<'_> {
    /// The run as a request to the machine.
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            workload: self.workload,
            cpus: &self.place.cpus,
            memory: self.place.memory.as_ref(),
            output: self.output.clone(),
            environment_padding: self.padding,
            count_threads_closely: false,
            bound: self.binding,
            settings: self.settings,
        }
    }

    /// Prepares, runs, verifies and cleans up; returns the record of the run, and why it failed if
    /// it did. `started` is the start of the experiment.
    pub(crate) fn run(
        &self,
        machine: &mut dyn CommandRunner,
        mut moment: Moment,
        started: Duration,
    ) -> Result<(RunRecord, Option<RunFailure>), MachineError> {
        if let Some(prepare) = &self.workload.prepare {
            machine.run_helper("prepare", prepare)?;
        }
        moment.at = machine.now().saturating_sub(started);
        let run = machine.run(&self.request())?;
        let (mut record, mut failure) = record_run(&run, self.metric, self.workload, moment);
        if let (None, Some(companion)) = (&failure, self.companion) {
            match read_companion(companion, &run) {
                Ok(reading) => record.companion = Some(reading),
                Err(reason) => {
                    failure = Some(RunFailure::from_reason(reason));
                    record.metric = MetricReading::default();
                }
            }
        }
        if failure.is_none() {
            failure = self.verify_output(machine)?;
            if failure.is_some() {
                record.metric = MetricReading::default();
            }
        }
        if let Some(conclude) = &self.workload.conclude {
            machine.run_helper("conclude", conclude)?;
        }
        Ok((record, failure))
    }

    /// Runs the check of the output, if there is one; returns why it failed, if it did.
    fn verify_output(
        &self,
        machine: &mut dyn CommandRunner,
    ) -> Result<Option<RunFailure>, MachineError> {
        let Some(verify) = &self.workload.verify else {
            return Ok(None);
        };
        match machine.run_helper("verify", verify) {
            Ok(()) => Ok(None),
            Err(MachineError::Helper { reason, .. }) => {
                Ok(Some(RunFailure::invalid_output(&reason)))
            }
            Err(error) => Err(error),
        }
    }
}

/// The record of a run, and why it failed if it did.
fn record_run(
    run: &Run,
    metric: &Metric,
    workload: &Workload,
    moment: Moment,
) -> (RunRecord, Option<RunFailure>) {
    let (metric, failure) = read_metric(run, metric, workload);
    let (exit, signal) = match run.end {
        End::Status(status) => (Some(status), None),
        End::Signal(signal) => (None, Some(signal)),
        End::TimedOut | End::Interrupted | End::LeftBehind(_) | End::NoFigure(_) => (None, None),
    };
    let record = RunRecord {
        block: moment.block,
        order: moment.order,
        block_runs: moment.block_runs,
        phase: moment.phase,
        at_s: moment.at.as_secs_f64(),
        wall_s: run.wall.as_secs_f64(),
        user_s: run.user.map(|t| t.as_secs_f64()),
        sys_s: run.system.map(|t| t.as_secs_f64()),
        queued_s: run.queued.map(|t| t.as_secs_f64()),
        max_rss_bytes: run.max_rss_bytes,
        exit,
        signal,
        timed_out: run.end == End::TimedOut,
        threads: run.threads,
        migrations: run.counts.migrations,
        context_switches: run
            .voluntary_switches
            .zip(run.involuntary_switches)
            .map(|(v, i)| v + i),
        involuntary_switches: run.involuntary_switches,
        minor_faults: run.minor_faults,
        major_faults: run.major_faults,
        cycles: run.counts.cycles,
        instructions: run.counts.instructions,
        granted_cpus: run.granted.to_string(),
        coverage: run.coverage.as_ref().map(coverage_record),
        foreign_cpu_s: run.foreign_cpu.map(|t| t.as_secs_f64()),
        steal_s: run.steal.map(|t| t.as_secs_f64()),
        throttled: run.throttled.map(|limit| limit.times),
        throttled_s: run.throttled.map(|limit| limit.held.as_secs_f64()),
        sched_ext: run.sched_ext.clone(),
        companion: None,
        metric,
    };
    (record, failure)
}

/// On which CPUs bound threads ran, as a record.
#[must_use]
pub fn coverage_record(coverage: &Coverage) -> CoverageRecord {
    CoverageRecord {
        threads: coverage.threads,
        moved_threads: coverage.moved,
        cpu_s: coverage.cpu.as_secs_f64(),
        where_asked_s: coverage.where_bound.as_secs_f64(),
        movers: coverage
            .movers
            .iter()
            .map(|mover| MoverRecord {
                program: mover.program.clone(),
                knob: mover.knob.clone(),
            })
            .collect(),
    }
}

/// The figures of a run from which metrics are read.
pub(crate) fn read_figures(run: &Run) -> RunFigures<'_> {
    RunFigures {
        wall_s: run.wall.as_secs_f64(),
        user_s: run.user.map(|t| t.as_secs_f64()),
        sys_s: run.system.map(|t| t.as_secs_f64()),
        max_rss_bytes: run.max_rss_bytes,
        counts: run.counts,
        output: run.output.as_deref(),
    }
}

fn read_metric(
    run: &Run,
    metric: &Metric,
    workload: &Workload,
) -> (MetricReading, Option<RunFailure>) {
    if let Some(failure) = RunFailure::from_run(run, workload) {
        return (MetricReading::default(), Some(failure));
    }
    match metric.read(&read_figures(run)) {
        Ok(value) => {
            let reading = MetricReading {
                value: Some(value),
                cost: Some(metric.cost(value)),
            };
            (reading, None)
        }
        Err(reason) => {
            let failure = RunFailure::from_reason(reason.to_string());
            (MetricReading::default(), Some(failure))
        }
    }
}

/// The figure of a run's companion, or why it cannot be read.
fn read_companion(companion: &CompanionMetric, run: &Run) -> Result<MetricReading, String> {
    let measured = RunFigures {
        output: run.companion_output.as_deref(),
        ..RunFigures::default()
    };
    let value = companion.metric.read(&measured);
    let value = value.map_err(|reason| format!("{}: {reason}", companion.name))?;
    Ok(MetricReading {
        value: Some(value),
        cost: Some(companion.metric.cost(value)),
    })
}

impl RunFailure {
    /// Why a run of this workload does not count; `None` if it does.
    #[must_use]
    pub fn from_run(run: &Run, workload: &Workload) -> Option<Self> {
        let reason = describe_failure(run, workload)?;
        let stderr = shorten_stderr(&run.stderr_tail);
        let hint = match (&run.end, workload.success) {
            (End::Status(status), SuccessRule::Zero) if *status != 0 => {
                "--ignore-failure accepts it"
            }
            (End::TimedOut, _) => "--timeout allows more",
            _ => "",
        };
        Some(Self {
            reason,
            hint,
            stderr,
        })
    }

    /// The failure after this number of runs of the same command that succeeded.
    pub(super) fn after(mut self, runs: usize) -> Self {
        if runs > 0 {
            self.reason += &format!(" after {}", count(runs, "good run"));
        }
        self
    }

    /// The failure for commands that lack the options of `compare`.
    #[must_use]
    pub(crate) const fn without_hint(mut self) -> Self {
        self.hint = "";
        self
    }

    /// The run succeeded, but its output failed the check.
    fn invalid_output(reason: &str) -> Self {
        Self::from_reason(format!(
            "wrong output: its check says {}",
            reason.replace('\n', "; ")
        ))
    }

    const fn from_reason(reason: String) -> Self {
        Self {
            reason,
            hint: "",
            stderr: String::new(),
        }
    }
}

fn describe_failure(run: &Run, workload: &Workload) -> Option<String> {
    let command = describe_command(workload);
    match &run.end {
        End::Status(0) => describe_wrong_output(run, workload),
        End::Status(_) if workload.success == SuccessRule::AnyStatus => {
            describe_wrong_output(run, workload)
        }
        End::Status(status) => Some(format!("{command} failed with exit status {status}")),
        End::Signal(signal) => Some(format!("{command} was killed by signal {signal}")),
        End::TimedOut => {
            let limit = workload.timeout.unwrap_or_default().as_secs_f64();
            Some(format!(
                "{command} took longer than its time-out of {limit} s and was killed"
            ))
        }
        End::Interrupted => Some(format!("{command} was interrupted")),
        End::NoFigure(why) => Some(why.clone()),
        End::LeftBehind(names) => Some(format!(
            "{command} ended but left processes running ({}); they were killed: run it in the foreground",
            names.join(", ")
        )),
    }
}

/// The command in quotes, unless it has quotes itself; a recipe by its name, since its scripts are
/// long.
fn describe_command(workload: &Workload) -> String {
    let command = match &workload.recipe {
        Some(recipe) => format!("recipe {recipe}"),
        None => workload.command.to_string(),
    };
    match command.contains('\'') {
        true => command,
        false => format!("'{command}'"),
    }
}

fn describe_wrong_output(run: &Run, workload: &Workload) -> Option<String> {
    let expect = workload.expect.as_ref()?;
    let output = run.output.as_deref()?;
    (!expect.is_in(output)).then(|| format!("wrong output: nothing in it matches '{expect}'"))
}

fn shorten_stderr(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim_end();
    let skip = text.chars().count().saturating_sub(MAX_STDERR_CHARS);
    text.chars().skip(skip).collect()
}

/// Where the output of a run goes: files are named by arm, phase and block, so that none is
/// overwritten.
pub(super) fn name_output(output: &Output, arm: &str, phase: Phase, block: usize) -> Output {
    let phase = match phase {
        Phase::Warmup => "warmup",
        Phase::Screening => "screening",
        Phase::Confirmation | Phase::Dropped => "run",
    };
    name_output_of_run(output, arm, &format!("{phase}-{block:04}"))
}

/// Where the output of a run with this name goes.
pub(crate) fn name_output_of_run(output: &Output, arm: &str, run: &str) -> Output {
    let Output::Files(folder) = output else {
        return output.clone();
    };
    let safe: String = arm
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "-_.,=+".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    Output::Files(folder.join(format!("{safe}.{run}")))
}
