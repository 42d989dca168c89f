//! Decodes perf's records of samples and mappings.
//!
//! Every length is checked before it is used, and no input makes this panic. After a malformed
//! record the rest is dropped.
//!
//! Layouts: `perf_event_open(2)`, section "MMAP layout", with `sample_type`
//! identifier, instruction pointer, thread, time and call chain, and
//! `sample_id_all`.

use perf_event_open_sys::bindings as perf;

use crate::linux::perf_record::{Decoded, Reader, next_record};
use pinwise_sched::perf::{Bytes, Native, Record as Common, kind};

/// `sample_type` of the events read here; [`SAMPLE_STACK`] is added if stacks are copied.
pub(super) const SAMPLE_TYPE: u64 = (perf::PERF_SAMPLE_IDENTIFIER
    | perf::PERF_SAMPLE_IP
    | perf::PERF_SAMPLE_TID
    | perf::PERF_SAMPLE_TIME
    | perf::PERF_SAMPLE_CALLCHAIN
    | perf::PERF_SAMPLE_REGS_USER) as u64;
/// See [`SAMPLE_TYPE`].
pub(super) const SAMPLE_STACK: u64 = perf::PERF_SAMPLE_STACK_USER as u64;

/// Sampled registers: x86's sixteen general ones (`enum perf_event_x86_regs`: AX to SP, R8 to R15),
/// arm64's X0 to LR and SP.
pub(super) const REGISTER_MASK: u64 = if cfg!(target_arch = "x86_64") {
    0x00ff_00ff
} else if cfg!(target_arch = "aarch64") {
    0xffff_ffff
} else {
    0
};
/// `PERF_SAMPLE_REGS_ABI_64`.
const ABI_64: u64 = 2;

/// From here on, values in a call chain are not addresses but say whose addresses follow (`enum
/// perf_callchain_context`).
const FIRST_CONTEXT: u64 = (-4095i64).cast_unsigned();
const CONTEXT_KERNEL: u64 = (-128i64).cast_unsigned();
const CONTEXT_USER: u64 = (-512i64).cast_unsigned();

/// Process and thread, time and identifier at the end of all records but samples, bytes.
const TRAILER_BYTES: usize = 24;

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// A thread was executing.
    Sample {
        /// The id of the event.
        id: u64,
        /// Its process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// The executed address, and the return addresses.
        chain: Chain<'a>,
        /// Its general registers, in the kernel's order; empty if it has none.
        registers: Registers<'a>,
        /// The innermost part of its stack, from the stack pointer up; empty if unreadable.
        stack: &'a [u8],
    },
    /// Code was mapped.
    Mapped {
        /// The process.
        pid: i32,
        /// First address.
        start: u64,
        /// Bytes.
        length: u64,
        /// Offset in the file, bytes.
        offset: u64,
        /// The path of the file, as the process sees it.
        path: &'a [u8],
    },
    /// A thread got a name.
    Named {
        /// Its process.
        pid: i32,
        /// The thread.
        tid: i32,
        /// It runs a new program: all old mappings are gone.
        is_exec: bool,
        /// The name.
        name: &'a [u8],
    },
    /// A thread began.
    Fork {
        /// Its process.
        pid: i32,
        /// The process that started it.
        parent: i32,
        /// The thread.
        tid: i32,
        /// The thread that started it.
        parent_tid: i32,
    },
    /// The number of samples that were lost because the buffer was full.
    Lost(u64),
    /// A malformed record; nothing follows.
    Damaged,
}

/// Addresses of a call chain, innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chain<'a> {
    bytes: &'a [u8],
    /// The executed address; used if there is no chain.
    ip: u64,
    is_kernel: bool,
}

impl Chain<'_> {
    /// The addresses, and whether each is the kernel's.
    pub fn frames(&self) -> impl Iterator<Item = (u64, bool)> {
        let mut is_kernel = self.is_kernel;
        let chain = decode_numbers(self.bytes).filter_map(move |number| {
            if number < FIRST_CONTEXT {
                return Some((number, is_kernel));
            }
            match number {
                CONTEXT_KERNEL => is_kernel = true,
                CONTEXT_USER => is_kernel = false,
                _ => {}
            }
            None
        });
        let executed = self.bytes.is_empty().then_some((self.ip, self.is_kernel));
        chain.chain(executed)
    }
}

/// Values of registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers<'a> {
    bytes: &'a [u8],
    abi: u64,
}

impl Registers<'_> {
    /// The values, in the kernel's order.
    pub fn values(&self) -> impl Iterator<Item = u64> {
        decode_numbers(self.bytes)
    }

    /// Are they those of a 64-bit program?
    #[must_use]
    pub const fn are_wide(&self) -> bool {
        self.abi == ABI_64
    }
}

fn decode_numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|bytes| {
        let mut number = [0; 8];
        number.copy_from_slice(bytes);
        u64::from_ne_bytes(number)
    })
}

/// Decodes records and their times, ns of the event's clock. Other kinds of records are skipped.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
    time_ns: u64,
}

impl<'a> Records<'a> {
    /// Decodes these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            time_ns: 0,
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = (u64, Record<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        next_record(&mut self.rest, &mut self.time_ns, Record::Damaged, decode)
    }
}

/// Decodes a record and its time; `None` if it is malformed.
fn decode(kind: u32, flags: u16, body: &[u8]) -> Option<Decoded<(u64, Record<'_>)>> {
    if kind == kind::SAMPLE {
        return decode_sample(flags, body).map(Decoded::Used);
    }
    if !matches!(
        kind,
        kind::MMAP | kind::LOST | kind::COMM | kind::FORK | kind::LOST_SAMPLES
    ) {
        return Some(Decoded::Skipped);
    }
    let at = body.len().checked_sub(TRAILER_BYTES)?;
    let mut trailer = Reader(&body[at..]);
    trailer.u64()?;
    let time_ns = trailer.u64()?;
    let mut reader = Reader(&body[..at]);
    let record = match kind {
        kind::MMAP => {
            let pid = reader.i32()?;
            reader.i32()?;
            Record::Mapped {
                pid,
                start: reader.u64()?,
                length: reader.u64()?,
                offset: reader.u64()?,
                path: reader.text()?,
            }
        }
        _ => match Common::decode(kind, flags, Bytes::new(reader.0, Native))? {
            Decoded::Used(Common::Comm {
                process: pid,
                thread: tid,
                is_exec,
                name,
            }) => Record::Named {
                pid,
                tid,
                is_exec,
                name,
            },
            Decoded::Used(Common::Fork(task)) => Record::Fork {
                pid: task.process,
                parent: task.parent_process,
                tid: task.thread,
                parent_tid: task.parent,
            },
            Decoded::Used(Common::Lost { records }) => Record::Lost(records),
            _ => return Some(Decoded::Skipped),
        },
    };
    Some(Decoded::Used((time_ns, record)))
}

fn decode_sample(flags: u16, body: &[u8]) -> Option<(u64, Record<'_>)> {
    let mut reader = Reader(body);
    let id = reader.u64()?;
    let ip = reader.u64()?;
    let (pid, tid) = (reader.i32()?, reader.i32()?);
    let time_ns = reader.u64()?;
    let bytes = usize::try_from(reader.u64()?).ok()?.checked_mul(8)?;
    let is_kernel =
        u32::from(flags) & perf::PERF_RECORD_MISC_CPUMODE_MASK == perf::PERF_RECORD_MISC_KERNEL;
    let chain = Chain {
        bytes: reader.0.get(..bytes)?,
        ip,
        is_kernel,
    };
    reader.0 = &reader.0[bytes..];
    // The register ABI; 0 if the thread has none (kernel threads).
    let abi = reader.u64()?;
    let length = if abi == 0 {
        0
    } else {
        REGISTER_MASK.count_ones() as usize * 8
    };
    let registers = Registers {
        bytes: reader.0.get(..length)?,
        abi,
    };
    reader.0 = &reader.0[length..];
    let record = Record::Sample {
        id,
        pid,
        tid,
        chain,
        registers,
        stack: decode_stack(&mut reader).unwrap_or_default(),
    };
    Some((time_ns, record))
}

/// Decodes a copied stack: its size, that many bytes, and how many of them the kernel could read.
fn decode_stack<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let size = usize::try_from(reader.u64()?).ok()?;
    let bytes = reader.0.get(..size)?;
    reader.0 = &reader.0[size..];
    let read = usize::try_from(reader.u64()?).ok()?;
    bytes.get(..read)
}

#[cfg(test)]
mod tests;
