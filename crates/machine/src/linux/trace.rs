//! Traces the scheduler of this host.
//!
//! Each of the five tiers has an implementation of one trait, [`Source`], which is opened before
//! the command starts, drained now and then, and closed after the last thread has ended.
//! [`Tracer::trace`](crate::Tracer::trace) drives it together with the supervision of the command;
//! nothing here decides what events mean.

mod attach;
mod blocked;
mod bpf;
mod cost;
mod drive;
pub(super) mod events;
mod exits;
pub(super) mod interrupt_points;
mod interrupts;
mod lane;
mod memory_limits;
mod pages;
mod perf;
pub(super) mod permission;
mod polled_thread;
mod polling;
mod quotas;
mod thread_polls;
pub(super) mod threads;
pub(super) mod tracefs;
mod turns;
mod watched;

use std::os::fd::RawFd;
use std::time::Duration;

pub(super) use drive::check_target;
pub(super) use events::open_dummy;

use attach::attach_all;
use perf::{Extent, PerfSource};
use pinwise_sched::{Availability, Event, Refusal, Tid, Tier};
use polling::Polling;

/// Whose threads a source should see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A command that this process will start after the source is open.
    Child,
    /// A running process.
    Process(Tid),
    /// All threads of the machine.
    Everything,
}

/// A source of scheduler events: one tier on this host.
pub(super) trait Source {
    /// Descriptors that become readable when a buffer should be drained before the round is over;
    /// may be empty.
    fn descriptors(&self) -> Vec<RawFd>;

    /// Appends new events to `events`, in time order over all CPUs. Events before which older ones
    /// may still arrive are held back.
    fn drain(&mut self, events: &mut Vec<Event>);

    /// Stops recording and appends the rest.
    fn finish(&mut self, events: &mut Vec<Event>);

    /// Called once when the command was started, for [`Target::Child`] only.
    fn started(&mut self, _pid: Tid) {}

    /// Called when a process has ended and is about to be reaped: the last moment to read its
    /// figures.
    fn note_ended_process(&mut self) {}

    /// The latest time at which to drain it, on the clock of `sys::monotonic`; `None`: any time.
    fn next_wake(&self) -> Option<Duration> {
        None
    }

    /// Further notes, as full sentences.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An opened source, or why it is not available.
pub(super) type Opened = Result<Box<dyn Source>, Refusal>;

/// Opens the source of a tier on all CPUs.
pub(super) fn open(tier: Tier, target: Target) -> Opened {
    open_on(tier, target, &Extent::all())
}

/// Finds out which tiers are available, by opening each.
pub(super) fn find_available_tiers() -> Vec<Availability> {
    let tried = Tier::ALL.into_iter().map(|tier| Availability {
        tier,
        refusal: try_tier(tier).err(),
    });
    tried.collect()
}

/// Opens just enough of a tier to see whether it is available.
fn try_tier(tier: Tier) -> Result<(), Refusal> {
    let target = match tier {
        Tier::Proc | Tier::Switch => Target::Child,
        _ => Target::Everything,
    };
    open_on(tier, target, &Extent::smallest()).map(|_| ())
}

fn open_on(tier: Tier, target: Target, extent: &Extent) -> Opened {
    fn box_source(source: PerfSource) -> Box<dyn Source> {
        Box::new(source)
    }
    match tier {
        Tier::Proc => Ok(Box::new(Polling::new(target))),
        Tier::Switch => open_own_threads(target, extent).map(box_source),
        Tier::CpuWide => PerfSource::open_cpu_wide(extent).map(box_source),
        Tier::Tracepoint => PerfSource::open_tracepoints(extent).map(box_source),
        Tier::Bpf => bpf::open(),
    }
}

/// Opens switch records of a program's own threads.
fn open_own_threads(target: Target, extent: &Extent) -> Result<PerfSource, Refusal> {
    let mut source = PerfSource::open_own_threads(target, extent)?;
    if let Target::Process(pid) = target {
        attach_all(&mut source, pid, extent)?;
    }
    Ok(source)
}

/// Converts a time to that of an event, ns.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
