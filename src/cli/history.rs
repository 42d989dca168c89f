//! `history` and `show`: what was stored.

use anyhow::bail;
use serde_json::json;

use super::args::{Format, Global, HistoryArgs, ShowArgs};
use super::terminal::Terminal;
use super::{Exit, open_store};
use crate::record::{
    BENCH_SCHEMA, Bench, PROFILE_SCHEMA, ProfileRecord, REPRODUCTION_SCHEMA, Reproduction,
    SEARCH_SCHEMA, SPIN_ATTACH_SCHEMA, SPIN_PAUSE_SCHEMA, SPIN_REPLAY_SCHEMA, SearchRecord,
    SpinAttachRecord, SpinPauseRecord, SpinReplayRecord, TOPOLOGY_SCHEMA, TRACE_SCHEMA,
    TraceRecord,
};
use crate::report::{self, Line};
use crate::store::Store;

/// The store, which these commands cannot do without.
pub(super) fn needed_store(global: &Global) -> anyhow::Result<Store> {
    open_store(global)?.ok_or_else(|| anyhow::anyhow!("--store none: there is nothing to read"))
}

pub(super) fn history(
    global: &Global,
    args: &HistoryArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let entries = needed_store(global)?.list(args.limit)?;
    if terminal.is_json() {
        let records: Vec<serde_json::Value> = entries
            .iter()
            .map(|e| {
                json!({
                    "id": e.id, "schema": e.schema, "time": e.time, "host": e.host,
                    "title": e.title, "verdict": e.verdict, "complete": e.is_complete,
                })
            })
            .collect();
        terminal.print_json(&json!({ "records": records }))?;
        return Ok(Exit::Done);
    }
    let lines: Vec<Line<'_>> = entries
        .iter()
        .map(|e| Line {
            id: &e.id,
            host: &e.host,
            title: &e.title,
            verdict: if e.is_complete { &e.verdict } else { "cut off" },
        })
        .collect();
    terminal.print(&report::history(&lines))?;
    Ok(Exit::Done)
}

pub(super) fn show(global: &Global, args: &ShowArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let stored = needed_store(global)?.load(&args.id)?;
    if stored.is_of(TOPOLOGY_SCHEMA) {
        let record = stored.topology()?;
        super::topology::show(&record.to_topology(), &record, terminal)?;
        return Ok(Exit::Done);
    }
    if stored.is_of(PROFILE_SCHEMA) {
        let record: ProfileRecord = stored.kept(PROFILE_SCHEMA)?;
        return super::profile::show(&record, terminal);
    }
    if stored.is_of(SEARCH_SCHEMA) {
        let record: SearchRecord = stored.kept(SEARCH_SCHEMA)?;
        return super::search::show(&record, terminal);
    }
    if matches!(terminal.format(), Format::Svg | Format::Xml) {
        bail!(
            "--format svg and xml draw machines; {} is an experiment (text or json)",
            stored.entry.id
        );
    }
    let palette = terminal.palette();
    if stored.is_of(BENCH_SCHEMA) {
        let record: Bench = stored.kept(BENCH_SCHEMA)?;
        return print(&record, terminal, |r| report::bench(r, palette));
    }
    if stored.is_of(REPRODUCTION_SCHEMA) {
        let record: Reproduction = stored.kept(REPRODUCTION_SCHEMA)?;
        return print(&record, terminal, |r| report::reproduction(r, palette));
    }
    if stored.is_of(SPIN_ATTACH_SCHEMA) {
        let record: SpinAttachRecord = stored.kept(SPIN_ATTACH_SCHEMA)?;
        return print(&record, terminal, |r| report::spin_attach(r, palette));
    }
    if stored.is_of(TRACE_SCHEMA) {
        let record: TraceRecord = stored.kept(TRACE_SCHEMA)?;
        return print(&record, terminal, |r| report::trace(r, palette));
    }
    if stored.is_of(SPIN_REPLAY_SCHEMA) {
        let record: SpinReplayRecord = stored.kept(SPIN_REPLAY_SCHEMA)?;
        return print(&record, terminal, |r| report::spin_replay(r, palette));
    }
    if stored.is_of(SPIN_PAUSE_SCHEMA) {
        let record: SpinPauseRecord = stored.kept(SPIN_PAUSE_SCHEMA)?;
        super::spin::show_pause(&record, terminal)?;
        return Ok(Exit::Done);
    }
    if stored.is_of(SPIN_REPLAY_SCHEMA) {
        let record: SpinReplayRecord = stored.kept(SPIN_REPLAY_SCHEMA)?;
        return print(&record, terminal, |r| report::spin_replay(r, palette));
    }
    let record = stored.comparison()?;
    print(&record, terminal, |r| report::comparison(r, palette))
}

/// As JSON, or as text.
fn print<R: serde::Serialize>(
    record: &R,
    terminal: &Terminal,
    text: impl FnOnce(&R) -> String,
) -> anyhow::Result<Exit> {
    if terminal.is_json() {
        terminal.print_json(record)?;
    } else {
        terminal.print(&text(record))?;
    }
    Ok(Exit::Done)
}
