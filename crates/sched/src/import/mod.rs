//! Traces that other tools made: `perf.data`, and the text of ftrace.
//!
//! What comes in is hostile: every length is checked before it is believed,
//! every name is bytes, memory is bounded by threads, CPUs and what perf holds
//! back to sort. Where a file ends early, what was read counts and a note says
//! so; where it contradicts itself, the byte or the line is named. Offsets of
//! tracepoints' fields come from the file alone: they differ between kernels.

mod error;
mod event_builder;
mod ftrace;
mod perf_data;
mod prefix;
mod raw_event;

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::{Event, Scope, Tid};

pub use error::ImportError;

use ftrace::Ftrace;
use perf_data::PerfData;

/// Whose threads an imported trace is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// Of `perf record` the command that it started, with all that the command
    /// starts; everything where none was started.
    Default,
    /// This process and what it starts.
    Process(Tid),
}

/// A file that was recognised and whose beginning was read.
#[derive(Debug)]
pub struct Import<R> {
    kind: Kind<R>,
}

#[derive(Debug)]
enum Kind<R> {
    PerfData(Box<PerfData<R>>),
    Ftrace(Ftrace<R>),
}

/// What the beginning of a file shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// `perf.data`, `perf script` or `ftrace`.
    pub format: &'static str,
    /// What its events can show.
    pub scope: Scope,
    /// Was it about a command that the tool started?
    pub has_command: bool,
    /// The machine's name.
    pub host: Option<String>,
    /// CPUs of that machine: those it could have and those online.
    pub cpus: Option<(u32, u32)>,
}

/// How an import went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// The first thread that was followed; `None`: the trace is about
    /// everything.
    pub root: Option<Tid>,
    /// What else should be known, as full sentences.
    pub notes: Vec<String>,
}

/// Longest trace that is read, ns: 13 days. Sums over 16,384 threads that wait
/// all the while fit 64 bits.
const LONGEST_TRACE_NS: u64 = 1 << 50;

/// The time of the first event, from which no other may be far away.
#[derive(Debug, Default)]
struct FirstTime(Option<u64>);

impl FirstTime {
    /// The error is a clause about the time.
    fn check(&mut self, time_ns: u64) -> Result<(), String> {
        let first_ns = *self.0.get_or_insert(time_ns);
        if time_ns.abs_diff(first_ns) <= LONGEST_TRACE_NS {
            return Ok(());
        }
        let seconds = |ns: u64| ns / 1_000_000_000;
        Err(format!(
            "its time, {} s, is more than 13 days from that of the first event, {} s",
            seconds(time_ns),
            seconds(first_ns)
        ))
    }
}

/// Bytes that are looked at to recognise a format.
const RECOGNISED: u64 = 4096;

impl<R: Read + Seek> Import<R> {
    /// Recognises a file by what is in it.
    ///
    /// # Errors
    /// [`ImportError`]: what it is instead, or what is wrong with it.
    pub fn open(mut reader: R) -> Result<Self, ImportError> {
        let mut begin = Vec::new();
        reader.seek(SeekFrom::Start(0))?;
        reader.by_ref().take(RECOGNISED).read_to_end(&mut begin)?;
        reader.seek(SeekFrom::Start(0))?;
        let kind = match recognise(&begin)? {
            Recognised::PerfData => Kind::PerfData(Box::new(PerfData::open(reader)?)),
            Recognised::Ftrace => Kind::Ftrace(Ftrace::open(BufReader::new(reader))?),
        };
        Ok(Self { kind })
    }

    /// What the beginning shows.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        match &self.kind {
            Kind::PerfData(file) => file.facts(),
            Kind::Ftrace(text) => text.facts(),
        }
    }

    /// Reads it to its end. `sink` gets the events in the order of time, but
    /// for those that the file itself has out of order.
    ///
    /// # Errors
    /// [`ImportError`]: where the file is damaged, or has nothing of `whom`.
    pub fn read(self, whom: Whom, sink: &mut dyn FnMut(&[Event])) -> Result<Imported, ImportError> {
        match self.kind {
            Kind::PerfData(file) => file.read(whom, sink),
            Kind::Ftrace(text) => text.read(whom, sink),
        }
    }
}

enum Recognised {
    PerfData,
    Ftrace,
}

fn recognise(begin: &[u8]) -> Result<Recognised, ImportError> {
    match begin {
        [] => Err(ImportError::Empty),
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..]
        | [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => Ok(Recognised::PerfData),
        // trace-cmd's magic number, the same in all versions.
        [
            0x17,
            0x08,
            0x44,
            b't',
            b'r',
            b'a',
            b'c',
            b'i',
            b'n',
            b'g',
            ..,
        ] => Err(ImportError::TraceDat),
        _ if ftrace::looks_like(begin) => Ok(Recognised::Ftrace),
        _ => Err(ImportError::unknown(begin)),
    }
}

#[cfg(test)]
mod tests;
