//! The text of ftrace: `trace` and `trace_pipe` of tracefs, with and without the columns for flags
//! and processes, in the latency format, and the output of `trace-cmd report` and `perf script`.

mod columns;
mod fields;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::event_builder::{EventBuilder, NO_SWITCHES, Reading};
use super::prefix::Prefix;
use super::raw_event::{RawEvent, RawKind};
use super::{Facts, FirstTime, ImportError, Imported, TraceSubject};
use crate::Event;

use columns::Columns;

/// Longest line that is read; the kernel's fit in a page.
const MAX_LINE_BYTES: usize = 1 << 16;

/// Lines inspected before the text is fully read.
const MAX_INSPECTED: usize = 1 << 16;

/// Text with an inspected beginning.
#[derive(Debug)]
pub(super) struct Ftrace<R> {
    reader: BufReader<R>,
    prefix: Prefix,
    facts: Facts,
}

/// Could this be the beginning of such text?
pub(super) fn looks_like(begin: &[u8]) -> bool {
    if begin.contains(&0) {
        return false;
    }
    begin.split(|byte| *byte == b'\n').any(|line| {
        let heads = [&b"# tracer:"[..], b"cpus="];
        heads.into_iter().any(|head| line.starts_with(head))
            || loss(line).is_some()
            || matches!(Columns::parse(line), Ok(Some(_)) | Err(_))
    })
}

impl<R: Read + Seek> Ftrace<R> {
    pub(super) fn open(reader: BufReader<R>) -> Result<Self, ImportError> {
        let mut prefix = Prefix::default();
        let mut lines = Lines::new(reader);
        let mut format = "ftrace";
        for _ in 0..MAX_INSPECTED {
            match lines.next() {
                Ok(Some(raw)) => {
                    if columns::are_of_perf_script(&lines.line) {
                        format = "perf script";
                    }
                    prefix.look(&raw);
                }
                // Reported by the full reading.
                Ok(None) | Err(_) => break,
            }
        }
        let mut reader = lines.reader;
        reader.seek(SeekFrom::Start(0))?;
        let facts = Facts {
            format,
            scope: prefix.scope(false),
            has_command: false,
            host: None,
            cpus: None,
        };
        Ok(Self {
            reader,
            prefix,
            facts,
        })
    }

    pub(super) const fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn read(
        self,
        whom: TraceSubject,
        sink: &mut dyn FnMut(&[Event]),
    ) -> Result<Imported, ImportError> {
        let reading = Reading {
            whom,
            has_wakeups: self.prefix.has_wakeups(),
            has_last_switch: true,
            has_ends: true,
            starts_command: false,
        };
        let mut builder = EventBuilder::new(reading, sink);
        let mut lines = Lines::new(self.reader);
        while let Some(raw) = lines.next()? {
            if let Some(records) = lines.lost.remove(&raw.cpu) {
                builder.add(&RawEvent {
                    what: RawKind::Lost { records },
                    current: None,
                    ..raw
                });
            }
            builder.add(&raw);
            builder.check()?;
        }
        if let Some(error) = lines.first_bad.take_if(|_| lines.bad >= lines.events) {
            return Err(error);
        }
        if lines.events == 0 {
            return Err(ImportError::NothingToRead(NO_SWITCHES.to_owned()));
        }
        builder.finish(lines.notes(), lines.bad_switches)
    }
}

/// Reads events line by line.
struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
    /// Records lost on a CPU before its next event.
    lost: HashMap<u32, u64>,
    /// Lines of recognised events.
    events: u64,
    odd: u64,
    first_odd: u64,
    /// Events with an unreadable field. Each is lost by itself: one odd field is no reason to
    /// refuse a trace.
    bad: u64,
    bad_switches: u64,
    first_bad: Option<ImportError>,
    is_cut: bool,
    first_time: FirstTime,
}

impl<R: BufRead> Lines<R> {
    fn new(reader: R) -> Self {
        Self {
            reader,
            line: Vec::new(),
            number: 0,
            lost: HashMap::new(),
            events: 0,
            odd: 0,
            first_odd: 0,
            bad: 0,
            bad_switches: 0,
            first_bad: None,
            is_cut: false,
            first_time: FirstTime::default(),
        }
    }

    /// The next line with content.
    fn next(&mut self) -> Result<Option<RawEvent>, ImportError> {
        while self.read_line()? {
            let is_whole = self.line.ends_with(b"\n");
            let line = self.line.trim_ascii_end();
            if is_noise(line) {
                continue;
            }
            if let Some((cpu, records)) = loss(line) {
                let sum = self.lost.entry(cpu).or_default();
                *sum = sum.saturating_add(records);
                continue;
            }
            match event(line) {
                Ok(Some(raw)) => {
                    let checked = self.first_time.check(raw.time_ns);
                    checked.map_err(|what| ImportError::line(self.number, what))?;
                    self.events += 1;
                    return Ok(Some(raw));
                }
                Ok(None) => {
                    self.odd += 1;
                    if self.first_odd == 0 {
                        self.first_odd = self.number;
                    }
                }
                // The writer was stopped in the middle of a line.
                Err(_) if !is_whole => self.is_cut = true,
                Err(what) => {
                    self.bad += 1;
                    self.first_bad
                        .get_or_insert_with(|| ImportError::line(self.number, what));
                    // Only switches say who runs: without one that is unknown.
                    if let Ok(Some(columns)) = Columns::parse(line)
                        && columns.event == b"sched_switch"
                    {
                        *self.lost.entry(columns.cpu).or_default() += 1;
                        self.bad_switches += 1;
                    }
                }
            }
        }
        Ok(None)
    }

    fn read_line(&mut self) -> Result<bool, ImportError> {
        self.line.clear();
        self.number += 1;
        let mut bounded = self.reader.by_ref().take(MAX_LINE_BYTES as u64);
        let read = bounded.read_until(b'\n', &mut self.line)?;
        if read == MAX_LINE_BYTES && !self.line.ends_with(b"\n") {
            let what = format!("it is longer than {} KiB", MAX_LINE_BYTES >> 10);
            return Err(ImportError::line(self.number, what));
        }
        Ok(read > 0)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_cut {
            notes.push("The file ends in the middle of a line.".to_owned());
        }
        if let Some(first) = &self.first_bad {
            notes.push(format!(
                "Events lost to fields that cannot be read: {}; the first: {first}.",
                self.bad
            ));
        }
        if self.odd > 0 {
            notes.push(format!(
                "{} skipped; the first is line {}.",
                match self.odd {
                    1 => "1 line is not an event and was".to_owned(),
                    odd => format!("{odd} lines are not events and were"),
                },
                self.first_odd
            ));
        }
        notes
    }
}

/// Parses one line; `None` if it is not an event. The error is a clause that names the field.
fn event(line: &[u8]) -> Result<Option<RawEvent>, String> {
    let Some(columns) = Columns::parse(line)? else {
        return Ok(None);
    };
    let what = fields::read(columns.event, columns.arguments)
        .map_err(|what| format!("{}: {what}", String::from_utf8_lossy(columns.event)))?;
    Ok(Some(RawEvent {
        time_ns: columns.time_ns,
        cpu: columns.cpu,
        current: columns.process.map(|process| (columns.thread, process)),
        what,
    }))
}

/// Lines that belong to the format without being events.
fn is_noise(line: &[u8]) -> bool {
    // `perf script` prints call chains below an event, each caller behind a tab.
    if line.starts_with(b"\t") {
        return true;
    }
    let text = line.trim_ascii_start();
    let is_empty_cpu = text.starts_with(b"CPU ") && text.ends_with(b" is empty");
    let heads = [&b"#"[..], b"=>", b"<stack trace>", b"cpus=", b"version ="];
    text.is_empty() || is_empty_cpu || heads.iter().any(|head| text.starts_with(head))
}

/// `CPU:1 [LOST 23 EVENTS]`, or from trace-cmd `CPU:1 [23 EVENTS DROPPED]`: the CPU and the number
/// of events, 1 if unknown.
fn loss(line: &[u8]) -> Option<(u32, u64)> {
    let line = std::str::from_utf8(line.get(..80).unwrap_or(line)).ok()?;
    let rest = line.trim_start().strip_prefix("CPU:")?;
    let (cpu, rest) = rest.split_once(" [")?;
    let inside = rest.strip_suffix(']')?;
    let is_loss = inside.starts_with("LOST ") || inside.ends_with("EVENTS DROPPED");
    is_loss.then_some(())?;
    let count = inside.split(' ').find_map(|word| word.parse().ok());
    Some((cpu.trim().parse().ok()?, count.unwrap_or(1)))
}

#[cfg(test)]
mod tests;
