//! Measures a running service under several placements, in turns.
//!
//! What is a run of a command in other experiments is here a series of steps: restore every thread,
//! apply the arm's placement, let the service settle, then measure its own figure for a while.
//! Every arm goes through the same steps, including the one that changes nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use super::LiveError;
use super::reading::{Source, quote_first_lines};
use super::service::{RestoreSummary, Service, Wish};
use crate::linux::usage::busy_since;
use crate::linux::{LinuxMachine, UndoOutcome, check_undone, sys};
use crate::{BusyProcess, CommandRunner, End, Host, MachineError, Request, Run, RunSetting, Usage};
use pinwise_stats::describe::quantile;
use pinwise_topology::{CpuSet, Topology, Warning};
use pinwise_workload::{Command, Metric, RunFigures, join_two_readings};

/// A command that takes at least this share of a sample measures by itself for its whole duration.
const SELF_MEASURING_SHARE: f64 = 0.5;
/// Most notes that are kept.
const MAX_NOTES: usize = 20;

/// How a service is measured.
#[derive(Debug)]
pub struct LiveOrder {
    /// The source of its figure.
    pub source: Source,
    /// The figure.
    pub metric: Metric,
    /// How long each sample lasts.
    pub sample: Duration,
    /// Time after a change of placement that does not count.
    pub settle: Duration,
    /// When a placement is rolled back early; `None`: never.
    pub limit: Option<Limit>,
}

/// When a placement is rolled back at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// It is rolled back if its cost exceeds the baseline's running median by this share.
    pub share: f64,
    /// The baseline's CPUs.
    pub cpus: CpuSet,
    /// The baseline's order of CPUs, if its threads are bound.
    pub order: Option<Vec<usize>>,
    /// The baseline's host settings.
    pub settings: Vec<RunSetting>,
    /// The baseline's name in sentences.
    pub name: String,
}

/// The host with a running service instead of commands to start.
#[derive(Debug)]
pub struct LiveMachine {
    host: LinuxMachine,
    service: Service,
    topology: Topology,
    warnings: Vec<Warning>,
    order: LiveOrder,
    /// Does the command measure by itself for its whole duration? `None`: not known yet.
    measures_itself: Option<bool>,
    baseline_costs: Vec<f64>,
    notes: Vec<String>,
    aborted: usize,
}

/// The result of a sample.
struct Sample {
    text: Vec<u8>,
    wall: Duration,
    /// CPU time of the readings.
    cpu_time: Duration,
}

impl LiveMachine {
    /// Prepares the measurement; nothing is changed yet. `topology`: the machine as the service may
    /// use it.
    #[must_use]
    pub const fn new(
        host: LinuxMachine,
        service: Service,
        topology: Topology,
        warnings: Vec<Warning>,
        order: LiveOrder,
    ) -> Self {
        Self {
            host,
            service,
            topology,
            warnings,
            order,
            measures_itself: None,
            baseline_costs: Vec::new(),
            notes: Vec::new(),
            aborted: 0,
        }
    }

    /// Reads the figure once, as the service runs now; nothing is changed.
    ///
    /// # Errors
    /// The inner error says why it cannot be read.
    pub fn try_figure(&mut self) -> Result<Result<f64, String>, MachineError> {
        let sample = match self.take_sample()? {
            Ok(sample) => sample,
            Err(why) => return Ok(Err(why)),
        };
        Ok(self.parse_figure(&sample))
    }

    /// Sets when a placement is rolled back; `first`: the baseline's cost, if known already.
    pub fn set_limit(&mut self, limit: Limit, first: Option<f64>) {
        self.order.limit = Some(limit);
        self.baseline_costs.extend(first);
    }

    /// Remarks on the service's threads, as full sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Placements rolled back because they exceeded the limit.
    #[must_use]
    pub const fn aborted(&self) -> usize {
        self.aborted
    }

    /// Does the service still exist?
    #[must_use]
    pub fn exists(&self) -> bool {
        self.service.target().exists()
    }

    /// Restores the mask of every thread, and the CPUs of interrupts.
    ///
    /// # Errors
    /// The inner error says what of the host was not restored.
    pub fn restore(&mut self) -> (RestoreSummary, Result<(), MachineError>) {
        let host = self.restore_host();
        (self.service.restore_masks(), host)
    }

    /// Applies an arm's host settings.
    fn set_host(&mut self, settings: &[RunSetting]) -> Result<(), MachineError> {
        self.restore_host()?;
        match settings {
            [] => Ok(()),
            _ => self.service.set_host(settings).map_err(machine_error),
        }
    }

    fn restore_host(&mut self) -> Result<(), MachineError> {
        let outcomes = self.service.restore_host();
        for (entry, outcome) in &outcomes {
            if matches!(outcome, UndoOutcome::Changed(_)) {
                self.note(format!("{entry}: {outcome}"));
            }
        }
        check_undone(&outcomes)
    }

    fn note(&mut self, sentence: String) {
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    fn parse_figure(&self, sample: &Sample) -> Result<f64, String> {
        let measured = RunFigures {
            wall_s: sample.wall.as_secs_f64(),
            output: Some(&sample.text),
            ..RunFigures::default()
        };
        self.order.metric.read(&measured).map_err(|reason| {
            format!(
                "{reason}; {} gave {}",
                self.order.source.name(),
                quote_first_lines(&sample.text)
            )
        })
    }

    /// Waits and places new threads meanwhile; false if the service ended.
    fn wait_and_follow(&mut self, time: Duration) -> Result<bool, MachineError> {
        let end = self.host.now() + time;
        loop {
            let left = end.saturating_sub(self.host.now());
            if left.is_zero() {
                return Ok(self.exists());
            }
            self.host.wait(left.min(self.service.pause()))?;
            let followed = self.service.follow().map_err(machine_error)?;
            for sentence in followed.changed {
                self.note(sentence);
            }
            if !self.exists() {
                return Ok(false);
            }
        }
    }

    /// Measures for the duration of a sample, or for as long as the command takes.
    fn take_sample(&mut self) -> Result<Result<Sample, String>, MachineError> {
        let needs_two = self.order.metric.needs_two_readings();
        let wanted = self.order.sample;
        let began = self.host.now();
        let is_command = matches!(self.order.source, Source::Command(..));
        let may_measure = is_command && !needs_two && self.measures_itself != Some(false);
        let mut cpu_time = Duration::ZERO;
        let mut first = None;
        if may_measure || needs_two {
            let reading = match self.order.source.read(&mut self.host)? {
                Ok(reading) => reading,
                Err(why) => return Ok(Err(self.explain_failure(why))),
            };
            cpu_time += reading.cpu_time;
            let took = self.host.now().saturating_sub(began);
            let is_long = took >= wanted.mul_f64(SELF_MEASURING_SHARE);
            if may_measure && *self.measures_itself.get_or_insert(is_long) {
                return Ok(Ok(Sample {
                    text: reading.text,
                    wall: took,
                    cpu_time,
                }));
            }
            first = Some(reading.text);
        }
        // A rate is measured between the starts of its readings.
        let left = (began + wanted).saturating_sub(self.host.now());
        if !self.wait_and_follow(left)? {
            return Ok(Err(self.describe_gone()));
        }
        let between = self.host.now().saturating_sub(began);
        let reading = match self.order.source.read(&mut self.host)? {
            Ok(reading) => reading,
            Err(why) => return Ok(Err(self.explain_failure(why))),
        };
        let text = match first.filter(|_| needs_two) {
            Some(first) => join_two_readings(&first, &reading.text, between.as_secs_f64()),
            None => reading.text,
        };
        Ok(Ok(Sample {
            text,
            wall: between,
            cpu_time: cpu_time + reading.cpu_time,
        }))
    }

    fn describe_gone(&self) -> String {
        format!(
            "{} ended while it was measured",
            self.service.target().name()
        )
    }

    /// Explains a failure by the end of the service, if it has ended.
    fn explain_failure(&self, why: String) -> String {
        match self.exists() {
            true => why,
            false => self.describe_gone(),
        }
    }

    /// The placement that a request asks for.
    fn wish_for(&self, request: &Request<'_>) -> Wish {
        match request.bound {
            Some(binding) => Wish::Bound(binding.order.clone()),
            None if *request.cpus == self.topology.allowed => Wish::Before,
            None => Wish::Shared(request.cpus.clone()),
        }
    }

    /// Restores everything at once if the cost exceeds the limit; returns a sentence about that.
    fn roll_back_if_worse(&mut self, request: &Request<'_>, cost: f64) -> Option<String> {
        let limit = self.order.limit.as_ref()?;
        let order = request.bound.map(|binding| &binding.order);
        let is_same_place = *request.cpus == limit.cpus && order == limit.order.as_ref();
        if is_same_place && request.settings == limit.settings {
            self.baseline_costs.push(cost);
            return None;
        }
        if self.baseline_costs.is_empty() {
            return None;
        }
        let worse = cost / quantile(&self.baseline_costs, 0.5) - 1.0;
        if worse <= limit.share {
            return None;
        }
        let sentence = format!(
            "rolled back at once: {:.0} % worse than {}'s running median, more than --abort-if-worse {:.0} %",
            100.0 * worse,
            limit.name,
            100.0 * limit.share
        );
        self.aborted += 1;
        // A failure is reported before the next arm, which tries again.
        let _ = self.restore();
        Some(sentence)
    }

    fn run_sample(&mut self, request: &Request<'_>) -> Result<Run, MachineError> {
        let no_figure = |why: String| Run::ended(Duration::ZERO, End::NoFigure(why));
        if !self.exists() {
            return Ok(no_figure(format!("{} ended", self.service.target().name())));
        }
        let wish = self.wish_for(request);
        self.service.place(&wish).map_err(machine_error)?;
        self.set_host(request.settings)?;
        if !self.wait_and_follow(self.order.settle)? {
            return Ok(no_figure(self.describe_gone()));
        }
        let usage = self.host.usage();
        let ticks = self.service.cpu_ticks();
        let own = sys::own_cpu_time();
        let sample = match self.take_sample()? {
            Ok(sample) => sample,
            Err(why) => return Ok(no_figure(why)),
        };
        let now = self.service.cpu_ticks();
        let own = sys::own_cpu_time().saturating_sub(own) + sample.cpu_time;
        let (user, system) = cpu_time(&ticks, &now);
        let between = usage.zip(self.host.usage());
        let foreign = between.as_ref().map(|(before, after)| {
            // The load of CPUs that the service may not use does not disturb it.
            let cpus = self.topology.allowed.union(request.cpus);
            busy_since(after, before, Some(&cpus)).saturating_sub(user + system + own)
        });
        let steal = between.map(|(before, after)| after.steal.saturating_sub(before.steal));
        let end = match self.parse_figure(&sample) {
            Err(why) => End::NoFigure(self.explain_failure(why)),
            Ok(value) => match self.roll_back_if_worse(request, self.order.metric.cost(value)) {
                Some(sentence) => End::NoFigure(sentence),
                None => End::Status(0),
            },
        };
        Ok(Run {
            user: Some(user),
            system: Some(system),
            threads: u32::try_from(self.service.threads()).ok(),
            granted: match self.service.has_requested_cpus() {
                true => request.cpus.clone(),
                false => self.service.granted(),
            },
            foreign_cpu: foreign,
            steal,
            output: Some(sample.text),
            ..Run::ended(sample.wall, end)
        })
    }
}

/// CPU time between two snapshots, in user mode and in the kernel. Processes that ended in between
/// are not counted: what they used last is unknown.
fn cpu_time(
    before: &BTreeMap<i32, (u64, u64)>,
    after: &BTreeMap<i32, (u64, u64)>,
) -> (Duration, Duration) {
    let per_second = sys::ticks_per_second().max(1);
    let time = |ticks: u64| Duration::from_secs_f64(ticks as f64 / per_second as f64);
    let mut total = (0, 0);
    for (pid, (user, system)) in after {
        let (old_user, old_system) = before.get(pid).copied().unwrap_or_default();
        total.0 += user.saturating_sub(old_user);
        total.1 += system.saturating_sub(old_system);
    }
    (time(total.0), time(total.1))
}

/// The processes that are none of the service: its load is what is measured.
fn without_service(mut busy: Vec<BusyProcess>, is_own: impl Fn(i32) -> bool) -> Vec<BusyProcess> {
    busy.retain(|one| !is_own(one.process));
    busy
}

fn machine_error(error: LiveError) -> MachineError {
    match error {
        LiveError::Pin { who, error } => MachineError::System {
            action: who,
            reason: error.to_string(),
        },
        error => MachineError::System {
            action: "placing the service".to_owned(),
            reason: error.to_string(),
        },
    }
}

impl Host for LiveMachine {
    fn label(&self) -> String {
        self.host.label()
    }

    fn topology(&mut self) -> Result<(Topology, Vec<Warning>), MachineError> {
        Ok((self.topology.clone(), self.warnings.clone()))
    }

    fn now(&self) -> Duration {
        self.host.now()
    }

    fn usage(&mut self) -> Option<Usage> {
        self.host.usage()
    }

    fn busiest(&mut self) -> Vec<BusyProcess> {
        let own = self.service.cpu_ticks();
        without_service(self.host.busiest(), |process| own.contains_key(&process))
    }

    fn wait(&mut self, time: Duration) -> Result<(), MachineError> {
        self.host.wait(time)
    }
}

impl CommandRunner for LiveMachine {
    fn run(&mut self, request: &Request<'_>) -> Result<Run, MachineError> {
        let run = self.run_sample(request);
        if run.is_err() {
            let _ = self.restore();
        }
        run
    }

    fn run_helper(&mut self, role: &'static str, command: &Command) -> Result<(), MachineError> {
        self.host.run_helper(role, command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_not_named_among_other_processes() {
        let busy = |process, name: &str| BusyProcess {
            process,
            name: name.to_owned(),
            cpus: 0.4,
        };
        let all = vec![busy(7, "svc"), busy(8, "cc1plus")];
        let others = without_service(all, |process| process == 7);
        let names: Vec<&str> = others.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["cc1plus"]);
    }
}
