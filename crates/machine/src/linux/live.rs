//! Running processes: finding, placing and restoring their threads.
//!
//! A [`Target`] says whose threads are meant. A [`Service`] keeps them where they should run and
//! restores the mask that each had before. A [`LiveMachine`] measures a service under several
//! placements in turns. Masks are changed through [`Pins`](super::Pins) alone, so that they are
//! restored even after SIGKILL of pinwise. Threads whose mask somebody else changes meanwhile are
//! left alone; kernel threads are never touched.

mod cgroup;
mod host;
mod http;
mod limits;
mod measure;
mod memory;
mod process;
mod reading;
mod service;
mod sweep;
mod target;
mod url;

pub use measure::{Limit, LiveMachine, LiveOrder};
pub use reading::Source;
pub(super) use reading::{READING_TIMEOUT, take_output};
pub use service::{FollowSummary, ObservedCpus, POLL, RestoreSummary, Service, Wish};
pub(super) use sweep::ThreadSweep;
pub use target::{Target, TargetFacts};
pub use url::{BadUrl, Url};

use crate::parenthesise;

/// Why running threads cannot be placed.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// No process has this id.
    #[error("no such process: {0}")]
    NoProcess(i32),
    /// The id is that of a thread.
    #[error("{thread} is a thread of process {process} ({name}): give that one, --pid {process}")]
    Thread {
        /// As the user gave it.
        thread: i32,
        /// Its process.
        process: i32,
        /// The process's name.
        name: String,
    },
    /// It is a kernel thread.
    #[error(
        "process {0} ({1}) is a kernel thread, which the kernel places itself: nothing is changed"
    )]
    Kernel(i32, String),
    /// Placing pinwise itself would place the measurement.
    #[error("process {0} is pinwise itself")]
    Ourselves(i32),
    /// No cgroup of a mounted hierarchy has this name.
    #[error("there is no cgroup '{path}' below {}{}", list_mounts(.mounts), parenthesise(.hint.as_deref()))]
    NoCgroup {
        /// As the user gave it.
        path: String,
        /// The mounts that were searched.
        mounts: Vec<String>,
        /// What to do.
        hint: Option<String>,
    },
    /// The unit has no cgroup.
    #[error(
        "unit '{unit}' has no cgroup here: it is not running, or runs on another host (systemctl status {unit})"
    )]
    NoUnit {
        /// As the user gave it.
        unit: String,
    },
    /// It has no threads that could be placed.
    #[error("{0} has no process that can be placed")]
    Empty(String),
    /// Memory or interrupts cannot be moved.
    #[error(transparent)]
    Ledger(super::LedgerError),
    /// A thread's mask cannot be changed.
    #[error("{who}: {error}")]
    Pin {
        /// Its owner.
        who: String,
        /// Why not.
        error: super::LedgerError,
    },
}

fn list_mounts(mounts: &[String]) -> String {
    match mounts {
        [] => "any mount (no cgroup file system is mounted)".to_owned(),
        mounts => mounts.join(", "),
    }
}
