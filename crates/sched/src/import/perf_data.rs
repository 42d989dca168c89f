//! Reads `perf.data`, as perf writes it to files and to pipes.
//!
//! The layout is that of the kernel's `tools/perf/Documentation/perf.data-file-format.txt` and
//! `include/uapi/linux/perf_event.h`. We have our own reader because files may be damaged: existing
//! crates allocate whatever length the file claims, and need the end of the file to read its start.

mod attributes;
mod decode;
mod header;
mod records;
mod rounds;
mod unpack;

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::event_builder::{EventBuilder, NO_SWITCHES, ReadOptions};
use super::prefix::Prefix;
use super::{Facts, ImportError, Imported, TraceSubject};
use crate::Event;

use decode::Decoder;
use header::Header;
use records::{NextRecord, Records};
use rounds::RecordSorter;

/// Records inspected at the start to learn what the file contains.
const MAX_INSPECTED: usize = 1 << 16;

/// A file whose header and first records were read.
#[derive(Debug)]
pub(super) struct PerfData<R> {
    reader: R,
    header: Header,
    prefix: Prefix,
    facts: Facts,
}

impl<R: Read + Seek> PerfData<R> {
    pub(super) fn open(mut reader: R) -> Result<Self, ImportError> {
        let mut header = Header::read(&mut reader)?;
        let prefix = inspect_start(&mut reader, &mut header)?;
        let scope = prefix.scope(header.attributes.starts_with_command());
        let facts = Facts {
            format: "perf.data",
            scope,
            has_command: prefix.has_command() || header.attributes.starts_with_command(),
            host: header.features.host.clone(),
            cpus: header.features.cpus,
        };
        Ok(Self {
            reader,
            header,
            prefix,
            facts,
        })
    }

    pub(super) const fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(super) fn read(
        mut self,
        subject: TraceSubject,
        sink: &mut dyn FnMut(&[Event]),
    ) -> Result<Imported, ImportError> {
        let starts_command = self.header.attributes.starts_with_command();
        let mut decoder = Decoder::new(&self.header)?;
        let options = ReadOptions {
            subject,
            has_last_switch: self.facts.scope.has_all_cpus,
            has_ends: decoder.has_switch_tracepoint(),
            has_wakeups: self.prefix.has_wakeups(),
            starts_command: starts_command && !self.prefix.has_command(),
        };
        let mut builder = EventBuilder::new(options, sink);
        let mut sorter = RecordSorter::default();
        self.reader.seek(SeekFrom::Start(self.header.data.start))?;
        let mut records = Records::new(BufReader::new(&mut self.reader), &self.header);
        loop {
            match records.next(&mut decoder)? {
                NextRecord::Event(raw) => sorter.push(raw, &mut |raw| builder.add(raw)),
                NextRecord::EndOfRound => sorter.end_round(&mut |raw| builder.add(raw)),
                NextRecord::Skipped => {}
                NextRecord::EndOfFile => break,
            }
            builder.check_limits()?;
        }
        sorter.finish(&mut |raw| builder.add(raw));
        let mut notes = self.header.notes.clone();
        notes.extend(records.notes());
        notes.extend(decoder.notes());
        notes.extend(sorter.notes());
        builder.finish(notes, 0)
    }
}

/// Inspects the first records; for a pipe also reads the attributes there.
fn inspect_start<R: Read + Seek>(
    reader: &mut R,
    header: &mut Header,
) -> Result<Prefix, ImportError> {
    let mut prefix = Prefix::default();
    reader.seek(SeekFrom::Start(header.data.start))?;
    let mut records = Records::new(BufReader::new(&mut *reader), header);
    if header.is_pipe {
        records.read_preamble(header)?;
    }
    if header.attributes.is_empty() {
        return Err(ImportError::damaged(
            header.data.start,
            "the file describes no event",
        ));
    }
    let mut decoder = Decoder::new(header)?;
    if !decoder.can_see_switches() {
        return Err(ImportError::NothingToRead(NO_SWITCHES.to_owned()));
    }
    for _ in 0..MAX_INSPECTED {
        match records.next(&mut decoder) {
            Ok(NextRecord::Event(raw)) => prefix.add(&raw),
            Ok(NextRecord::EndOfRound | NextRecord::Skipped) => {}
            // `read` will report the error.
            Ok(NextRecord::EndOfFile) | Err(_) => break,
        }
    }
    Ok(prefix)
}

#[cfg(test)]
mod tests;
