//! What blocked threads waited for.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::named::open_enum;

open_enum! {
    /// What a blocked thread waits for, by the system call that it is in.
    BlockedIn from pinwise_sched::BlockedIn {
        /// A lock, a condition variable, another thread's end.
        Lock = "lock",
        /// A mutex, or a read-write lock.
        Mutex = "mutex",
        /// A condition variable or a semaphore, or another thread's end if it cannot be distinguished.
        Condition = "condition",
        /// Another thread's end.
        Thread = "thread",
        /// Any of several events.
        Events = "events",
        /// A time.
        Timer = "timer",
        /// A disk or another device, without reacting to signals.
        Disk = "disk",
        /// A page of its memory, which has to be read or for which memory has to be freed.
        PageFault = "page-fault",
        /// The other end of a pipe.
        Pipe = "pipe",
        /// The other end of a socket.
        Socket = "socket",
        /// A terminal.
        Terminal = "terminal",
        /// A child's end, or its start of another program.
        Child = "child",
        /// A signal.
        Signal = "signal",
        /// A lock of a file.
        FileLock = "file-lock",
        /// A signal to continue: it is stopped.
        Stopped = "stopped",
        /// Another call, or none.
        OtherCall = "other",
        /// The kernel does not tell.
        Unknown = "unknown",
    }
}

/// What the threads of a process waited for, by repeated looks at them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockedRecord {
    /// The process.
    pub process: i32,
    /// Its name.
    pub name: String,
    /// Looks that found one of its threads blocked.
    pub looks: u64,
    /// What the threads waited for, the most frequent first.
    pub parts: Vec<BlockedPart>,
    /// Its threads, the most often blocked first, idle ones last; at most a hundred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<BlockedThread>,
}

/// A thread of a process that was found blocked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockedThread {
    /// Its number.
    pub thread: i32,
    /// Its name.
    pub name: String,
    /// Looks that found it blocked.
    pub looks: u64,
    /// What it waited for in most of them.
    pub what: BlockedIn,
    /// What it waited for in all of them, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<BlockedPart>,
    /// It was awake so little that it has no part in what happened.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_idle: bool,
    /// Places of its program where it waited, the most frequent first; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<BlockedPlace>,
    /// Times it was woken; `null` if the source does not show that.
    pub wakes: Option<u64>,
    /// The threads of its process that woke it most often; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub woken_by: Vec<WakerRecord>,
}

/// A place of a program in which one of its threads waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockedPlace {
    /// What it waited for there.
    pub what: BlockedIn,
    /// A function, with its file if it is not the program's own; an address if the name is unknown.
    pub place: String,
    /// Looks that found the thread there.
    pub looks: u64,
}

/// A thread that woke another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WakerRecord {
    /// Its number.
    pub thread: i32,
    /// Its name; empty if unknown.
    pub name: String,
    /// How often it did, at least.
    pub times: u64,
}

/// The looks that found one kind of wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockedPart {
    /// What a thread waited for.
    pub what: BlockedIn,
    /// Number of such looks.
    pub looks: u64,
}

impl BlockedRecord {
    /// What its threads waited for, without idle ones, the most frequent first.
    #[must_use]
    pub fn active_parts(&self) -> Vec<BlockedPart> {
        if self.threads.iter().all(|thread| thread.parts.is_empty()) {
            return self.parts.clone();
        }
        let active = self.threads.iter().filter(|thread| !thread.is_idle);
        BlockedPart::add_up(active.flat_map(|thread| thread.parts.iter().cloned()))
    }
}

impl BlockedPart {
    /// Adds up parts of the same kind, the most frequent first.
    pub fn add_up(parts: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut sums: BTreeMap<BlockedIn, u64> = BTreeMap::new();
        for part in parts {
            *sums.entry(part.what).or_default() += part.looks;
        }
        let sums = sums.into_iter();
        let mut parts: Vec<Self> = sums.map(|(what, looks)| Self { what, looks }).collect();
        parts.sort_by_key(|part| Reverse(part.looks));
        parts
    }
}

impl BlockedIn {
    /// In words, with the system call if there is one.
    #[must_use]
    pub const fn words(&self) -> &str {
        match self {
            Self::Lock => "a lock, work or another thread (futex)",
            Self::Mutex => "a lock",
            Self::Condition => "work or another thread (condition variable, semaphore or similar)",
            Self::Thread => "the end of another thread (join)",
            Self::Events => "events (poll, epoll, select)",
            Self::Timer => "a timer (sleep)",
            Self::Disk => "a disk or device",
            Self::PageFault => "pages of its memory (page faults)",
            Self::Pipe => "a pipe",
            Self::Socket => "a socket",
            Self::Terminal => "a terminal",
            Self::Child => "a child process",
            Self::Signal => "a signal",
            Self::FileLock => "a lock of a file (flock)",
            Self::Stopped => "a signal to continue (stopped)",
            Self::OtherCall => "other calls",
            Self::Unknown => "unknown",
            Self::Other(word) => word.as_str(),
        }
    }
}
