//! `top --once`: prints one frame.

use std::time::Duration;

use super::{Watch, WatchMode, pinning, watch};
use crate::cli::Exit;
use crate::cli::terminal::{Terminal, read_variable};
use pinwise_machine::{Listener, Tracer};
use pinwise_record::TopRecord;
use pinwise_report::top::{View, lay_out_still_frame, rows_to_text};
use pinwise_sched::live::Live;
use pinwise_sched::{Event, Tier};

/// The most threads in a frame as text.
const MAX_TEXT_THREADS: usize = 20;
/// The most threads in a frame as JSON.
const MAX_JSON_THREADS: usize = 1000;
/// The smallest and largest width in columns.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=500;

struct FrameListener {
    live: Live,
    mode: WatchMode,
    /// The latest round, for a trace whose end is unknown.
    last_ns: u64,
}

impl Listener for FrameListener {
    fn events(&mut self, events: &[Event]) {
        self.live.add_events(events);
    }

    fn round(&mut self, now_ns: u64) -> bool {
        self.last_ns = now_ns;
        true
    }
}

pub(super) fn print(
    machine: &mut dyn Tracer,
    tiers: &[Option<Tier>],
    watched: &Watch,
    view: &View,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let limit = Some(watched.interval.max(Duration::from_millis(1)));
    let mut once = FrameListener {
        live: watched.new_live(None),
        mode: WatchMode::default(),
        last_ns: 0,
    };
    let order = watched.trace_order(limit);
    let traced = watch(machine, tiers, order, &mut once, |once, mode| {
        once.live = watched.new_live(mode.tier);
        once.mode = mode;
    })?;
    let now_ns = traced.to_ns.max(once.last_ns);
    let mut record = watched.record(&mut once.live, once.mode, now_ns);
    record.notes = traced.notes;
    if watched.is_local {
        pinning::add_settings(&mut record, view);
    }
    let record = select_threads(record, view);
    if terminal.is_json() {
        terminal.print_json(&record)?;
    } else {
        let rows = lay_out_still_frame(&record, view, width(terminal), MAX_TEXT_THREADS);
        terminal.print(&rows_to_text(&rows, terminal.palette()))?;
    }
    Ok(Exit::Done)
}

/// Keeps the threads that match the filter, sorted, up to the maximum; the answer is about all that
/// match.
fn select_threads(mut record: TopRecord, view: &View) -> TopRecord {
    let threads = view.arrange_threads(&record);
    let left_out = threads.len().saturating_sub(MAX_JSON_THREADS) as u64;
    record.threads = threads.into_iter().cloned().collect();
    record.conclude();
    record.threads.truncate(MAX_JSON_THREADS);
    record.threads_left_out = left_out;
    record
}

/// The width of the terminal, else `COLUMNS`, else 80.
fn width(terminal: &Terminal) -> usize {
    let from_variable = || read_variable("COLUMNS")?.parse().ok();
    let width = terminal.columns().or_else(from_variable).unwrap_or(80);
    width.clamp(*WIDTHS.start(), *WIDTHS.end())
}
