//! `history` and `show`: what was stored.

use anyhow::{Context, bail};
use serde_json::json;

use super::args::{Format, Global, HistoryArgs, Narrowing, ShowArgs};
use super::terminal::Terminal;
use super::{Exit, location, open_store_to_read, spool};
use crate::record::{
    BENCH_SCHEMA, Bench, FLEET_NODE_SCHEMA, FLEET_REPORT_SCHEMA, FLEET_SCHEMA, FleetNode,
    FleetRecord, FleetReport, PROFILE_SCHEMA, ProfileRecord, REPRODUCTION_SCHEMA, Reproduction,
    SCHEMAS, SEARCH_SCHEMA, SPIN_ATTACH_SCHEMA, SPIN_PAUSE_SCHEMA, SPIN_REPLAY_SCHEMA, SchemaName,
    SearchRecord, SpinAttachRecord, SpinPauseRecord, SpinReplayRecord, TOPOLOGY_SCHEMA,
    TRACE_SCHEMA, TraceRecord,
};
use crate::report::{self, Line, page};
use crate::store::{Filter, Listed, Store};

/// Why there is no store to be read.
const NOTHING: &str = "--store none: there is nothing to read";

/// The store, which these commands cannot do without, for reading.
pub(super) fn needed_store(global: &Global) -> anyhow::Result<Store> {
    open_store_to_read(global)?.with_context(|| NOTHING)
}

/// The same, to change what is in it.
pub(super) fn changed_store(global: &Global) -> anyhow::Result<Store> {
    let location = location(global)?;
    let spool = spool(&location, Terminal::new(global))?;
    Store::open_to_change(&location, &spool)?.with_context(|| NOTHING)
}

/// The filter that options stand for.
pub(super) fn filter(narrowing: &Narrowing) -> anyhow::Result<Filter> {
    if let Some(kind) = &narrowing.kind {
        check_kind(kind)?;
    }
    Ok(Filter {
        host: narrowing.host.clone(),
        schema: narrowing.kind.clone(),
        tag: narrowing.tag.clone(),
        ..Filter::default()
    })
}

fn check_kind(kind: &str) -> anyhow::Result<()> {
    let kinds = || {
        SCHEMAS
            .into_iter()
            .filter_map(SchemaName::parse)
            .map(|s| s.name)
    };
    let short = |name: &'static str| name.strip_prefix("pinwise.").unwrap_or(name);
    let is_known =
        SCHEMAS.contains(&kind) || kinds().any(|name| name == kind || short(name) == kind);
    if !is_known {
        let known: Vec<&str> = kinds().map(short).collect();
        bail!(
            "--kind '{kind}': no record is of that kind ({})",
            known.join(", ")
        );
    }
    Ok(())
}

pub(super) fn history(
    global: &Global,
    args: &HistoryArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let filter = Filter {
        text: args.text.clone(),
        limit: Some(args.limit),
        ..filter(&args.narrowing)?
    };
    let found = needed_store(global)?.find(&filter)?;
    if terminal.is_json() {
        let lines = found.lines.iter();
        let records: Vec<_> = lines
            .map(|line| page::Line::new(&line.entry, &line.outline))
            .collect();
        terminal.print_json(&json!({ "records": records, "total": found.total }))?;
        return Ok(Exit::Done);
    }
    let lines: Vec<Line<'_>> = found.lines.iter().map(line).collect();
    let is_narrowed = filter.text.is_some()
        || filter.host.is_some()
        || filter.schema.is_some()
        || filter.tag.is_some();
    if lines.is_empty() && is_narrowed {
        terminal.print("No record fits.\n")?;
        return Ok(Exit::Done);
    }
    terminal.print(&report::history(&lines))?;
    if found.total > lines.len() {
        terminal.note(&format!(
            "These are the newest {} of {} records; --limit shows more.",
            lines.len(),
            found.total
        ));
    }
    Ok(Exit::Done)
}

/// A record as lists for people show it.
pub(super) fn line(listed: &Listed) -> Line<'_> {
    let entry = &listed.entry;
    Line {
        id: &entry.id,
        host: &entry.host,
        title: &entry.title,
        verdict: if entry.is_complete {
            &entry.verdict
        } else {
            "cut off"
        },
        tags: &listed.outline.tags,
    }
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
    if stored.is_of(FLEET_SCHEMA) {
        let record: FleetRecord = stored.kept(FLEET_SCHEMA)?;
        return print(&record, terminal, |r| report::fleet_plan(r, palette));
    }
    if stored.is_of(FLEET_NODE_SCHEMA) {
        let record: FleetNode = stored.kept(FLEET_NODE_SCHEMA)?;
        return print(&record, terminal, |r| report::fleet_node(r, palette));
    }
    if stored.is_of(FLEET_REPORT_SCHEMA) {
        let record: FleetReport = stored.kept(FLEET_REPORT_SCHEMA)?;
        return print(&record, terminal, |r| report::fleet_report(r, palette));
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
