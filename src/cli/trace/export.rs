//! `--export`: writes every event of a trace to files, as it comes.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use anyhow::{Context, bail};

use crate::cli::files::NamedFile;
use pinwise_machine::Listener;
use pinwise_record::TraceRecord;
use pinwise_report::{TraceCsv, TracePerfetto};
use pinwise_sched::Event;

/// The files that events are written to. An error is reported only at the end: a full disk must not
/// end a running command.
#[derive(Debug, Default)]
pub(super) struct Sinks {
    sinks: Vec<Sink>,
    /// Events before the first round. They are not written yet: if the command cannot be started,
    /// the old contents of the files must stay.
    held: Vec<Event>,
    has_begun: bool,
}

#[derive(Debug)]
struct Sink {
    format: Format,
    path: String,
    /// `None` until the first event: until then the file's old contents are kept.
    writer: Option<Writer>,
    failed: Option<io::Error>,
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Perfetto,
    Csv,
}

#[derive(Debug)]
enum Writer {
    Perfetto(Box<TracePerfetto<BufWriter<File>>>),
    Csv(Box<TraceCsv<BufWriter<File>>>),
}

/// Bytes of a file's buffer: there can be a million events per second.
const BUFFER_BYTES: usize = 1 << 18;
/// The most events that are held until the first round.
const MAX_HELD_EVENTS: usize = 1 << 16;

impl Sinks {
    /// Parses the values of `--export`: `perfetto` or `csv`, perhaps with `:FILE`.
    ///
    /// # Errors
    /// An unknown format, or no file.
    pub(super) fn parse(exports: &[String]) -> anyhow::Result<Self> {
        let sinks = exports.iter().map(|export| Sink::parse(export));
        Ok(Self {
            sinks: sinks.collect::<anyhow::Result<_>>()?,
            ..Self::default()
        })
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = NamedFile<'_>> {
        let sinks = self.sinks.iter();
        sinks.map(|sink| NamedFile {
            option: "--export",
            path: Path::new(&sink.path),
        })
    }

    pub(super) fn take(&mut self, events: &[Event]) {
        if self.sinks.is_empty() {
            return;
        }
        if self.has_begun {
            self.write(events);
            return;
        }
        self.held.extend_from_slice(events);
        if self.held.len() > MAX_HELD_EVENTS {
            self.begin();
        }
    }

    fn begin(&mut self) {
        self.has_begun = true;
        let held = std::mem::take(&mut self.held);
        self.write(&held);
    }

    fn write(&mut self, events: &[Event]) {
        for sink in self.sinks.iter_mut().filter(|s| s.failed.is_none()) {
            let written = match sink.open() {
                Ok(Writer::Perfetto(writer)) => writer.write(events),
                Ok(Writer::Csv(writer)) => writer.write(events),
                Err(error) => Err(error),
            };
            sink.failed = written.err();
        }
    }

    /// Writes the remaining events and the record's findings, and closes the files.
    ///
    /// # Errors
    /// The first error of a file, now or before.
    pub(super) fn finish(mut self, record: Option<&TraceRecord>) -> anyhow::Result<()> {
        self.begin();
        let mut result = Ok(());
        for mut sink in self.sinks {
            let findings = record.into_iter().flat_map(|record| &record.findings);
            let sentences = findings.map(|finding| finding.sentence.as_str());
            let opened = match sink.failed.take() {
                Some(error) => Err(error),
                None => sink.open().map(|_| ()),
            };
            let path = sink.path;
            let finished = opened.and_then(|()| match sink.writer {
                Some(Writer::Perfetto(writer)) => writer.finish(sentences),
                Some(Writer::Csv(writer)) => writer.finish(),
                None => Ok(()),
            });
            if result.is_ok() {
                result = finished.with_context(|| format!("--export {path}"));
            }
        }
        result
    }
}

impl Listener for Sinks {
    fn events(&mut self, events: &[Event]) {
        self.take(events);
    }

    fn round(&mut self, _now_ns: u64) -> bool {
        if !self.has_begun {
            self.begin();
        }
        true
    }
}

impl Sink {
    fn parse(export: &str) -> anyhow::Result<Self> {
        let (format, path) = match export.split_once(':') {
            Some((format, path)) => (format, Some(path)),
            None => (export, None),
        };
        let (format, default_path) = match format {
            "perfetto" => (Format::Perfetto, "pinwise.pftrace"),
            "csv" => (Format::Csv, "pinwise.csv"),
            _ => bail!("--export {export}: write perfetto or csv, each with or without :FILE"),
        };
        let path = path.unwrap_or(default_path).to_owned();
        if ["", "-"].contains(&path.as_str()) {
            bail!("--export {export}: a file is needed; standard output has the record");
        }
        Ok(Self {
            format,
            path,
            writer: None,
            failed: None,
        })
    }

    fn open(&mut self) -> io::Result<&mut Writer> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.create_file()?,
        };
        Ok(self.writer.insert(writer))
    }

    fn create_file(&self) -> io::Result<Writer> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, create(Path::new(&self.path))?);
        Ok(match self.format {
            Format::Csv => Writer::Csv(Box::new(TraceCsv::new(file)?)),
            Format::Perfetto => Writer::Perfetto(Box::new(TracePerfetto::new(file))),
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "cli writes what the user asked for"
)]
fn create(path: &Path) -> io::Result<File> {
    File::create(path)
}
