//! A kernel tracer's report, before it becomes an [`Event`](crate::Event): names come with every
//! switch, wake-ups in two halves, processes late.
//!
//! The type is small because many reports are held until they are sorted.

use crate::{LeaveReason, Tid};

/// Bytes of a thread's name in the kernel, with the 0 at its end.
const NAME_BYTES: usize = 16;

/// A thread's name in the kernel. Not text: it may contain any byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Comm {
    bytes: [u8; NAME_BYTES],
}

impl Comm {
    /// The bytes up to the first 0, at most 15.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut kept = Self::default();
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        let end = end.min(NAME_BYTES - 1);
        kept.bytes[..end].copy_from_slice(&bytes[..end]);
        kept
    }

    /// The name as text; invalid UTF-8 is replaced.
    pub(super) fn text(&self) -> Box<str> {
        let end = self.bytes.iter().position(|b| *b == 0);
        let end = end.unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&self.bytes[..end]).into()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.bytes[0] == 0
    }
}

/// A thread and its name at that moment; empty if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamedThread {
    pub(super) thread: Tid,
    pub(super) name: Comm,
}

/// An event as recorded in the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RawEvent {
    /// ns of the trace's clock; 0: before the trace began.
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    /// The thread that ran on that CPU and its process, if reported.
    pub(super) current: Option<(Tid, Tid)>,
    pub(super) what: RawKind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RawKind {
    Switch {
        prev: NamedThread,
        left: LeaveReason,
        next: NamedThread,
    },
    /// Half a switch of perf's own records.
    In {
        thread: Tid,
    },
    Out {
        thread: Tid,
        left: LeaveReason,
    },
    /// `sched_wakeup`: it was queued on `target`; `is_new`: for the first time
    /// (`sched_wakeup_new`).
    Wakeup {
        who: NamedThread,
        target: u32,
        is_new: bool,
    },
    /// `sched_waking`: it is about to be queued; `sched_migrate_task` may follow.
    Waking {
        who: NamedThread,
        target: u32,
    },
    /// A queued or sleeping thread was moved.
    Moved {
        who: NamedThread,
        target: u32,
    },
    Fork {
        parent: Tid,
        child: NamedThread,
        /// `None`: unknown; the thread is assumed to be its own process.
        process: Option<Tid>,
    },
    /// `task_newtask`, which comes before the fork; only this event shows whether a thread or a
    /// process begins.
    New {
        who: NamedThread,
        is_thread: bool,
    },
    /// A thread from before the trace.
    Existing {
        thread: Tid,
        process: Tid,
    },
    Exit {
        thread: Tid,
    },
    Name {
        who: NamedThread,
        process: Option<Tid>,
        is_exec: bool,
    },
    Lost {
        records: u64,
    },
    /// No event that matters, but it names the running thread.
    Other,
}
