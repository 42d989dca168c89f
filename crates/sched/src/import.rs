//! Imports traces that other tools made: `perf.data`, and the text of ftrace.
//!
//! Input is untrusted: every length is checked, names can contain any byte, and memory is limited
//! by threads, CPUs and perf's sorting window. If a file ends early, what was read counts and a
//! note says so; if it contradicts itself, the error names the byte or the line. Offsets of
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

/// The threads that an imported trace is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceSubject {
    /// For `perf record`, the command that it started and its descendants; everything if none was
    /// started.
    Default,
    /// This process and what it starts.
    Process(Tid),
}

/// A file of a known format whose start was read.
#[derive(Debug)]
pub struct Import<R> {
    kind: Kind<R>,
}

#[derive(Debug)]
enum Kind<R> {
    PerfData(Box<PerfData<R>>),
    Ftrace(Ftrace<R>),
}

/// Facts from the start of a file.
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
    /// Numbers of that machine's possible and online CPUs.
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

/// Longest accepted trace, ns: 13 days. The sum over 16,384 threads that wait all the time then
/// fits 64 bits.
const MAX_TRACE_NS: u64 = 1 << 50;

/// The time of the first event, ns; later ones must be near it.
#[derive(Debug, Default)]
struct FirstTime(Option<u64>);

impl FirstTime {
    /// Checks the time of an event. The error is a clause about the time.
    fn check(&mut self, time_ns: u64) -> Result<(), String> {
        let first_ns = *self.0.get_or_insert(time_ns);
        if time_ns.abs_diff(first_ns) <= MAX_TRACE_NS {
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
const FORMAT_BYTES: u64 = 4096;

impl<R: Read + Seek> Import<R> {
    /// Recognises a file by its content.
    ///
    /// # Errors
    /// [`ImportError`]: what it is instead, or what is wrong with it.
    pub fn open(mut reader: R) -> Result<Self, ImportError> {
        let mut start = Vec::new();
        reader.seek(SeekFrom::Start(0))?;
        reader.by_ref().take(FORMAT_BYTES).read_to_end(&mut start)?;
        reader.seek(SeekFrom::Start(0))?;
        let kind = match recognise_format(&start)? {
            Format::PerfData => Kind::PerfData(Box::new(PerfData::open(reader)?)),
            Format::Ftrace => Kind::Ftrace(Ftrace::open(BufReader::new(reader))?),
        };
        Ok(Self { kind })
    }

    /// Facts from the start of the file.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        match &self.kind {
            Kind::PerfData(file) => file.facts(),
            Kind::Ftrace(text) => text.facts(),
        }
    }

    /// Reads the file to its end. `sink` gets the events in time order, as far as the file permits.
    ///
    /// # Errors
    /// [`ImportError`] if the file is damaged, or contains nothing of `subject`.
    pub fn read(
        self,
        subject: TraceSubject,
        sink: &mut dyn FnMut(&[Event]),
    ) -> Result<Imported, ImportError> {
        match self.kind {
            Kind::PerfData(file) => file.read(subject, sink),
            Kind::Ftrace(text) => text.read(subject, sink),
        }
    }
}

enum Format {
    PerfData,
    Ftrace,
}

fn recognise_format(start: &[u8]) -> Result<Format, ImportError> {
    match start {
        [] => Err(ImportError::Empty),
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..]
        | [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => Ok(Format::PerfData),
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
        _ if ftrace::looks_like(start) => Ok(Format::Ftrace),
        _ => Err(ImportError::unknown(start)),
    }
}

#[cfg(test)]
mod tests;
