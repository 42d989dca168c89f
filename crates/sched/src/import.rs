//! Traces that other tools made: `perf.data`, and the text of ftrace.
//!
//! Input is untrusted: every length is checked, every name is bytes, memory is bounded by threads,
//! CPUs and perf's sorting window. If a file ends early, what was read counts and a note says so;
//! if it contradicts itself, the error names the byte or the line. Offsets of tracepoints' fields
//! come from the file alone: they differ between kernels.

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
pub enum TraceSubject {
    /// For `perf record`, the command that it started and its descendants; everything if none was
    /// started.
    Default,
    /// This process and what it starts.
    Process(Tid),
}

/// A recognised file with its beginning read.
#[derive(Debug)]
pub struct Import<R> {
    kind: Kind<R>,
}

#[derive(Debug)]
enum Kind<R> {
    PerfData(Box<PerfData<R>>),
    Ftrace(Ftrace<R>),
}

/// Facts from the beginning of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// `perf.data`, `perf script` or `ftrace`.
    pub format: &'static str,
    /// What its events can show.
    pub scope: Scope,
    /// Did the tool start a command?
    pub has_command: bool,
    /// The machine's name.
    pub host: Option<String>,
    /// CPUs of that machine: possible and online ones.
    pub cpus: Option<(u32, u32)>,
}

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// The first followed thread; `None` if the trace is about everything.
    pub root: Option<Tid>,
    /// Further notes, as full sentences.
    pub notes: Vec<String>,
}

/// Longest accepted trace, ns: 13 days. Sums over 16,384 threads that wait all the time fit 64
/// bits.
const LONGEST_TRACE_NS: u64 = 1 << 50;

/// The time of the first event; later ones must be near it.
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

/// Bytes inspected to recognise a format.
const RECOGNISED: u64 = 4096;

impl<R: Read + Seek> Import<R> {
    /// Recognises a file by its content.
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

    /// Facts from the beginning.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        match &self.kind {
            Kind::PerfData(file) => file.facts(),
            Kind::Ftrace(text) => text.facts(),
        }
    }

    /// Reads the file to its end. `sink` gets the events in time order, except those that are out
    /// of order in the file itself.
    ///
    /// # Errors
    /// [`ImportError`] if the file is damaged, or has nothing of `whom`.
    pub fn read(
        self,
        whom: TraceSubject,
        sink: &mut dyn FnMut(&[Event]),
    ) -> Result<Imported, ImportError> {
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
