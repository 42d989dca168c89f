//! Profiles commands and processes: samples their runs, counts their work, and measures the cost of a
//! PAUSE right afterwards, while the machine is in the same state.
//!
//! Nothing is printed or stored here.

mod machine;
mod sentence;
mod upkeep;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::compare::read_figures;
use crate::host::host_record;
use crate::trace::{describe_left_running, exit_of, last_words};
use pinwise_format::{join_words, seconds};
use pinwise_machine::{
    End, MachineError, Probe, Prober, Run, SampleOrder, Sampler, SamplingResult, Subject,
};
use pinwise_profile::{Amount, Bounds, Event, Profile, Samples, Stacks};
use pinwise_record::{
    Answer, Header, ProfileFigures, ProfileMachine, ProfilePause, ProfileRecord, ProfileRun,
    TraceSource, WorkRecord, check_sampled_time,
};
use pinwise_stats::describe::{median_interval, quantile};
use pinwise_topology::Topology;
use pinwise_workload::Metric;

/// Time limits of measuring the cost of a PAUSE: the second one is used if a busy machine gave no
/// batch within the first.
const PAUSE_LIMITS: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];
/// Names of threads in an error.
const MAX_NAMES: usize = 10;
/// Maximum number of batches.
const PAUSE_BATCHES: usize = 200;

/// The unit of work by which times are divided.
#[derive(Debug, Clone)]
pub enum Units {
    /// Runs of the command.
    Runs,
    /// Seconds of wall-clock time.
    Seconds,
    /// Units that the user counts, for each run or for the time in which a process is watched.
    Given {
        /// The number of units.
        count: f64,
        /// Name of one unit.
        name: String,
    },
    /// Units that the program reports, for each run.
    Metric {
        /// How to read their number.
        metric: Box<Metric>,
        /// Name of one unit.
        name: String,
    },
}

impl Units {
    /// Name of one unit.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Runs => "run",
            Self::Seconds => "second",
            Self::Given { name, .. } | Self::Metric { name, .. } => name,
        }
    }

    /// The number of units of a run.
    ///
    /// # Errors
    /// If the program succeeded but did not report it.
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

/// What to profile.
#[derive(Debug, Clone)]
pub struct ProfilePlan<'a> {
    /// The command or processes, for the machine.
    pub subject: Subject<'a>,
    /// The command or processes, for the record.
    pub source: TraceSource,
    /// Name or number of the thread to profile; `None` for all.
    pub thread: Option<String>,
    /// The event that triggers samples; `None` for the best that is permitted.
    pub event: Option<Event>,
    /// Samples per second of a thread's CPU time.
    pub hz: u32,
    /// How callers are found.
    pub stacks: Stacks,
    /// Maximum time.
    pub limit: Option<Duration>,
    /// Number of runs of a command.
    pub runs: usize,
    /// The unit of work.
    pub units: Units,
    /// The CPU on which to measure the cost of a PAUSE afterwards; `None` to skip that.
    pub pause_cpu: Option<usize>,
    /// The user's labels.
    pub tags: Vec<String>,
}

/// Samples the runs and returns the record, to which the caller adds id and start time. A run that
/// fails is the last one.
///
/// # Errors
/// [`MachineError`] as in [`Sampler::sample`], or if the program does not report its work.
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
    let mut sampled_runs = SampledRuns::default();
    for _ in 0..plan.runs.max(1) {
        let mut sampled = machine.sample(&order)?;
        if let Some(thread) = &plan.thread {
            keep_thread(&mut sampled, thread)?;
        }
        if !sampled_runs.add(sampled, &plan.units)? {
            break;
        }
    }
    let (topology, _) = machine.topology()?;
    // The samples are complete by now: a failure here must not lose them.
    let (pause, facts) = match plan
        .pause_cpu
        .map(|cpu| measure_machine(machine, &topology, cpu))
    {
        Some(Ok((pause, facts))) => (pause, Some(facts)),
        Some(Err(error)) => {
            let note = format!("The cost of a PAUSE was not measured: {error}.");
            sampled_runs.notes.push(note);
            (None, None)
        }
        None => (None, None),
    };
    sampled_runs.into_record(plan, host_record(machine, &topology), pause, facts)
}

/// Keeps the samples of this thread.
fn keep_thread(sampled: &mut SamplingResult, wanted: &str) -> anyhow::Result<()> {
    let names = sampled.samples.threads.iter();
    let names: BTreeSet<String> = names.map(|thread| thread.name.clone()).collect();
    if !sampled.samples.keep_thread(wanted) {
        let names: Vec<String> = names.into_iter().take(MAX_NAMES).collect();
        bail!(
            "--thread {wanted}: no such thread was sampled, only {}: give a name or the number of a thread",
            join_words(&names)
        );
    }
    let note = format!("Only samples of thread {wanted}.");
    sampled.notes.push(note);
    // The kernel's account is of all threads.
    sampled.counted = None;
    if let Some(run) = &mut sampled.run {
        (run.user, run.system) = (None, None);
    }
    Ok(())
}

/// The cost of a PAUSE, and the speed of clock and memory, on a CPU now.
fn measure_machine(
    machine: &mut (impl Prober + ?Sized),
    topology: &Topology,
    cpu: usize,
) -> Result<(Option<ProfilePause>, ProfileMachine), MachineError> {
    let pause = measure_pause(machine, cpu)?;
    Ok((pause, machine::measure(machine, topology, cpu)?))
}

/// The cost of a PAUSE on a CPU now; `None` if other programs used the CPU all the time.
pub(crate) fn measure_pause(
    machine: &mut (impl Prober + ?Sized),
    cpu: usize,
) -> Result<Option<ProfilePause>, MachineError> {
    for limit in PAUSE_LIMITS {
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

/// CPU time of a command or process as the kernel accounts for it, seconds: with time in the kernel or
/// without.
pub(crate) fn accounted_cpu_s(sampled: &SamplingResult, has_kernel: bool) -> Option<f64> {
    let (user, system) = match (&sampled.run, sampled.counted) {
        (Some(run), _) => (run.user?, run.system?),
        (None, Some(counted)) => (counted.user, counted.system),
        (None, None) => return None,
    };
    let system = if has_kernel { system } else { Duration::ZERO };
    Some((user + system).as_secs_f64())
}

/// A note that threads were missed, if samples stand for clearly less CPU time than the kernel
/// accounts for.
pub(crate) fn describe_missed(sampled_s: f64, accounted_s: Option<f64>, hz: u32) -> Option<String> {
    let accounted_s = check_sampled_time(sampled_s, accounted_s)?;
    Some(format!(
        "Samples cover {} of {} of CPU time: threads that live for less than {} are not sampled, and those with many short runs too rarely. Times are lower bounds, and shares are of the sampled time; pinwise trace sees all of it.",
        seconds(sampled_s),
        seconds(accounted_s),
        seconds(1.0 / f64::from(hz.max(1)))
    ))
}

/// The runs sampled so far.
#[derive(Debug, Default)]
struct SampledRuns {
    samples: Vec<Samples>,
    runs: Vec<ProfileRun>,
    own_cpu: Duration,
    notes: Vec<String>,
}

impl SampledRuns {
    /// Adds a run; returns whether it succeeded.
    fn add(&mut self, sampled: SamplingResult, units: &Units) -> anyhow::Result<bool> {
        let used_cpu_s = accounted_cpu_s(&sampled, true);
        let samples = sampled.samples;
        let run = sampled.run.as_ref();
        let exit = run.and_then(|run| exit_of(&run.end));
        let first = self.samples.first();
        if first.is_some_and(|first| first.event != samples.event) {
            bail!("the runs were sampled by different events, which cannot be added");
        }
        let profile = Profile::from_samples(std::slice::from_ref(&samples), &TOTALS_ONLY);
        self.runs.push(ProfileRun {
            wall_s: samples.wall_s,
            samples: samples.total(),
            cpu_s: profile.total.cpu_s(),
            units: units.count(run, samples.wall_s)?,
            used_cpu_s,
            waits_s: profile.accesses.map(|_| profile.waits.cpu_s()),
            accesses_s: profile.accesses.map(Amount::cpu_s),
            unread_s: profile.accesses.map(|_| profile.unread.cpu_s()),
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

    fn into_record(
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
        let accounted_s: Option<f64> = self.runs.iter().map(|run| run.used_cpu_s).sum();
        let accounted_s = accounted_s.filter(|_| profile.kernel.is_some());
        notes.extend(describe_missed(
            profile.total.cpu_s(),
            accounted_s,
            first.hz,
        ));
        let wall_s = self.runs.iter().map(|run| run.wall_s).sum();
        let cpu_s = profile.total.cpu_s().max(accounted_s.unwrap_or(0.0));
        notes.extend(sentence::list_cautions(
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
            wall_s,
            own_cpu_s: self.own_cpu.as_secs_f64(),
            lost: self.samples.iter().map(|samples| samples.lost).sum(),
            figures: ProfileFigures::new(&profile, work.count),
            answer: Answer {
                sentence: sentence::summarise(&profile, first.event),
                advice: sentence::advise(&profile, cpu_s / wall_s, &plan.source),
            },
            work,
            pause,
            machine,
            exit: self.runs.last().and_then(|run| run.exit),
            runs: self.runs,
        })
    }
}

const TOTALS_ONLY: Bounds = Bounds {
    functions: 0,
    threads: 0,
    spots: 0,
    nodes: 0,
};

#[cfg(test)]
mod fleet_tests;
#[cfg(test)]
mod tests;
