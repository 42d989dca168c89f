//! `history` and `show`: what was stored.

use std::path::Path;

use anyhow::bail;
use serde_json::json;

use super::args::{Format, Global, HistoryArgs, Narrowing, ShowArgs};
use super::files::write_bytes;
use super::named::Named;
use super::opening::listed_store;
use super::terminal::Terminal;
use super::{Exit, export, report};
use pinwise_format::count;
use pinwise_record::{GateRecord, Kind, NOT_ENDED, SchemaName, Summary};
use pinwise_report::{Line, page};
use pinwise_store::{Filter, Listed, Store, StoreError};
use pinwise_study::gate;

/// Benchmarks that are named where one is not known.
const MOST_NAMES: usize = 8;

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
    let is_it = |known: &Kind| {
        let schema = known.schema();
        let name = SchemaName::parse(schema).map(|schema| schema.name);
        schema == kind || name == Some(kind) || known.name() == kind
    };
    if !Kind::ALL.iter().any(is_it) {
        bail!(
            "--kind '{kind}': no such kind ({})",
            Kind::ALL.map(Kind::name).join(", ")
        );
    }
    Ok(())
}

pub(super) fn history(
    global: &Global,
    args: &HistoryArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if let Some(benchmark) = &args.question {
        return over_commits(global, args, benchmark, terminal);
    }
    let filter = Filter {
        text: args.text.clone(),
        limit: Some(args.limit),
        ..filter(&args.narrowing)?
    };
    let found = listed_store(global)?.find(&filter)?;
    if terminal.is_json() {
        let lines = found.lines.iter();
        let records: Vec<_> = lines
            .map(|line| page::Line::new(&line.entry, &line.summary))
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
        terminal.print("No matching records.\n")?;
        return Ok(Exit::Done);
    }
    terminal.print(&pinwise_report::history(&lines))?;
    if found.total > lines.len() {
        terminal.note(&format!(
            "Shown: the newest {} of {}; --limit shows more.",
            lines.len(),
            count(found.total, "record")
        ));
    }
    Ok(Exit::Done)
}

/// The gates of a benchmark, chained.
fn over_commits(
    global: &Global,
    args: &HistoryArgs,
    benchmark: &str,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let narrowed = Filter {
        schema: Some(Kind::Gate.name().to_owned()),
        ..filter(&args.narrowing)?
    };
    let (gates, unreadable) = gates(&listed_store(global)?, &narrowed)?;
    if unreadable > 0 {
        terminal.warn(&format!("{} cannot be read", count(unreadable, "gate")));
    }
    let history = gate::history(&gates, benchmark);
    if history.is_none() {
        check_is_known(&gates, benchmark)?;
    }
    match history {
        history if terminal.is_json() => terminal.print_json(&serde_json::to_value(&history)?)?,
        Some(history) => {
            terminal.print(&pinwise_report::gate_history(&history, terminal.palette()))?;
        }
        None => {
            terminal.print("No gate of two commits has figures of this benchmark yet.\n")?;
        }
    }
    Ok(Exit::Done)
}

/// The gates that a filter lets through, and how many of them cannot be read.
fn gates(store: &Store, filter: &Filter) -> Result<(Vec<GateRecord>, usize), StoreError> {
    let mut gates = Vec::new();
    let mut unreadable = 0;
    store.each_body(filter, |_, body| match serde_json::from_str(body) {
        Ok(gate) => gates.push(gate),
        Err(_) => unreadable += 1,
    })?;
    Ok((gates, unreadable))
}

/// The gates of a benchmark, chained, as JSON for the local site.
pub(super) fn chained(
    store: &Store,
    filter: &Filter,
    benchmark: &str,
) -> Result<String, StoreError> {
    let (gates, _) = gates(store, filter)?;
    let history = gate::history(&gates, benchmark);
    Ok(json!(history).to_string())
}

/// A benchmark that no gate has is a mistake.
fn check_is_known(gates: &[GateRecord], benchmark: &str) -> anyhow::Result<()> {
    let benchmarks = gates.iter().flat_map(|gate| &gate.benchmarks);
    let mut names: Vec<&str> = benchmarks.map(|known| known.name.as_str()).collect();
    if names.contains(&benchmark) {
        return Ok(());
    }
    names.sort_unstable();
    names.dedup();
    names.truncate(MOST_NAMES);
    let hint = match names.as_slice() {
        [] => "no gate is stored (pinwise gate makes them)".to_owned(),
        names => format!("no gate has such a benchmark ({})", names.join(", ")),
    };
    bail!("--question '{benchmark}': {hint}")
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
            NOT_ENDED
        },
        tags: &listed.summary.tags,
    }
}

pub(super) fn show(global: &Global, args: &ShowArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let format = terminal.format();
    let file = args
        .output
        .as_deref()
        .filter(|path| *path != Path::new("-"));
    if format == Format::Html && args.output.is_none() && terminal.is_read_by_people() {
        bail!("--format html is not for a terminal: name a file with -o FILE");
    }
    if format == Format::Html {
        let page = report::of_stored(global, &args.id)?;
        return written(file, page.as_bytes(), terminal);
    }
    let named = Named::open(global, &args.id)?;
    let id = &named.entry.id;
    let bytes = match (format, &named.record) {
        (Format::Json, _) => format!("{}\n", named.body.trim_end()).into_bytes(),
        (Format::Text, Ok(record)) if file.is_none() => {
            terminal.print(&pinwise_report::text(record, terminal.palette()))?;
            return Ok(Exit::Done);
        }
        (Format::Text, Err(reason)) => {
            let text = pinwise_report::partly(&named.entry, &Summary::of(&named.body));
            terminal.warn(&format!("{id} is only partly shown: {reason}"));
            if file.is_none() {
                terminal.print(&text)?;
                return Ok(Exit::Done);
            }
            text.into_bytes()
        }
        (_, Ok(record)) => export::in_form(format, record, id)?,
        (_, Err(reason)) => bail!("{id}: {reason}"),
    };
    written(file, &bytes, terminal)
}

fn written(file: Option<&Path>, bytes: &[u8], terminal: &Terminal) -> anyhow::Result<Exit> {
    match file {
        Some(path) => write_bytes(path, bytes)?,
        None => terminal.print_bytes(bytes)?,
    }
    Ok(Exit::Done)
}
