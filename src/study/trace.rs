//! A trace from order to record: the machine's events go through the analysis
//! and to whoever else listens, and what comes out is written down and judged.

use std::time::Duration;

use crate::machine::{Listener, Machine, MachineError, Subject};
use crate::record::{HostRecord, TierRecord, TraceRecord, TraceSource};
use crate::topology::Topology;
use crate::trace::{Event, Scope, Tier};

/// A trace to be made.
#[derive(Debug, Clone)]
pub struct Plan<'a> {
    /// Whom it is about, for the machine.
    pub subject: Subject<'a>,
    /// The same for the record.
    pub source: TraceSource,
    /// How; `None`: the richest tier that is permitted.
    pub tier: Option<Tier>,
    /// For how long at most.
    pub limit: Option<Duration>,
    /// Time for measuring beforehand what the tier costs; zero: not at all.
    pub calibration: Duration,
    /// Labels.
    pub tags: Vec<String>,
}

/// Makes a trace and its record; `witness` gets every event, too.
///
/// # Errors
/// [`MachineError`], see [`Machine::trace`].
pub fn run(
    plan: &Plan<'_>,
    machine: &mut dyn Machine,
    witness: &mut dyn Listener,
) -> Result<TraceRecord, MachineError> {
    let _ = (plan, machine, witness);
    Err(MachineError::Interrupted)
}

/// All tiers of a machine with what they cost, measured for about so long in
/// all.
///
/// # Errors
/// [`MachineError`], see [`Machine::tracing_cost`].
pub fn tiers(machine: &mut dyn Machine, time: Duration) -> Result<Vec<TierRecord>, MachineError> {
    let _ = (machine, time);
    Ok(Vec::new())
}

/// Events on their way to a record. Memory does not grow with their number.
#[derive(Debug)]
pub struct Book {}

/// What a record says beside its figures.
#[derive(Debug, Clone)]
pub struct About {
    /// What the trace is about.
    pub source: TraceSource,
    /// Name of the tier, or of the file's format.
    pub tier: String,
    /// The machine.
    pub host: HostRecord,
    /// First and last moment, where they are not those of the events.
    pub span_ns: Option<(u64, u64)>,
    /// What else should be known.
    pub notes: Vec<String>,
    /// Labels.
    pub tags: Vec<String>,
}

impl Book {
    /// An empty book for events of this scope on this machine.
    #[must_use]
    pub fn new(topology: &Topology, scope: Scope) -> Self {
        let _ = (topology, scope);
        Self {}
    }

    /// Takes events, in the order of time.
    pub fn take(&mut self, events: &[Event]) {
        let _ = (&self, events);
    }

    /// Writes the record.
    #[must_use]
    pub fn close(self, about: About) -> Option<TraceRecord> {
        let _ = (self, about);
        None
    }
}
