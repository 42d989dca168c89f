//! `--export`: every event of a trace to files, as it comes.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use anyhow::{Context, bail};

use pinwise_machine::Listener;
use pinwise_record::TraceRecord;
use pinwise_report::{TraceCsv, TracePerfetto};
use pinwise_sched::Event;

/// Files that events go to. What goes wrong with one is kept until the end: a
/// command that runs is not ended by a full disk.
#[derive(Debug, Default)]
pub(super) struct Sinks {
    sinks: Vec<Sink>,
}

#[derive(Debug)]
struct Sink {
    path: String,
    writer: Writer,
    failed: Option<io::Error>,
}

#[derive(Debug)]
enum Writer {
    Perfetto(Box<TracePerfetto<BufWriter<File>>>),
    Csv(Box<TraceCsv<BufWriter<File>>>),
}

/// Bytes held back for a file: events come at a million a second.
const BUFFER: usize = 1 << 18;

impl Sinks {
    /// Opens the files that `--export` names: `perfetto` or `csv`, perhaps
    /// with `:FILE`.
    ///
    /// # Errors
    /// A format that is none, a file named twice or that cannot be written.
    pub(super) fn open(exports: &[String]) -> anyhow::Result<Self> {
        let mut sinks: Vec<Sink> = Vec::new();
        for export in exports {
            let sink = Sink::open(export, &sinks)?;
            sinks.push(sink);
        }
        Ok(Self { sinks })
    }

    pub(super) fn take(&mut self, events: &[Event]) {
        for sink in self.sinks.iter_mut().filter(|s| s.failed.is_none()) {
            sink.failed = match &mut sink.writer {
                Writer::Perfetto(writer) => writer.write(events).err(),
                Writer::Csv(writer) => writer.write(events).err(),
            };
        }
    }

    /// Writes what is left, the record's findings among it, and closes the
    /// files.
    ///
    /// # Errors
    /// The first thing that went wrong with a file, now or before.
    pub(super) fn finish(self, record: Option<&TraceRecord>) -> anyhow::Result<()> {
        let mut result = Ok(());
        for sink in self.sinks {
            let Sink {
                path,
                writer,
                failed,
            } = sink;
            let findings = record.into_iter().flat_map(|record| &record.findings);
            let sentences = findings.map(|finding| finding.sentence.as_str());
            let finished = match (failed, writer) {
                (Some(error), _) => Err(error),
                (None, Writer::Perfetto(writer)) => writer.finish(sentences),
                (None, Writer::Csv(writer)) => writer.finish(),
            };
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
}

impl Sink {
    fn open(export: &str, others: &[Self]) -> anyhow::Result<Self> {
        let (format, path) = match export.split_once(':') {
            Some((format, path)) => (format, Some(path)),
            None => (export, None),
        };
        let usual = match format {
            "perfetto" => "pinwise.pftrace",
            "csv" => "pinwise.csv",
            _ => bail!("--export {export}: there are perfetto and csv, each with :FILE or without"),
        };
        let path = path.unwrap_or(usual).to_owned();
        if ["", "-"].contains(&path.as_str()) {
            bail!("--export {export}: a file is needed; standard output has the record");
        }
        if others.iter().any(|other| other.path == path) {
            bail!("--export {export}: {path} is written already");
        }
        let file = create(Path::new(&path)).with_context(|| format!("--export {export}"))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        let writer = match format {
            "csv" => Writer::Csv(Box::new(
                TraceCsv::new(file).with_context(|| format!("--export {export}"))?,
            )),
            _ => Writer::Perfetto(Box::new(TracePerfetto::new(file))),
        };
        Ok(Self {
            path,
            writer,
            failed: None,
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
