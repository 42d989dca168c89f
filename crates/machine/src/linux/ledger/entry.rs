//! Entries of a ledger: changes with their old values, and their form as lines of a journal.
//!
//! An incomplete or malformed line means that the change was not made: a change is made only after
//! its line is complete.

use std::fmt;
use std::path::PathBuf;

use super::memory::MovedMemory;
use super::queue::SetQueue;
use super::words::{
    escape, format_cpus, parse_cpus, parse_id, parse_nice, parse_some_cpus, unescape,
};
use crate::processes::RuledProcess;
use pinwise_topology::CpuSet;
use pinwise_topology::interrupts::Queue;

/// A change of the system that must be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A thread may use only these CPUs.
    Mask {
        /// Its id.
        thread: i32,
        /// The CPUs.
        cpus: CpuSet,
    },
    /// A thread gets this niceness.
    Nice {
        /// Its id.
        thread: i32,
        /// From -20 to 19.
        nice: i32,
    },
    /// A CPU is switched on or off, for the whole host.
    Online {
        /// The CPU.
        cpu: usize,
        /// Its new state.
        is_on: bool,
    },
    /// The second and further CPUs of all cores are switched off. The kernel's `forceoff`, which
    /// would last until the next boot, is never written.
    SmtOff,
    /// These CPUs may take an interrupt.
    Interrupt {
        /// Its number, as in `/proc/irq`.
        number: u32,
        /// The CPUs.
        cpus: CpuSet,
    },
    /// These CPUs serve a queue of a network interface.
    Queue {
        /// The queue.
        queue: Queue,
        /// The CPUs.
        cpus: CpuSet,
    },
    /// A process's pages move to these NUMA nodes.
    Memory {
        /// Its id.
        process: i32,
        /// The nodes.
        nodes: CpuSet,
    },
    /// A cgroup may use only these CPUs.
    Cpuset {
        /// Its `cpuset.cpus`.
        file: PathBuf,
        /// The CPUs.
        cpus: CpuSet,
    },
    /// A cgroup is made.
    Folder {
        /// Its folder.
        path: PathBuf,
    },
    /// A task moves into a cgroup: a thread in version 1, a whole process in version 2.
    Move {
        /// Its id.
        task: i32,
        /// The cgroup's folder.
        to: PathBuf,
    },
}

/// A change with its old value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A thread's mask was set.
    Mask {
        /// Its id.
        thread: i32,
        /// Its start time, ticks since boot: the id may be reused.
        start: u64,
        /// The old mask.
        before: CpuSet,
        /// The mask that was set.
        asked: CpuSet,
        /// The mask that the kernel granted: smaller if a cpuset forbids CPUs.
        granted: Option<CpuSet>,
    },
    /// A thread's mask that the kernel may drop because of another change; pinwise did not change
    /// it.
    Saved {
        /// Its id.
        thread: i32,
        /// Its start time, ticks since boot.
        start: u64,
        /// The old mask.
        before: CpuSet,
    },
    /// A thread's niceness was set.
    Nice {
        /// Its id.
        thread: i32,
        /// Its start time, ticks since boot.
        start: u64,
        /// The old niceness.
        before: i32,
        /// The niceness that was set.
        asked: i32,
    },
    /// A CPU was switched on or off; its old state is the opposite.
    Online {
        /// The CPU.
        cpu: usize,
        /// Its new state.
        is_on: bool,
    },
    /// SMT was switched off.
    SmtOff,
    /// The CPUs that may take an interrupt were set.
    Interrupt {
        /// Its number.
        number: u32,
        /// The old CPUs.
        before: CpuSet,
        /// The CPUs among these that the kernel chose to take it; empty if unknown.
        taking: CpuSet,
        /// The CPUs that were set.
        asked: CpuSet,
    },
    /// The CPUs of a queue of a network interface were set.
    Queue(SetQueue),
    /// Pages of a process were moved.
    Memory(MovedMemory),
    /// A cgroup's CPUs were set, or will be by the kernel.
    Cpuset {
        /// Its `cpuset.cpus`.
        file: PathBuf,
        /// The old CPUs; empty: those of its parent.
        before: CpuSet,
        /// The CPUs that were set.
        asked: CpuSet,
    },
    /// A cgroup was made.
    Folder {
        /// Its folder.
        path: PathBuf,
    },
    /// A task was moved into a cgroup.
    Move {
        /// Its id.
        task: i32,
        /// Its start time, ticks since boot.
        start: u64,
        /// The folder of its old cgroup.
        before: PathBuf,
        /// The folder of its new cgroup.
        to: PathBuf,
    },
    /// Rules gave a process CPUs or a nice value.
    Held(RuledProcess),
}

impl Entry {
    /// When it is restored, the lowest first: CPUs first, since the kernel accepts no mask of an
    /// offline CPU; then cpusets, which restrict masks; then tasks return to their groups, which
    /// may overwrite masks; then masks; and last the groups, which are empty by then.
    #[must_use]
    pub const fn rank(&self) -> u8 {
        match self {
            Self::Online { .. } | Self::SmtOff => 0,
            Self::Cpuset { .. } => 1,
            Self::Move { .. } => 2,
            Self::Mask { .. }
            | Self::Saved { .. }
            | Self::Nice { .. }
            | Self::Interrupt { .. }
            | Self::Queue(_)
            | Self::Memory(_)
            | Self::Held(_) => 3,
            Self::Folder { .. } => 4,
        }
    }

    /// The words of a journal's line.
    fn to_words(&self) -> String {
        match self {
            Self::Mask {
                thread,
                start,
                before,
                asked,
                ..
            } => format!(
                "mask {thread} {start} {} {}",
                format_cpus(before),
                format_cpus(asked)
            ),
            Self::Saved {
                thread,
                start,
                before,
            } => format!("saved {thread} {start} {}", format_cpus(before)),
            Self::Nice {
                thread,
                start,
                before,
                asked,
            } => format!("nice {thread} {start} {before} {asked}"),
            Self::Online { cpu, is_on } => format!("online {cpu} {is_on}"),
            Self::SmtOff => "smt-off".to_owned(),
            Self::Interrupt {
                number,
                before,
                taking,
                asked,
            } => {
                let (before, taking, asked) =
                    (format_cpus(before), format_cpus(taking), format_cpus(asked));
                format!("interrupt {number} {before} {taking} {asked}")
            }
            Self::Queue(set) => set.to_words(),
            Self::Memory(moved) => moved.to_words(),
            Self::Cpuset {
                file,
                before,
                asked,
            } => format!(
                "cpuset {} {} {}",
                escape(file),
                format_cpus(before),
                format_cpus(asked)
            ),
            Self::Folder { path } => format!("folder {}", escape(path)),
            Self::Move {
                task,
                start,
                before,
                to,
            } => format!("move {task} {start} {} {}", escape(before), escape(to)),
            Self::Held(held) => {
                let join = |numbers: &[i32]| {
                    let texts: Vec<String> = numbers.iter().map(i32::to_string).collect();
                    texts.join(",")
                };
                let (nices, own_masks) = (join(&held.nices), join(&held.own_masks));
                let own_nices = join(&held.own_nices);
                let masks = held.masks.iter().map(|mask| format!(" {mask}"));
                let (process, start) = (held.process, held.start);
                let masks: String = masks.collect();
                format!(
                    "held {process} {start} nice={nices} own_nice={own_nices} own={own_masks}{masks}"
                )
            }
        }
    }

    /// Parses what [`Self::to_words`] writes.
    fn from_words(words: &[&str]) -> Option<Self> {
        Some(match *words {
            ["mask", thread, start, before, asked] => Self::Mask {
                thread: parse_id(thread)?,
                start: start.parse().ok()?,
                before: parse_some_cpus(before)?,
                asked: parse_some_cpus(asked)?,
                granted: None,
            },
            ["saved", thread, start, before] => Self::Saved {
                thread: parse_id(thread)?,
                start: start.parse().ok()?,
                before: parse_some_cpus(before)?,
            },
            ["nice", thread, start, before, asked] => Self::Nice {
                thread: parse_id(thread)?,
                start: start.parse().ok()?,
                before: parse_nice(before)?,
                asked: parse_nice(asked)?,
            },
            ["online", cpu, is_on] => Self::Online {
                cpu: cpu.parse().ok().filter(|&cpu| cpu <= CpuSet::MAX_CPU)?,
                is_on: is_on.parse().ok()?,
            },
            ["smt-off"] => Self::SmtOff,
            ["interrupt", number, before, taking, asked] => Self::Interrupt {
                number: number.parse().ok()?,
                before: parse_some_cpus(before)?,
                taking: parse_cpus(taking)?,
                asked: parse_some_cpus(asked)?,
            },
            ["queue", ref words @ ..] => Self::Queue(SetQueue::from_words(words)?),
            ["memory", ref words @ ..] => Self::Memory(MovedMemory::from_words(words)?),
            ["cpuset", file, before, asked] => Self::Cpuset {
                file: unescape(file)?,
                before: parse_cpus(before)?,
                asked: parse_cpus(asked)?,
            },
            ["folder", path] => Self::Folder {
                path: unescape(path)?,
            },
            ["move", task, start, before, to] => Self::Move {
                task: parse_id(task)?,
                start: start.parse().ok()?,
                before: unescape(before)?,
                to: unescape(to)?,
            },
            [
                "held",
                process,
                start,
                nices,
                own_nices,
                own_masks,
                ref masks @ ..,
            ] => {
                let nices = nices.strip_prefix("nice=")?.split_terminator(',');
                let threads = |text: &str, name: &str| -> Option<Vec<i32>> {
                    text.strip_prefix(name)?
                        .split_terminator(',')
                        .map(parse_id)
                        .collect()
                };
                Self::Held(RuledProcess {
                    process: parse_id(process)?,
                    start: start.parse().ok()?,
                    masks: masks
                        .iter()
                        .map(|mask| parse_some_cpus(mask))
                        .collect::<Option<_>>()?,
                    nices: nices.map(parse_nice).collect::<Option<_>>()?,
                    own_masks: threads(own_masks, "own=")?,
                    own_nices: threads(own_nices, "own_nice=")?,
                })
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Entry {
    /// The restored value, as in `thread 42: CPUs 0-3`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mask { thread, before, .. } | Self::Saved { thread, before, .. } => {
                write!(out, "thread {thread}: CPUs {before}")
            }
            Self::Nice { thread, before, .. } => write!(out, "thread {thread}: niceness {before}"),
            Self::Online { cpu, is_on } => {
                write!(out, "CPU {cpu}: {}", if *is_on { "off" } else { "on" })
            }
            Self::SmtOff => out.write_str("SMT: on"),
            Self::Interrupt { number, before, .. } => {
                write!(out, "interrupt {number}: CPUs {before}")
            }
            Self::Queue(set) => set.fmt(out),
            Self::Memory(moved) => moved.fmt(out),
            Self::Cpuset { file, before, .. } => match before.is_empty() {
                true => write!(out, "{}: as its parent", file.display()),
                false => write!(out, "{}: CPUs {before}", file.display()),
            },
            Self::Folder { path } => write!(out, "{}: removed", path.display()),
            Self::Move { task, before, .. } => {
                write!(out, "task {task}: cgroup {}", before.display())
            }
            Self::Held(held) => write!(out, "process {}: placed by rules", held.process),
        }
    }
}

/// A line of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JournalLine {
    /// A change is about to be made.
    Made(u64, Entry),
    /// The kernel granted this mask.
    Granted(u64, CpuSet),
    /// A change ended, or must not be undone.
    Gone(u64),
    /// Should changes stay?
    Kept(bool),
}

impl JournalLine {
    pub(super) fn to_line(&self) -> String {
        match self {
            Self::Made(id, entry) => format!("made {id} {}\n", entry.to_words()),
            Self::Granted(id, cpus) => format!("granted {id} {}\n", format_cpus(cpus)),
            Self::Gone(id) => format!("gone {id}\n"),
            Self::Kept(are_kept) => format!("kept {are_kept}\n"),
        }
    }

    pub(super) fn from_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        Some(match *words.as_slice() {
            ["made", id, ref entry @ ..] => Self::Made(id.parse().ok()?, Entry::from_words(entry)?),
            ["granted", id, set] => Self::Granted(id.parse().ok()?, parse_some_cpus(set)?),
            ["gone", id] => Self::Gone(id.parse().ok()?),
            ["kept", are_kept] => Self::Kept(are_kept.parse().ok()?),
            _ => return None,
        })
    }
}
