//! Perf's records, from bytes.
//!
//! The bytes come from a buffer that the kernel fills; nothing of them is
//! believed that was not looked at, and no bytes make this panic. It refuses
//! to guess where the next record begins after one that makes no sense: the
//! rest is given up, and that is told.
//!
//! Layouts: `perf_event_open(2)`, section "MMAP layout".

use crate::machine::linux::perf_record::{self, Reader};
use crate::trace::Tid;

/// Types of records, `enum perf_event_type`.
mod kind {
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const THROTTLE: u32 = 5;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(super) const SWITCH: u32 = 14;
    pub(super) const SWITCH_CPU_WIDE: u32 = 15;
}

/// `PERF_RECORD_MISC_COMM_EXEC`: the name is a new program's.
const MISC_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_SWITCH_OUT`.
const MISC_OUT: u16 = 1 << 13;
/// `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`, since Linux 4.17.
const MISC_PREEMPTED: u16 = 1 << 14;

/// What the event was asked to write into its records (`sample_type`), beside
/// the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLayout {
    /// Process and thread (`PERF_SAMPLE_TID`) stand before the time.
    pub has_thread: bool,
}

/// A record that says something of the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerfRecord<'a> {
    /// A thread came on this CPU or left it (`PERF_RECORD_SWITCH`).
    Switch {
        /// Who.
        thread: Tid,
        /// It left.
        is_out: bool,
        /// It left and could have gone on.
        is_preempted: bool,
    },
    /// The same, of whatever thread (`PERF_RECORD_SWITCH_CPU_WIDE`).
    SwitchWide {
        /// Who; −1 where it has ended meanwhile.
        thread: Tid,
        /// Who comes (`is_out`), or who left; −1 likewise.
        other: Tid,
        /// The thread leaves.
        is_out: bool,
        /// It leaves and could have gone on.
        is_preempted: bool,
    },
    /// A thread began.
    Fork {
        /// The process of the new thread.
        process: Tid,
        /// Who made it.
        parent: Tid,
        /// The new thread.
        child: Tid,
    },
    /// A thread ended.
    Exit {
        /// Who.
        thread: Tid,
    },
    /// A thread has a name.
    Comm {
        /// Who.
        thread: Tid,
        /// It runs a new program.
        is_exec: bool,
        /// The name, without the zero bytes behind it.
        name: &'a [u8],
    },
    /// Records found no room.
    Lost {
        /// How many.
        records: u64,
    },
    /// A tracepoint (`PERF_RECORD_SAMPLE` with raw bytes).
    Sample {
        /// What the tracepoint wrote.
        raw: &'a [u8],
    },
    /// Bytes that are no record; nothing follows.
    Damaged,
}

/// Reads records one after the other; see [`PerfRecords::new`].
#[derive(Debug, Clone)]
pub struct PerfRecords<'a> {
    rest: &'a [u8],
    layout: RecordLayout,
    /// Of the record before, for those that lack one.
    time_ns: u64,
}

impl<'a> PerfRecords<'a> {
    /// Records of these bytes with their times, ns of the event's clock. Kinds
    /// that say nothing of the scheduler are passed over.
    #[must_use]
    pub const fn new(bytes: &'a [u8], layout: RecordLayout) -> Self {
        Self {
            rest: bytes,
            layout,
            time_ns: 0,
        }
    }
}

impl RecordLayout {
    /// Thread and time that stand at the end of every record but samples
    /// (`sample_id_all`).
    fn trailer(self, body: &[u8]) -> Option<(Tid, u64)> {
        let length = if self.has_thread { 16 } else { 8 };
        let at = body.len().checked_sub(length)?;
        self.thread_and_time(&mut Reader(&body[at..]))
    }

    fn thread_and_time(self, reader: &mut Reader<'_>) -> Option<(Tid, u64)> {
        let mut thread = 0;
        if self.has_thread {
            reader.u32()?;
            thread = reader.i32()?;
        }
        Some((thread, reader.u64()?))
    }

    /// What a record says; the outer `None`: it makes no sense, the inner one:
    /// it does not matter here.
    fn read(self, kind: u32, flags: u16, body: &[u8]) -> Option<Option<(u64, PerfRecord<'_>)>> {
        let mut reader = Reader(body);
        if kind == kind::SAMPLE {
            let (_, time_ns) = self.thread_and_time(&mut reader)?;
            let length = usize::try_from(reader.u32()?).ok()?;
            let raw = reader.0.get(..length)?;
            return Some(Some((time_ns, PerfRecord::Sample { raw })));
        }
        if !is_known(kind) {
            return Some(None);
        }
        let (thread, time_ns) = self.trailer(body)?;
        let record = match kind {
            kind::SWITCH => PerfRecord::Switch {
                thread,
                is_out: flags & MISC_OUT != 0,
                is_preempted: flags & MISC_PREEMPTED != 0,
            },
            kind::SWITCH_CPU_WIDE => {
                reader.u32()?;
                PerfRecord::SwitchWide {
                    thread,
                    other: reader.i32()?,
                    is_out: flags & MISC_OUT != 0,
                    is_preempted: flags & MISC_PREEMPTED != 0,
                }
            }
            kind::COMM => reader.comm(flags)?,
            kind::FORK => {
                let task = reader.task()?;
                PerfRecord::Fork {
                    process: task.process,
                    parent: task.parent,
                    child: task.thread,
                }
            }
            kind::EXIT => PerfRecord::Exit {
                thread: reader.task()?.thread,
            },
            kind::LOST => {
                reader.u64()?;
                PerfRecord::Lost {
                    records: reader.u64()?,
                }
            }
            kind::LOST_SAMPLES => PerfRecord::Lost {
                records: reader.u64()?,
            },
            // Throttled: the kernel left some out and does not say how many.
            _ => PerfRecord::Lost { records: 1 },
        };
        Some(Some((time_ns, record)))
    }
}

impl<'a> Iterator for PerfRecords<'a> {
    type Item = (u64, PerfRecord<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let layout = self.layout;
        let read = |kind, flags, body| layout.read(kind, flags, body);
        perf_record::next(&mut self.rest, &mut self.time_ns, PerfRecord::Damaged, read)
    }
}

const fn is_known(kind: u32) -> bool {
    matches!(
        kind,
        kind::LOST
            | kind::COMM
            | kind::EXIT
            | kind::THROTTLE
            | kind::FORK
            | kind::LOST_SAMPLES
            | kind::SWITCH
            | kind::SWITCH_CPU_WIDE
    )
}

/// The body of a fork or exit.
struct Task {
    process: Tid,
    thread: Tid,
    parent: Tid,
}

impl<'a> Reader<'a> {
    /// `pid, ppid, tid, ptid, time`.
    fn task(&mut self) -> Option<Task> {
        let process = self.i32()?;
        self.i32()?;
        let thread = self.i32()?;
        let parent = self.i32()?;
        self.u64()?;
        Some(Task {
            process,
            thread,
            parent,
        })
    }

    /// `pid, tid, name`, the name ended by zero bytes.
    fn comm(&mut self, flags: u16) -> Option<PerfRecord<'a>> {
        self.i32()?;
        let thread = self.i32()?;
        Some(PerfRecord::Comm {
            thread,
            is_exec: flags & MISC_EXEC != 0,
            name: self.text()?,
        })
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
