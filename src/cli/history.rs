//! `record history` and `record show`: lists and prints stored records.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use serde_json::json;

use super::args::{Format, Global, HistoryArgs, Narrowing, ShowArgs};
use super::files::write_file;
use super::named::NamedRecord;
use super::opening::open_store_to_list;
use super::terminal::Terminal;
use super::{Exit, export, report};
use pinwise_format::{count, count_of};
use pinwise_record::{GateRecord, Kind, NOT_ENDED, SchemaName, Summary};
use pinwise_report::{Line, page};
use pinwise_store::{Filter, ListedRecord, Store, StoreError};
use pinwise_study::gate;

/// The most benchmarks that an error lists.
const MAX_NAMES: usize = 8;

/// Makes a filter from these options.
pub(super) fn to_filter(narrowing: &Narrowing) -> anyhow::Result<Filter> {
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
    let has_name = |known: &Kind| {
        let schema = known.schema();
        let name = SchemaName::parse(schema).map(|schema| schema.name);
        schema == kind || name == Some(kind) || known.name() == kind
    };
    if !Kind::ALL.iter().any(has_name) {
        bail!(
            "--kind '{kind}': no such kind ({})",
            Kind::ALL.map(Kind::name).join(", ")
        );
    }
    Ok(())
}

pub(super) fn run_history(
    global: &Global,
    args: &HistoryArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if let Some(benchmark) = &args.trend {
        return show_trend(global, args, benchmark, terminal);
    }
    let filter = Filter {
        text: args.text.clone(),
        limit: Some(args.limit),
        ..to_filter(&args.narrowing)?
    };
    let found = open_store_to_list(global)?.find(&filter)?;
    if terminal.is_json() {
        let lines = found.lines.iter();
        let records: Vec<_> = lines
            .map(|line| page::Line::new(&line.entry, &line.summary))
            .collect();
        terminal.print_json(&json!({ "records": records, "total": found.total }))?;
        return Ok(Exit::Done);
    }
    let lines: Vec<Line<'_>> = fold_parts(&found.lines, filter.tag.as_deref());
    let is_narrowed = filter.text.is_some()
        || filter.host.is_some()
        || filter.schema.is_some()
        || filter.tag.is_some();
    if lines.is_empty() && is_narrowed {
        terminal.print("No matching records.\n")?;
        return Ok(Exit::Done);
    }
    terminal.print(&pinwise_report::render_history(&lines))?;
    if found.total > found.lines.len() {
        terminal.note(&format!(
            "Showing the newest {} of {}; --limit shows more.",
            found.lines.len(),
            count(found.total, "record")
        ));
    }
    Ok(Exit::Done)
}

/// Fewer parts than this are listed one by one.
const MIN_FOLDED_PARTS: usize = 3;

/// The tag of the bench or fleet that a record is a part of.
fn find_parent_tag(listed: &ListedRecord) -> Option<&str> {
    let prefix = match Kind::from_schema(&listed.entry.schema) {
        Ok(Kind::Comparison) => "bench:",
        Ok(Kind::FleetNode) => "fleet:",
        _ => return None,
    };
    let mut tags = listed.summary.tags.iter().map(String::as_str);
    tags.find(|tag| tag.starts_with(prefix))
}

/// The lines of a list. Of a bench or fleet with many parts only the newest is listed, with the
/// number of others, unless their tag was requested.
fn fold_parts<'l>(listed: &'l [ListedRecord], requested_tag: Option<&str>) -> Vec<Line<'l>> {
    let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in listed.iter().filter_map(find_parent_tag) {
        *parts.entry(tag).or_default() += 1;
    }
    parts.retain(|tag, parts| *parts >= MIN_FOLDED_PARTS && requested_tag != Some(tag));
    let shown = listed.iter().filter_map(|one| {
        let Some(tag) = find_parent_tag(one).filter(|tag| parts.contains_key(tag)) else {
            return Some(to_line(one));
        };
        let others = std::mem::take(parts.get_mut(tag)?).checked_sub(1)?;
        Some(Line {
            more_like_it: Some((others, tag)),
            ..to_line(one)
        })
    });
    shown.collect()
}

/// Prints a benchmark's trend: its gates, chained from commit to commit.
fn show_trend(
    global: &Global,
    args: &HistoryArgs,
    benchmark: &str,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let narrowed = Filter {
        schema: Some(Kind::Gate.name().to_owned()),
        ..to_filter(&args.narrowing)?
    };
    let (gates, unreadable) = load_gates(&open_store_to_list(global)?, &narrowed)?;
    if unreadable > 0 {
        terminal.warn(&format!("{} cannot be read", count(unreadable, "gate")));
    }
    let history = gate::chain_gates(&gates, benchmark);
    if history.is_none() {
        refuse_unknown_benchmark(&gates, benchmark)?;
    }
    match history {
        history if terminal.is_json() => terminal.print_json(&serde_json::to_value(&history)?)?,
        Some(history) => {
            terminal.print(&pinwise_report::render_gate_history(
                &history,
                terminal.palette(),
            ))?;
        }
        None => {
            let are_commits = |gate: &&GateRecord| {
                [&gate.base, &gate.head]
                    .iter()
                    .all(|build| build.commit.is_some())
            };
            let of_folders = match gates.len() - gates.iter().filter(are_commits).count() {
                0 => String::new(),
                gates => format!(
                    ": {} of a folder. Name the commits: pinwise gate main HEAD",
                    count_of(gates as u64, "gate is", "gates are")
                ),
            };
            let line = "No gate of two commits has figures of this benchmark yet";
            terminal.print(&format!("{line}{of_folders}.\n"))?;
        }
    }
    Ok(Exit::Done)
}

/// Loads the gates that match a filter; the number counts those that cannot be read.
fn load_gates(store: &Store, filter: &Filter) -> Result<(Vec<GateRecord>, usize), StoreError> {
    let mut gates = Vec::new();
    let mut unreadable = 0;
    store.visit_bodies(filter, |_, body| match serde_json::from_str(body) {
        Ok(gate) => gates.push(gate),
        Err(_) => unreadable += 1,
    })?;
    Ok((gates, unreadable))
}

/// A benchmark's trend as JSON, for the local site.
pub(super) fn trend_to_json(
    store: &Store,
    filter: &Filter,
    benchmark: &str,
) -> Result<String, StoreError> {
    let (gates, _) = load_gates(store, filter)?;
    let history = gate::chain_gates(&gates, benchmark);
    Ok(json!(history).to_string())
}

/// An error if no gate has this benchmark.
fn refuse_unknown_benchmark(gates: &[GateRecord], benchmark: &str) -> anyhow::Result<()> {
    let benchmarks = gates.iter().flat_map(|gate| &gate.benchmarks);
    let mut names: Vec<&str> = benchmarks.map(|known| known.name.as_str()).collect();
    if names.contains(&benchmark) {
        return Ok(());
    }
    names.sort_unstable();
    names.dedup();
    names.truncate(MAX_NAMES);
    let hint = match names.as_slice() {
        [] => "no gate is stored (pinwise gate makes them)".to_owned(),
        names => format!("no gate has such a benchmark ({})", names.join(", ")),
    };
    bail!("--trend '{benchmark}': {hint}")
}

/// The line of a record in text lists.
pub(super) fn to_line(listed: &ListedRecord) -> Line<'_> {
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
        more_like_it: None,
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
        let page = report::render_stored_page(global, &args.id)?;
        return write_output(file, &page, terminal);
    }
    let named = NamedRecord::open(global, &args.id)?;
    let id = &named.entry.id;
    let text = match (format, &named.record) {
        (Format::Json, _) => format!("{}\n", named.body.trim_end()),
        (Format::Text, Ok(record)) if file.is_none() => {
            pinwise_report::render_record(record, terminal.palette())
        }
        (Format::Text, Err(reason)) => {
            terminal.warn(&format!("{id} is only partly shown: {reason}"));
            pinwise_report::render_partly_read(&named.entry, &Summary::from_json(&named.body))
        }
        (_, Ok(record)) => export::render_as(format, record, id)?,
        (_, Err(reason)) => bail!("{id}: {reason}"),
    };
    write_output(file, &text, terminal)
}

fn write_output(file: Option<&Path>, text: &str, terminal: &Terminal) -> anyhow::Result<Exit> {
    match file {
        Some(path) => write_file(path, text)?,
        None if terminal.format() == Format::Text => terminal.print(text)?,
        None => terminal.print_data(text)?,
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::Entry;

    fn example_record(id: &str, schema: &str, tag: &str) -> ListedRecord {
        let text = json!({ "schema": schema, "tags": [tag] }).to_string();
        ListedRecord {
            entry: Entry {
                id: id.to_owned(),
                schema: schema.to_owned(),
                time: String::new(),
                host: String::new(),
                title: String::new(),
                verdict: String::new(),
                is_complete: true,
            },
            summary: Summary::from_json(&text),
        }
    }

    #[test]
    fn parts_of_a_bench_share_a_line_unless_their_tag_is_requested() {
        let part = |id| example_record(id, "pinwise.comparison/1", "bench:9");
        let all = [
            part("4"),
            example_record("3", "pinwise.comparison/1", "nightly"),
            part("2"),
            part("1"),
            example_record("9", "pinwise.bench/1", "bench:9"),
        ];
        let ids = |asked| {
            let lines = fold_parts(&all, asked).into_iter();
            let others = lines.map(|line| (line.id, line.more_like_it));
            others.collect::<Vec<_>>()
        };
        let folded = [("4", Some((2, "bench:9"))), ("3", None), ("9", None)];
        assert_eq!(ids(None), folded);
        assert_eq!(ids(Some("bench:9")).len(), 5);
        assert_eq!(fold_parts(&all[2..], None).len(), 3);
    }
}
