//! Collects what the scheduler does on this host.
//!
//! Five tiers implement one trait, [`Source`]: it is opened before the command starts, drained now
//! and then, and closed after the last thread has ended. [`Tracer::trace`](crate::Tracer::trace)
//! drives it together with the supervision of the command; nothing here decides what events mean.

mod attach;
mod beside;
mod blocked;
mod bpf;
mod cost;
mod drive;
pub(super) mod events;
mod exits;
mod figures;
pub(super) mod interrupt_points;
mod interrupts;
mod lane;
mod pages;
mod perf;
pub(super) mod permission;
mod polling;
mod quotas;
pub(super) mod threads;
pub(super) mod tracefs;

use std::os::fd::RawFd;
use std::time::Duration;

pub(super) use drive::check_target;
pub(super) use events::dummy;

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
    /// All.
    Everything,
}

/// Events of one tier as they come.
pub(super) trait Source {
    /// Descriptors that become readable when a buffer should be drained before the round is over;
    /// may be empty.
    fn descriptors(&self) -> Vec<RawFd>;

    /// Appends new events to `events`, in time order over all CPUs. Events that earlier ones may
    /// still precede are held back.
    fn drain(&mut self, events: &mut Vec<Event>);

    /// Stops recording and appends the rest.
    fn finish(&mut self, events: &mut Vec<Event>);

    /// The command was started; called once, for [`Target::Child`] only.
    fn started(&mut self, _pid: Tid) {}

    /// A process has ended and is about to be reaped: the last moment to read its figures.
    fn alert(&mut self) {}

    /// When to drain it, whatever is recorded; on the clock of `sys::monotonic`.
    fn wake(&self) -> Option<Duration> {
        None
    }

    /// Further notes, as full sentences.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Why a source cannot be used.
pub(super) type Opened = Result<Box<dyn Source>, Refusal>;

/// Opens the source of a tier on all CPUs.
pub(super) fn open(tier: Tier, target: Target) -> Opened {
    open_on(tier, target, &Extent::all())
}

/// Tries which tiers are available.
pub(super) fn availability() -> Vec<Availability> {
    let tried = Tier::ALL.into_iter().map(|tier| Availability {
        tier,
        refusal: find_out(tier).err(),
    });
    tried.collect()
}

/// Opens just enough of a tier to see whether it is available.
fn find_out(tier: Tier) -> Result<(), Refusal> {
    let target = match tier {
        Tier::Proc | Tier::Switch => Target::Child,
        _ => Target::Everything,
    };
    open_on(tier, target, &Extent::least()).map(|_| ())
}

fn open_on(tier: Tier, target: Target, extent: &Extent) -> Opened {
    fn box_source(source: PerfSource) -> Box<dyn Source> {
        Box::new(source)
    }
    match tier {
        Tier::Proc => Ok(Box::new(Polling::new(target))),
        Tier::Switch => own_threads(target, extent).map(box_source),
        Tier::CpuWide => PerfSource::wide(extent).map(box_source),
        Tier::Tracepoint => PerfSource::points(extent).map(box_source),
        Tier::Bpf => bpf::open(),
    }
}

/// Switch records of a program's own threads.
fn own_threads(target: Target, extent: &Extent) -> Result<PerfSource, Refusal> {
    let mut source = PerfSource::own(target, extent)?;
    if let Target::Process(pid) = target {
        attach_all(&mut source, pid, extent)?;
    }
    Ok(source)
}

/// The time of an event.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
