//! What the scheduler really did: events to thread timelines, migrations by
//! level, run-queue waits and avoidable SMT sharing.
//!
//! ```text
//! source ──► Event… ──► Merger ──► Analysis ──► Summary
//! (a tier,              (by time)   (state of every thread and CPU)
//!  a file)
//! ```
//!
//! A source is a live tier ([`Tier`], collected in `machine`), an imported
//! file or a simulated machine. Everything here is pure: it reads no file and
//! no clock, and keeps memory for threads and CPUs, not for events. It refuses
//! to guess: what a source cannot tell is absent, and what was lost poisons
//! the time in which it was lost.

mod analysis;
mod event;
mod ground;
pub mod import;
pub mod live;
mod merge;
mod migrations;
mod summary;
mod tier;
mod tracepoint;

pub use analysis::Analysis;
pub use event::{Event, IDLE, Left, Sample, Tid, What};
pub use ground::{Crossed, Ground};
pub use merge::Merger;
pub use migrations::Migrations;
pub use summary::{
    Avoidable, Causes, CoreSummary, CpuSpans, CpuSummary, EPISODE_NS, IdleWaiting, MOST_SLICES,
    Sharing, Slice, Summary, ThreadSummary, Timeline, Unknown, Waits,
};
pub use tier::{Availability, Refusal, Scope, Tier};
pub use tracepoint::{Declared, States};

#[cfg(test)]
mod analysis_tests;
