//! Writes events as CSV, a line each.

use std::io::{self, Write};

use super::Names;
use crate::visible;
use pinwise_record::SliceEnd;
use pinwise_sched::{Event, EventKind};

/// The columns:
///
/// - `time_ns`: since the first event,
/// - `cpu`: the CPU of the event; meaningless for `known`, `name`, `mask`, `follow`,
/// - `event`: `switch`, `in`, `out`, `wake`, `fork`, `exit`, `known`, `follow`,
///   `name`, `mask`, `lost`, `sample`, `usage`,
/// - `thread`: its id; for a switch the thread that starts to run, for a fork the child,
/// - `name`: the thread's name at that moment,
/// - `detail`: the rest as `key=value` with spaces between.
const HEADER: [&str; 6] = ["time_ns", "cpu", "event", "thread", "name", "detail"];

/// Writes events as CSV.
#[derive(Debug)]
pub struct TraceCsv<W: Write> {
    writer: csv::Writer<W>,
    names: Names,
    first_ns: Option<u64>,
}

impl<W: Write> TraceCsv<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn new(writer: W) -> io::Result<Self> {
        let mut writer = csv::Writer::from_writer(writer);
        writer.write_record(HEADER)?;
        Ok(Self {
            writer,
            names: Names::default(),
            first_ns: None,
        })
    }

    /// Writes events.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&mut self, events: &[Event]) -> io::Result<()> {
        for event in events {
            self.names.remember(event);
            let first_ns = *self.first_ns.get_or_insert(event.time_ns);
            // A late event cannot be earlier than the first one.
            let time_ns = event.time_ns.saturating_sub(first_ns);
            let line = Line::from_event(event);
            let thread = line.thread.map(|thread| thread.to_string());
            let name = line.thread.map_or("", |thread| self.names.name(thread));
            self.writer.write_record([
                &time_ns.to_string(),
                &event.cpu.to_string(),
                line.event,
                &thread.unwrap_or_default(),
                &neutralise_name(name),
                &line.detail,
            ])?;
        }
        Ok(())
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

struct Line {
    event: &'static str,
    thread: Option<i32>,
    detail: String,
}

impl Line {
    fn from_event(event: &Event) -> Self {
        let line = |event, thread, detail| Self {
            event,
            thread: Some(thread),
            detail,
        };
        match &event.what {
            EventKind::Switch { prev, left, next } => line(
                "switch",
                *next,
                format!("prev={prev} left={}", SliceEnd::from(*left)),
            ),
            EventKind::In { thread } => line("in", *thread, String::new()),
            EventKind::Out { thread, left } => {
                line("out", *thread, format!("left={}", SliceEnd::from(*left)))
            }
            EventKind::Wake { thread, target } => line("wake", *thread, format!("target={target}")),
            EventKind::Fork {
                parent,
                child,
                process,
            } => line("fork", *child, format!("parent={parent} process={process}")),
            EventKind::Exit { thread } => line("exit", *thread, String::new()),
            EventKind::Known { thread, process } => {
                line("known", *thread, format!("process={process}"))
            }
            EventKind::Follow { thread } => line("follow", *thread, String::new()),
            EventKind::Name { thread, .. } => line("name", *thread, String::new()),
            EventKind::Mask { thread, cpus } => line("mask", *thread, format!("cpus={cpus}")),
            EventKind::Lost { records } => {
                Self::without_thread("lost", format!("records={records}"))
            }
            EventKind::Sample(sample) => line("sample", sample.thread, format_sample(sample)),
            EventKind::Usage { busy_ns } => {
                Self::without_thread("usage", format!("busy_ns={busy_ns}"))
            }
        }
    }

    const fn without_thread(event: &'static str, detail: String) -> Self {
        Self {
            event,
            thread: None,
            detail,
        }
    }
}

fn format_sample(sample: &pinwise_sched::Sample) -> String {
    let mut detail = format!("runnable={} run_ns={}", sample.is_runnable, sample.run_ns);
    for (key, value) in [
        ("wait_ns", sample.wait_ns),
        ("migrations", sample.migrations),
        ("voluntary", sample.voluntary),
        ("involuntary", sample.involuntary),
    ] {
        if let Some(value) = value {
            detail.push_str(&format!(" {key}={value}"));
        }
    }
    detail
}

/// Makes a name harmless to terminals and spreadsheets: control characters become visible, and what
/// would begin a formula gets a leading apostrophe.
pub(crate) fn neutralise_name(name: &str) -> String {
    let shown = visible(name);
    match shown.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{shown}"),
        false => shown,
    }
}
