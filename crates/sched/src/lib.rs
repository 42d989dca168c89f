//! Analyses what a scheduler did: events become timelines of threads, migrations by level, waits in
//! run queues and avoidable SMT sharing.
//!
//! ```text
//! source ──► Event… ──► Merger ──► Analysis ──► Summary
//! (a tier,              (by time)   (state of every thread and CPU)
//!  a file)
//! ```
//!
//! A source is a live tier ([`Tier`], collected in `machine`), an imported file or a simulated
//! machine. This crate opens no file and reads no clock; its memory grows with threads and CPUs,
//! not with events. It does not guess: what a source does not report is absent, and time with lost
//! records is unknown.
//!
//! ```
//! use pinwise_sched::{Analysis, Event, EventKind, IDLE, LeaveReason, Tier};
//! use pinwise_topology::Topology;
//!
//! let machine = Topology::from_synthetic("core:2 pu:2").unwrap();
//! let mut analysis = Analysis::new(&machine, Tier::Bpf.scope());
//! let left = LeaveReason::Blocked;
//! for (time_ns, cpu, what) in [
//!     (0, 0, EventKind::Follow { thread: 7 }),
//!     (10, 0, EventKind::Switch { prev: IDLE, left, next: 7 }),
//!     (40, 0, EventKind::Switch { prev: 7, left, next: IDLE }),
//!     (50, 2, EventKind::Switch { prev: IDLE, left, next: 7 }),
//! ] {
//!     analysis.add_event(&Event { time_ns, cpu, what });
//! }
//! let summary = analysis.finish(Some((0, 100)));
//! assert_eq!(summary.cpu_ns, 30 + 50);
//! ```

mod analysis;
mod blocked;
mod bytes;
mod cpu_map;
mod event;
pub mod import;
mod interrupts;
pub mod jitter;
pub mod live;
mod merge;
mod migrations;
mod other_programs;
pub mod perf;
mod summary;
mod tier;
mod tracepoint;
mod varint;

pub use analysis::Analysis;
pub use blocked::{BlockedIn, BlockedProcess, BlockedThread, DATABASE_LOCK, GO_SCHEDULER};
pub use cpu_map::{CpuMap, Crossed};
pub use event::{Event, EventKind, IDLE, LeaveReason, Sample, SchedulingClass, Tid};
pub use interrupts::{InterruptAccount, InterruptShare, InterruptSummary, InterruptTime};
pub use merge::Merger;
pub use migrations::Migrations;
pub use other_programs::OtherProgram;
pub use summary::{
    AvoidableTotals, CoreSummary, CpuBuckets, CpuSlices, CpuSummary, EPISODE_NS, IdleWaiting,
    LeftOut, MAX_PACKED, PackedSlices, SHORTEST_WAIT_NS, Sharing, SharingCause, SharingSpan,
    SharingSpans, Summary, ThreadSummary, Timeline, Unknown, Wait, WaitCause, WaitCauseTotals,
    WaitSpans, Waits, Wakers,
};
pub use tier::{Availability, Refusal, Scope, Tier};
pub use tracepoint::{Field, Format as TracepointFormat, FormatError, States};
pub use varint::{put_varints, take_varint};

#[cfg(test)]
mod analysis_tests;
