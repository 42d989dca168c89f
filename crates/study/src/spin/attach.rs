//! Does a program spin, where, and by which algorithm?
//!
//! ```text
//! Sampler::sample ─► Samples ─► sites: the loop around each hot address
//!                                 └─► places, shares, threads ─► record
//! ```
//!
//! The kind of a loop follows from its instructions alone; names only help to identify it. No
//! process is stopped or changed.

mod asking;
mod counters;
mod idle;
mod pace;
mod progress;
mod sites;
mod tally;

use std::time::Duration;

use pinwise_machine::{MachineError, Prober, SampleOrder, Sampler, SamplingResult, Subject};
use pinwise_profile::{Event, Stacks};
use pinwise_record::{
    Answer, Finding, Header, HostRecord, MatchStrength, Severity, SpinAttachRecord, SpinKind,
    TraceSource,
};

use crate::host::host_record;
use crate::profile::{accounted_cpu_s, describe_missed, measure_pause};
use crate::trace::{describe_left_running, exit_of, last_words};
use sites::Sites;
use tally::Tally;

/// Less spinning than this share of the CPU time gives no finding.
const MIN_SPIN_SHARE: f64 = 0.05;

/// What to sample, and how.
#[derive(Debug, Clone)]
pub struct AttachPlan<'a> {
    /// The command or process, as the machine needs it.
    pub subject: Subject<'a>,
    /// The same command or process, as the record describes it.
    pub source: TraceSource,
    /// The event that triggers samples; `None`: the best that is permitted.
    pub event: Option<Event>,
    /// Samples per second of CPU time.
    pub hz: u32,
    /// Sampling ends after this time; `None`: when the program ends.
    pub limit: Option<Duration>,
    /// Tags of the record.
    pub tags: Vec<String>,
}

/// Samples a program and says where it spins; the caller names and dates the record.
///
/// # Errors
/// [`MachineError`], see [`Sampler::sample`].
pub fn attach(
    plan: &AttachPlan<'_>,
    machine: &mut (impl Sampler + Prober + ?Sized),
) -> Result<SpinAttachRecord, MachineError> {
    let (topology, _) = machine.topology()?;
    let order = SampleOrder {
        subject: plan.subject,
        event: plan.event,
        hz: plan.hz,
        stacks: Stacks::FramePointers,
        limit: plan.limit,
    };
    let mut sampled = machine.sample(&order)?;
    // The samples are complete by now: no failure here may lose them.
    let pause_ns = match topology
        .allowed
        .first()
        .map(|cpu| measure_pause(machine, cpu))
    {
        Some(Ok(found)) => found.map(|found| found.ns),
        Some(Err(error)) => {
            let note = format!("The cost of a PAUSE was not measured: {error}.");
            sampled.notes.push(note);
            None
        }
        None => None,
    };
    let origin = SampleOrigin {
        host: host_record(machine, &topology),
        source: plan.source.clone(),
        pause_ns,
        tags: plan.tags.clone(),
    };
    Ok(judge_samples(&sampled, origin))
}

/// Where samples come from.
#[derive(Debug, Clone)]
pub struct SampleOrigin {
    /// The machine that took them.
    pub host: HostRecord,
    /// The sampled command or process.
    pub source: TraceSource,
    /// Duration of a PAUSE on that machine, ns; `None` if it was not measured.
    pub pause_ns: Option<f64>,
    /// Tags of the record.
    pub tags: Vec<String>,
}

/// Makes a record, still without name and date, from samples.
#[must_use]
pub fn judge_samples(sampled: &SamplingResult, origin: SampleOrigin) -> SpinAttachRecord {
    let pause_ns = origin.pause_ns;
    let samples = &sampled.samples;
    let is_seen = samples.event != Event::Proc;
    let by_thread = samples.threads.iter().filter_map(|thread| thread.cpu_s);
    let cpu_s = if is_seen {
        samples.total_s()
    } else {
        by_thread.sum()
    };
    let mut sites = Sites::default();
    let tally = Tally::from_samples(samples, &mut sites);
    let shares = tally.shares();
    let spin_s = shares.spinning_s();
    let share = is_seen.then(|| if cpu_s > 0.0 { spin_s / cpu_s } else { 0.0 });
    let total = samples.total();
    let places = tally.list_places(samples, cpu_s, pause_ns);
    let machine_notes = sampled.notes.iter().cloned();
    let run = sampled.run.as_ref();
    let left_running = run.and_then(|run| describe_left_running(run, "no longer sampled"));
    let counted_cpu_s = accounted_cpu_s(sampled, samples.has_kernel);
    let missed = describe_missed(cpu_s, counted_cpu_s.filter(|_| is_seen), samples.hz);
    let run_notes = missed
        .into_iter()
        .chain(left_running)
        .chain(run.and_then(last_words));
    let mut record = SpinAttachRecord {
        header: Header {
            notes: machine_notes.chain(run_notes).collect(),
            tags: origin.tags,
            ..Header::default()
        },
        host: origin.host,
        source: origin.source,
        event: samples.event.into(),
        hz: samples.hz,
        wall_s: samples.wall_s,
        samples: total,
        cpu_s,
        counted_cpu_s,
        lost: samples.lost,
        own_cpu_s: sampled.own_cpu.as_secs_f64(),
        shares: is_seen.then_some(shares),
        spin_share: share,
        spin_share_error: share
            .filter(|_| total > 0)
            .map(|share| (share * (1.0 - share) / total as f64).sqrt()),
        pause_ns,
        pauses_per_s: tally.pauses_per_s(samples, pause_ns),
        threads: tally.list_threads(samples),
        places,
        exit: sampled.run.as_ref().and_then(|run| exit_of(&run.end)),
        answer: Answer::default(),
    };
    add_findings(&mut record);
    let progress = tally
        .progress_loops()
        .filter(|(_, s)| *s > MIN_SPIN_SHARE * cpu_s);
    record.header.findings.extend(progress.map(|(library, s)| {
        Finding::new(
            "progress_loop",
            Severity::Note,
            format!(
                "{s:.2} of {cpu_s:.2} s of CPU time are in progress loops of {library}, which look through its queues until something arrives. How much of it is waiting is unknown; it counts as work."
            ),
            "",
        )
    }));
    record.conclude();
    record
}

fn add_findings(record: &mut SpinAttachRecord) {
    let Some(share) = record.spin_share else {
        record.header.findings.push(Finding::new(
            "unseen",
            Severity::Warning,
            "Only CPU time per thread is available here: whether it is spinning is unknown.",
            if record.notes.is_empty() {
                "Omit --event proc: it provides nothing else."
            } else {
                "Permit perf events as the notes say."
            },
        ));
        return;
    };
    if share < MIN_SPIN_SHARE {
        return;
    }
    let blind = record.shares.map_or(0.0, |shares| shares.blind_delay_s);
    if blind > MIN_SPIN_SHARE * record.cpu_s {
        record.header.findings.push(Finding::new(
            "blind_delay",
            Severity::Problem,
            format!(
                "{blind:.2} of {:.2} s of CPU time are spent in delays that do not check the awaited value: a waiter there is late by up to the length of the delay.",
                record.cpu_s
            ),
            advise_on_delay(record),
        ));
    }
    let tunable = record
        .places
        .iter()
        .flat_map(|place| &place.algorithms)
        .find_map(|found| {
            found
                .tunables
                .first()
                .map(|t| (found.name.clone(), t.clone()))
        });
    if let Some((name, tunable)) = tunable {
        record.header.findings.push(Finding::new(
            "tunable",
            Severity::Note,
            format!("The spinning looks like {name}, which {tunable} changes."),
            "`pinwise spin advise` suggests a value, and how to verify it.",
        ));
    }
}

/// What shortens the delays. `spin predict` knows the delays of known algorithms only.
fn advise_on_delay(record: &SpinAttachRecord) -> String {
    let places = record.places.iter();
    let delays = places.filter(|place| place.kind == SpinKind::BlindDelay);
    let known = delays
        .flat_map(|place| &place.algorithms)
        .find(|found| found.strength != MatchStrength::Possible);
    match known {
        Some(found) => format!(
            "For the delay on this and other chips: `pinwise spin predict --algorithm {}`.",
            found.algorithm
        ),
        None => "Check the value between fewer hints, or limit how far the delay grows.".to_owned(),
    }
}

#[cfg(test)]
mod tests;
