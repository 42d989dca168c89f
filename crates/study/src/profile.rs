//! Profiles of commands and processes as records: runs are sampled, their work is counted, and the
//! cost of a PAUSE is measured right afterwards, while the machine is in the same state.
//!
//! Prints and stores nothing.

mod machine;
mod sentence;

use std::time::Duration;

use anyhow::{Context, bail};

use crate::compare::read_figures;
use crate::host::host_record;
use crate::trace::{describe_left_running, exit_of, last_words};
use pinwise_format::seconds;
use pinwise_machine::{
    End, MachineError, Probe, Prober, Run, SampleOrder, Sampler, SamplingResult, Subject,
};
use pinwise_profile::{Amount, Bounds, Event, Profile, Samples, Stacks};
use pinwise_record::{
    Header, ProfileFigures, ProfileMachine, ProfilePause, ProfileRecord, ProfileRun, TraceSource,
    WorkRecord, beyond_samples,
};
use pinwise_stats::describe::{median_interval, quantile};
use pinwise_topology::Topology;
use pinwise_workload::Metric;

/// Time for measuring the cost of a PAUSE, the second one if the first gave nothing on a busy
/// machine; and the number of batches that is enough.
const PAUSE_TIMES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];
const PAUSE_BATCHES: usize = 200;

/// What times are divided by.
#[derive(Debug, Clone)]
pub enum Units {
    /// Runs of the command.
    Runs,
    /// Seconds of wall-clock time.
    Seconds,
    /// This many of these, in each run or while a process is watched.
    Given {
        /// The number of them.
        count: f64,
        /// What they are called.
        name: String,
    },
    /// The work that the program reports, in each run.
    Metric {
        /// How that is read.
        metric: Box<Metric>,
        /// What they are called.
        name: String,
    },
}

impl Units {
    /// What one is called.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Runs => "run",
            Self::Seconds => "second",
            Self::Given { name, .. } | Self::Metric { name, .. } => name,
        }
    }

    /// How many a run did.
    ///
    /// # Errors
    /// If the program did not say it, although it succeeded.
    fn count(&self, run: Option<&Run>, wall_s: f64) -> anyhow::Result<f64> {
        Ok(match self {
            Self::Runs => 1.0,
            Self::Seconds => wall_s,
            Self::Given { count, .. } => *count,
            Self::Metric { metric, .. } => match run {
                None => 0.0,
                Some(run) if run.end != End::Status(0) => {
                    metric.read(&read_figures(run)).unwrap_or(0.0)
                }
                Some(run) => metric.read(&read_figures(run)).context("--metric")?,
            },
        })
    }
}

/// A profile to be made.
#[derive(Debug, Clone)]
pub struct ProfilePlan<'a> {
    /// Whom to sample, for the machine.
    pub subject: Subject<'a>,
    /// Whom to sample, for the record.
    pub source: TraceSource,
    /// The source of samples; `None`: the best that is permitted.
    pub event: Option<Event>,
    /// Samples per second of a thread's CPU time.
    pub hz: u32,
    /// How callers are found.
    pub stacks: Stacks,
    /// For how long at most.
    pub limit: Option<Duration>,
    /// Runs of a command.
    pub runs: usize,
    /// What times are divided by.
    pub units: Units,
    /// The CPU on which the cost of a PAUSE is measured afterwards; `None`: none.
    pub pause_cpu: Option<usize>,
    /// Labels.
    pub tags: Vec<String>,
}

/// Makes a profile's record, which the caller names and dates. A command that
/// fails ends the runs.
///
/// # Errors
/// [`MachineError`], see [`Sampler::sample`]; a
/// program that does not say how much it did.
pub fn run(
    plan: &ProfilePlan<'_>,
    machine: &mut (impl Sampler + Prober + ?Sized),
) -> anyhow::Result<ProfileRecord> {
    let order = SampleOrder {
        subject: plan.subject,
        event: plan.event,
        hz: plan.hz,
        stacks: plan.stacks,
        limit: plan.limit,
    };
    let mut gathered = SamplesSoFar::default();
    for _ in 0..plan.runs.max(1) {
        let sampled = machine.sample(&order)?;
        if !gathered.add(sampled, &plan.units)? {
            break;
        }
    }
    let (topology, _) = machine.topology()?;
    // The profile is complete by now: no failure here may lose it.
    let (pause, facts) = match plan
        .pause_cpu
        .map(|cpu| measure_around(machine, &topology, cpu))
    {
        Some(Ok((pause, facts))) => (pause, Some(facts)),
        Some(Err(error)) => {
            let note = format!("The cost of a PAUSE was not measured: {error}.");
            gathered.notes.push(note);
            (None, None)
        }
        None => (None, None),
    };
    gathered.record(plan, host_record(machine, &topology), pause, facts)
}

/// What the machine is now at a CPU.
fn measure_around(
    machine: &mut (impl Prober + ?Sized),
    topology: &Topology,
    cpu: usize,
) -> Result<(Option<ProfilePause>, ProfileMachine), MachineError> {
    let pause = pause(machine, cpu)?;
    Ok((pause, machine::measure(machine, topology, cpu)?))
}

/// Cost of a PAUSE on a CPU now; `None` if other programs had the CPU all the time.
pub(crate) fn pause(
    machine: &mut (impl Prober + ?Sized),
    cpu: usize,
) -> Result<Option<ProfilePause>, MachineError> {
    for limit in PAUSE_TIMES {
        let batches = machine.probe(&[Probe::Pause { cpu }], PAUSE_BATCHES, limit)?;
        let values = batches.into_iter().next().map(|batches| batches.values);
        let values = values.unwrap_or_default();
        if !values.is_empty() {
            let interval = median_interval(&values, 0.95);
            return Ok(Some(ProfilePause {
                cpu,
                ns: quantile(&values, 0.5),
                low_ns: interval.map(|(low, _)| low),
                high_ns: interval.map(|(_, high)| high),
            }));
        }
    }
    Ok(None)
}

/// CPU time of a run as the kernel counted it, of the kernel's part too or not, seconds.
pub(crate) fn counted_s(run: &Run, has_kernel: bool) -> Option<f64> {
    let system = match has_kernel {
        true => run.system?,
        false => Duration::ZERO,
    };
    Some((run.user? + system).as_secs_f64())
}

/// Says that threads were missed, if samples represent clearly less CPU time than the kernel
/// counted.
pub(crate) fn describe_missed(sampled_s: f64, counted_s: Option<f64>, hz: u32) -> Option<String> {
    let counted_s = beyond_samples(sampled_s, counted_s)?;
    Some(format!(
        "Samples cover {} of {} of CPU time: threads that live for less than {} are not sampled, and those with many short runs too rarely. Times are lower bounds, and shares are of the sampled time; pinwise trace sees all of it.",
        seconds(sampled_s),
        seconds(counted_s),
        seconds(1.0 / f64::from(hz.max(1)))
    ))
}

/// What was sampled so far.
#[derive(Debug, Default)]
struct SamplesSoFar {
    samples: Vec<Samples>,
    runs: Vec<ProfileRun>,
    own_cpu: Duration,
    notes: Vec<String>,
}

impl SamplesSoFar {
    /// Takes a run; returns whether the next one makes sense.
    fn add(&mut self, sampled: SamplingResult, units: &Units) -> anyhow::Result<bool> {
        let samples = sampled.samples;
        let run = sampled.run.as_ref();
        let exit = run.and_then(|run| exit_of(&run.end));
        let known = self.samples.first();
        if known.is_some_and(|first| first.event != samples.event) {
            bail!("the runs were sampled by different events, which cannot be added");
        }
        let alone = Profile::from_samples(std::slice::from_ref(&samples), &NOTHING);
        self.runs.push(ProfileRun {
            wall_s: samples.wall_s,
            samples: samples.total(),
            cpu_s: alone.total.cpu_s(),
            units: units.count(run, samples.wall_s)?,
            used_cpu_s: run.and_then(|run| counted_s(run, true)),
            waits_s: alone.accesses.map(|_| alone.waits.cpu_s()),
            accesses_s: alone.accesses.map(Amount::cpu_s),
            unread_s: alone.accesses.map(|_| alone.unread.cpu_s()),
            exit,
        });
        self.own_cpu += sampled.own_cpu;
        let left = run.and_then(|run| describe_left_running(run, "no longer sampled"));
        let notes = sampled.notes.into_iter().chain(left);
        for note in notes.chain(run.and_then(last_words)) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.samples.push(samples);
        Ok(exit.is_none_or(|exit| exit == 0))
    }

    fn record(
        self,
        plan: &ProfilePlan<'_>,
        host: pinwise_record::HostRecord,
        pause: Option<ProfilePause>,
        machine: Option<ProfileMachine>,
    ) -> anyhow::Result<ProfileRecord> {
        let Some(first) = self.samples.first() else {
            bail!("nothing was sampled");
        };
        let profile = Profile::from_samples(&self.samples, &Bounds::default());
        let work = WorkRecord {
            unit: plan.units.name().to_owned(),
            count: self.runs.iter().map(|run| run.units).sum(),
            metric: match &plan.units {
                Units::Metric { metric, .. } => Some(metric.to_string()),
                _ => None,
            },
        };
        let mut notes = self.notes;
        let counted: Option<f64> = self.runs.iter().map(|run| run.used_cpu_s).sum();
        let counted = counted.filter(|_| profile.kernel.is_some());
        notes.extend(describe_missed(profile.total.cpu_s(), counted, first.hz));
        notes.extend(sentence::cautions(
            &profile,
            first.event,
            &work,
            self.runs.len(),
            plan.runs,
        ));
        Ok(ProfileRecord {
            header: Header {
                notes,
                tags: plan.tags.clone(),
                ..Header::default()
            },
            host,
            source: plan.source.clone(),
            event: first.event.into(),
            hz: first.hz,
            wall_s: self.runs.iter().map(|run| run.wall_s).sum(),
            own_cpu_s: self.own_cpu.as_secs_f64(),
            lost: self.samples.iter().map(|samples| samples.lost).sum(),
            figures: ProfileFigures::new(&profile, work.count),
            sentence: sentence::summary(&profile),
            work,
            pause,
            machine,
            exit: self.runs.last().and_then(|run| run.exit),
            runs: self.runs,
        })
    }
}

/// Totals only.
const NOTHING: Bounds = Bounds {
    functions: 0,
    threads: 0,
    spots: 0,
    nodes: 0,
};

#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod tests;
