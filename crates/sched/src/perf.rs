//! Decodes perf's records from the bytes of a kernel's buffer or of `perf.data`.
//!
//! Every length is checked before it is used, and no input makes this panic. After a malformed
//! record it is unknown where the next one begins: the rest of a buffer is dropped and reported as
//! lost.
//!
//! Layouts: `perf_event_open(2)`, section "MMAP layout".

pub use super::bytes::{ByteOrder, Bytes, Native};

use super::Tid;

/// Types of records, `enum perf_event_type`.
#[expect(missing_docs, reason = "the kernel's names")]
pub mod kind {
    pub const MMAP: u32 = 1;
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const EXIT: u32 = 4;
    pub const THROTTLE: u32 = 5;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const LOST_SAMPLES: u32 = 13;
    pub const SWITCH: u32 = 14;
    pub const SWITCH_CPU_WIDE: u32 = 15;
}

/// Bits of `perf_event_attr.sample_type`.
#[expect(missing_docs, reason = "the kernel's names")]
pub mod sampled {
    pub const IP: u64 = 1;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const IDENTIFIER: u64 = 1 << 16;
}
use sampled::{ADDR, CALLCHAIN, CPU, ID, IDENTIFIER, IP, PERIOD, RAW, READ, STREAM_ID, TID, TIME};

/// `PERF_RECORD_MISC_COMM_EXEC`: the name is a new program's.
const COMM_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_SWITCH_OUT`.
const SWITCH_OUT: u16 = 1 << 13;
/// `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`, since Linux 4.17.
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// Bits of `perf_event_attr.read_format`.
const ENABLED: u64 = 1;
const RUNNING: u64 = 1 << 1;
const READ_ID: u64 = 1 << 2;
const GROUP: u64 = 1 << 3;
const READ_LOST: u64 = 1 << 4;

/// Bytes of the header of every record.
pub const HEADER: usize = 8;

/// Which fields the records of an event have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bits of [`sampled`].
    pub sample_type: u64,
    /// `read_format`, for samples with counters.
    pub read_format: u64,
    /// Do records other than samples have the common fields at their end (`sample_id_all`)?
    pub has_trailer: bool,
}

/// Fields that records of all kinds have; `None` if not recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommonFields {
    /// The process of the thread.
    pub process: Option<Tid>,
    /// The thread that was running.
    pub thread: Option<Tid>,
    /// ns of the event's clock.
    pub time_ns: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
}

impl Layout {
    /// The layout of samples with these fields, and of other records with the same fields at their
    /// end.
    #[must_use]
    pub const fn from_sample_type(sample_type: u64) -> Self {
        Self {
            sample_type,
            read_format: 0,
            has_trailer: true,
        }
    }

    const fn has(&self, bit: u64) -> bool {
        self.sample_type & bit != 0
    }

    /// Skips these fields of eight bytes, as far as they are recorded.
    fn skip<O: ByteOrder>(&self, body: &mut Bytes<'_, O>, bits: &[u64]) -> Option<()> {
        let count = bits.iter().filter(|&&bit| self.has(bit)).count();
        body.skip(8 * count)
    }

    fn parse_thread_and_time<O: ByteOrder>(&self, body: &mut Bytes<'_, O>) -> Option<CommonFields> {
        let mut common = CommonFields::default();
        if self.has(TID) {
            common.process = Some(body.i32()?);
            common.thread = Some(body.i32()?);
        }
        if self.has(TIME) {
            common.time_ns = Some(body.u64()?);
        }
        Some(common)
    }

    /// Parses the common fields of a sample, and its raw data if it has some; `None` if it is too
    /// short.
    pub fn parse_sample<'a, O: ByteOrder>(
        &self,
        mut body: Bytes<'a, O>,
    ) -> Option<(CommonFields, Option<&'a [u8]>)> {
        self.skip(&mut body, &[IDENTIFIER, IP])?;
        let mut common = self.parse_thread_and_time(&mut body)?;
        self.skip(&mut body, &[ADDR, ID, STREAM_ID])?;
        if self.has(CPU) {
            common.cpu = Some(body.u32()?);
            body.skip(4)?;
        }
        self.skip(&mut body, &[PERIOD])?;
        if self.has(READ) {
            skip_read(&mut body, self.read_format)?;
        }
        if self.has(CALLCHAIN) {
            let count = usize::try_from(body.u64()?).ok()?;
            body.skip(count.checked_mul(8)?)?;
        }
        if !self.has(RAW) {
            return Some((common, None));
        }
        let size = usize::try_from(body.u32()?).ok()?;
        Some((common, Some(body.take(size)?)))
    }

    /// Parses the common fields at the end of any other record; `None` if there are none.
    pub fn parse_trailer<O: ByteOrder>(&self, mut body: Bytes<'_, O>) -> Option<CommonFields> {
        const FIELDS: u64 = TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER;
        let size = 8 * (self.sample_type & FIELDS).count_ones() as usize;
        body.skip(body.rest().len().checked_sub(size)?)?;
        let mut common = self
            .has_trailer
            .then(|| self.parse_thread_and_time(&mut body))??;
        self.skip(&mut body, &[ID, STREAM_ID])?;
        if self.has(CPU) {
            common.cpu = Some(body.u32()?);
        }
        Some(common)
    }
}

/// Skips a `struct read_format` of one counter or of a group.
fn skip_read<O: ByteOrder>(body: &mut Bytes<'_, O>, format: u64) -> Option<()> {
    let count_bits = |bits: [u64; 2]| bits.iter().filter(|bit| format & **bit != 0).count();
    let times = count_bits([ENABLED, RUNNING]);
    let each = 1 + count_bits([READ_ID, READ_LOST]);
    let count = match format & GROUP {
        0 => 1,
        _ => usize::try_from(body.u64()?).ok()?,
    };
    let words = count.checked_mul(each)?.checked_add(times)?;
    body.skip(words.checked_mul(8)?)
}

/// A record about the scheduler or threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// A thread arrived on this CPU or left it; the common fields name it.
    Switch {
        /// The arriving (`is_out`) or leaving thread, in a record of any thread
        /// (`PERF_RECORD_SWITCH_CPU_WIDE`); −1 if it has ended.
        other: Option<Tid>,
        /// It left.
        is_out: bool,
        /// It left but was still runnable.
        is_preempted: bool,
    },
    /// A thread began.
    Fork(Task),
    /// A thread ended.
    Exit(Task),
    /// A thread was named.
    Comm {
        /// Its process.
        process: Tid,
        /// The thread.
        thread: Tid,
        /// It runs a new program.
        is_exec: bool,
        /// The name, without the zero bytes behind it.
        name: &'a [u8],
    },
    /// Records were lost because the buffer was full.
    Lost {
        /// The number of lost records.
        records: u64,
    },
    /// The kernel dropped records and does not say how many.
    Throttle,
    /// A tracepoint (`PERF_RECORD_SAMPLE` with raw bytes).
    Sample {
        /// The tracepoint's data.
        raw: &'a [u8],
    },
    /// A malformed record; nothing follows.
    Damaged,
}

/// The thread of a fork or exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The process of the thread.
    pub process: Tid,
    /// The process of the thread that created it.
    pub parent_process: Tid,
    /// The thread.
    pub thread: Tid,
    /// The thread that created it.
    pub parent: Tid,
    /// When, ns.
    pub time_ns: u64,
}

/// A well-formed record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded<T> {
    /// Of a kind that the reader uses.
    Used(T),
    /// Of another kind.
    Skipped,
}

impl<'a> Record<'a> {
    /// Decodes a record other than a sample; `None` if it is malformed.
    pub fn decode<O: ByteOrder>(
        kind: u32,
        flags: u16,
        mut body: Bytes<'a, O>,
    ) -> Option<Decoded<Self>> {
        Some(Decoded::Used(match kind {
            kind::SWITCH | kind::SWITCH_CPU_WIDE => {
                let is_wide = kind == kind::SWITCH_CPU_WIDE;
                let other = is_wide.then(|| body.u32().and_then(|_| body.i32()));
                Self::Switch {
                    other: match other {
                        Some(other) => Some(other?),
                        None => None,
                    },
                    is_out: flags & SWITCH_OUT != 0,
                    is_preempted: flags & SWITCH_OUT_PREEMPT != 0,
                }
            }
            kind::COMM => Self::Comm {
                process: body.i32()?,
                thread: body.i32()?,
                is_exec: flags & COMM_EXEC != 0,
                name: body.text()?,
            },
            kind::FORK => Self::Fork(Task::read(&mut body)?),
            kind::EXIT => Self::Exit(Task::read(&mut body)?),
            kind::LOST => {
                body.skip(8)?;
                let records = body.u64()?;
                Self::Lost { records }
            }
            kind::LOST_SAMPLES => Self::Lost {
                records: body.u64()?,
            },
            kind::THROTTLE => Self::Throttle,
            _ => return Some(Decoded::Skipped),
        }))
    }
}

impl Task {
    fn read<O: ByteOrder>(body: &mut Bytes<'_, O>) -> Option<Self> {
        Some(Self {
            process: body.i32()?,
            parent_process: body.i32()?,
            thread: body.i32()?,
            parent: body.i32()?,
            time_ns: body.u64()?,
        })
    }
}

/// A record, when it was written, and the thread that was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedRecord<'a> {
    /// ns of the event's clock.
    pub time_ns: u64,
    /// 0 if not recorded.
    pub thread: Tid,
    /// The record.
    pub record: Record<'a>,
}

/// Decodes the records of a buffer.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    layout: Layout,
    /// Time of the previous record, for those without one.
    time_ns: u64,
}

impl<'a> Records<'a> {
    /// Decodes these bytes. Kinds of records that do not concern the scheduler are skipped.
    #[must_use]
    pub const fn new(bytes: &'a [u8], layout: Layout) -> Self {
        Self {
            rest: bytes,
            layout,
            time_ns: 0,
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = TimedRecord<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let layout = self.layout;
        let decode = |kind, flags, body: &'a [u8]| {
            let body = Bytes::new(body, Native);
            let (common, record) = if kind == kind::SAMPLE {
                let (common, raw) = layout.parse_sample(body)?;
                (common, Record::Sample { raw: raw? })
            } else {
                let Decoded::Used(record) = Record::decode(kind, flags, body)? else {
                    return Some(Decoded::Skipped);
                };
                (layout.parse_trailer(body)?, record)
            };
            let thread = common.thread.unwrap_or(0);
            Some(Decoded::Used((common.time_ns?, (thread, record))))
        };
        let damaged = (0, Record::Damaged);
        let (time_ns, (thread, record)) =
            next_record(&mut self.rest, &mut self.time_ns, damaged, decode)?;
        Some(TimedRecord {
            time_ns,
            thread,
            record,
        })
    }
}

/// Removes the next used record from the front of a buffer; also returns its time. A malformed
/// record ends the buffer: then `damaged` is returned, with the time of the record before. `decode`
/// gets type, flags and body, and returns `None` if they are malformed.
pub fn next_record<'a, T>(
    rest: &mut &'a [u8],
    last_ns: &mut u64,
    damaged: T,
    decode: impl Fn(u32, u16, &'a [u8]) -> Option<Decoded<(u64, T)>>,
) -> Option<(u64, T)> {
    while !rest.is_empty() {
        match take_record(rest).and_then(|(kind, flags, body)| decode(kind, flags, body)) {
            Some(Decoded::Used((time_ns, record))) => {
                *last_ns = time_ns;
                return Some((time_ns, record));
            }
            Some(Decoded::Skipped) => {}
            None => {
                *rest = &[];
                return Some((*last_ns, damaged));
            }
        }
    }
    None
}

/// Removes the next record from the front: type, flags and body; `None` if its header is malformed.
fn take_record<'a>(rest: &mut &'a [u8]) -> Option<(u32, u16, &'a [u8])> {
    let mut header = Bytes::new(rest, Native);
    let (kind, flags) = (header.u32()?, header.u16()?);
    let size = usize::from(header.u16()?);
    let body = rest.get(HEADER..size)?;
    *rest = &rest[size..];
    Some((kind, flags, body))
}

#[cfg(test)]
mod tests;
