//! Reads the text of ftrace: `trace` and `trace_pipe` of tracefs, with and without the columns for
//! flags and processes, in the latency format, and the output of `trace-cmd report` and `perf
//! script`.

mod columns;
mod fields;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::event_builder::{EventBuilder, NO_SWITCHES, ReadOptions};
use super::prefix::Prefix;
use super::raw_event::{RawEvent, RawKind};
use super::{Facts, FirstTime, ImportError, Imported, TraceSubject};
use crate::Event;

use columns::Columns;

/// Longest line that is read; the kernel's fit in a page.
const MAX_LINE_BYTES: usize = 1 << 16;

/// Lines inspected at the start to learn what the text contains.
const MAX_INSPECTED: usize = 1 << 16;

/// A text whose first lines were inspected.
#[derive(Debug)]
pub(super) struct Ftrace<R> {
    reader: BufReader<R>,
    prefix: Prefix,
    facts: Facts,
}

/// Could this be the start of such a text?
pub(super) fn looks_like(begin: &[u8]) -> bool {
    if begin.contains(&0) {
        return false;
    }
    begin.split(|byte| *byte == b'\n').any(|line| {
        let heads = [&b"# tracer:"[..], b"cpus="];
        heads.into_iter().any(|head| line.starts_with(head))
            || parse_loss(line).is_some()
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
                    if columns::is_from_perf_script(&lines.line) {
                        format = "perf script";
                    }
                    prefix.add(&raw);
                }
                // `read` will report the error.
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
        subject: TraceSubject,
        sink: &mut dyn FnMut(&[Event]),
    ) -> Result<Imported, ImportError> {
        let options = ReadOptions {
            subject,
            has_wakeups: self.prefix.has_wakeups(),
            has_last_switch: true,
            has_ends: true,
            starts_command: false,
        };
        let mut builder = EventBuilder::new(options, sink);
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
            builder.check_limits()?;
        }
        if let Some(error) = lines
            .first_error
            .take_if(|_| lines.unreadable >= lines.events)
        {
            return Err(error);
        }
        if lines.events == 0 {
            return Err(ImportError::NothingToRead(NO_SWITCHES.to_owned()));
        }
        builder.finish(lines.notes(), lines.unreadable_switches)
    }
}

/// Reads events line by line.
struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
    /// Records lost on a CPU before its next event.
    lost: HashMap<u32, u64>,
    /// Lines that were read as events.
    events: u64,
    /// Lines that are not events, and the number of the first one.
    other_lines: u64,
    first_other_line: u64,
    /// Events with an unreadable field, which are skipped: a few of them are no reason to refuse a
    /// trace.
    unreadable: u64,
    unreadable_switches: u64,
    first_error: Option<ImportError>,
    /// The last line is incomplete.
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
            other_lines: 0,
            first_other_line: 0,
            unreadable: 0,
            unreadable_switches: 0,
            first_error: None,
            is_cut: false,
            first_time: FirstTime::default(),
        }
    }

    /// Reads the next event.
    fn next(&mut self) -> Result<Option<RawEvent>, ImportError> {
        while self.read_line()? {
            let is_whole = self.line.ends_with(b"\n");
            let line = self.line.trim_ascii_end();
            if has_no_event(line) {
                continue;
            }
            if let Some((cpu, records)) = parse_loss(line) {
                let sum = self.lost.entry(cpu).or_default();
                *sum = sum.saturating_add(records);
                continue;
            }
            match parse_event(line) {
                Ok(Some(raw)) => {
                    let checked = self.first_time.check(raw.time_ns);
                    checked.map_err(|what| ImportError::wrong_line(self.number, what))?;
                    self.events += 1;
                    return Ok(Some(raw));
                }
                Ok(None) => {
                    self.other_lines += 1;
                    if self.first_other_line == 0 {
                        self.first_other_line = self.number;
                    }
                }
                // The writer was stopped in the middle of a line.
                Err(_) if !is_whole => self.is_cut = true,
                Err(what) => {
                    self.unreadable += 1;
                    self.first_error
                        .get_or_insert_with(|| ImportError::wrong_line(self.number, what));
                    // Only switches say which thread runs: without one that is unknown.
                    if let Ok(Some(columns)) = Columns::parse(line)
                        && columns.event == b"sched_switch"
                    {
                        *self.lost.entry(columns.cpu).or_default() += 1;
                        self.unreadable_switches += 1;
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
            return Err(ImportError::wrong_line(self.number, what));
        }
        Ok(read > 0)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_cut {
            notes.push("The file ends in the middle of a line.".to_owned());
        }
        if let Some(first) = &self.first_error {
            notes.push(format!(
                "Events lost to fields that cannot be read: {}; the first: {first}.",
                self.unreadable
            ));
        }
        if self.other_lines > 0 {
            notes.push(format!(
                "{} skipped; the first is line {}.",
                match self.other_lines {
                    1 => "1 line is not an event and was".to_owned(),
                    odd => format!("{odd} lines are not events and were"),
                },
                self.first_other_line
            ));
        }
        notes
    }
}

/// Parses a line; `None` if it is not an event. The error is a clause that names the field.
fn parse_event(line: &[u8]) -> Result<Option<RawEvent>, String> {
    let Some(columns) = Columns::parse(line)? else {
        return Ok(None);
    };
    let what = fields::parse(columns.event, columns.arguments)
        .map_err(|what| format!("{}: {what}", String::from_utf8_lossy(columns.event)))?;
    Ok(Some(RawEvent {
        time_ns: columns.time_ns,
        cpu: columns.cpu,
        current: columns.process.map(|process| (columns.thread, process)),
        what,
    }))
}

/// Is this a line of the format that is no event?
fn has_no_event(line: &[u8]) -> bool {
    // `perf script` prints call chains below an event, each caller behind a tab.
    if line.starts_with(b"\t") {
        return true;
    }
    let text = line.trim_ascii_start();
    let is_empty_cpu = text.starts_with(b"CPU ") && text.ends_with(b" is empty");
    let heads = [&b"#"[..], b"=>", b"<stack trace>", b"cpus=", b"version ="];
    text.is_empty() || is_empty_cpu || heads.iter().any(|head| text.starts_with(head))
}

/// Parses `CPU:1 [LOST 23 EVENTS]`, or from trace-cmd `CPU:1 [23 EVENTS DROPPED]`, to the CPU and
/// the number of events, 1 if unknown.
fn parse_loss(line: &[u8]) -> Option<(u32, u64)> {
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
