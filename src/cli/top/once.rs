//! `top --once`: one frame, printed.

use std::time::Duration;

use super::{Watch, WatchMode, pinning, watch};
use crate::cli::Exit;
use crate::cli::terminal::{Terminal, variable};
use pinwise_machine::{Listener, Tracer};
use pinwise_record::TopRecord;
use pinwise_report::top::{View, still_frame, text};
use pinwise_sched::live::Live;
use pinwise_sched::{Event, Tier};

/// Threads in a frame that is printed for people.
const PRINTED: usize = 20;
/// Threads in a frame that is printed for programs.
const MAX_THREADS: usize = 1000;
/// Columns that are used, whatever the terminal says.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=500;

struct Once {
    live: Live,
    way: WatchMode,
    /// The latest round, for a trace whose end is unknown.
    last_ns: u64,
}

impl Listener for Once {
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
    let mut once = Once {
        live: watched.live(None),
        way: WatchMode::default(),
        last_ns: 0,
    };
    let order = watched.order(limit);
    let traced = watch(machine, tiers, order, &mut once, |once, way| {
        once.live = watched.live(way.tier);
        once.way = way;
    })?;
    let now_ns = traced.to_ns.max(once.last_ns);
    let mut record = watched.record(&mut once.live, once.way, now_ns);
    record.notes = traced.notes;
    if watched.is_local {
        pinning::add_settings(&mut record, view);
    }
    if terminal.is_json() {
        terminal.print_json(&cut_down(record, view))?;
    } else {
        let rows = still_frame(&record, view, width(terminal), PRINTED);
        terminal.print(&text(&rows, terminal.palette()))?;
    }
    Ok(Exit::Done)
}

/// Only the threads that were requested, in order, and not too many.
fn cut_down(mut record: TopRecord, view: &View) -> TopRecord {
    let threads = view.arrange_threads(&record);
    let left_out = threads.len().saturating_sub(MAX_THREADS) as u64;
    let threads = threads.into_iter().take(MAX_THREADS).cloned().collect();
    record.threads = threads;
    record.threads_left_out = left_out;
    record
}

/// Columns of the terminal, of `COLUMNS`, or 80.
fn width(terminal: &Terminal) -> usize {
    let of_variable = || variable("COLUMNS")?.parse().ok();
    let width = terminal.columns().or_else(of_variable).unwrap_or(80);
    width.clamp(*WIDTHS.start(), *WIDTHS.end())
}
