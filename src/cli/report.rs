//! `record report`: writes records as one HTML page that opens from disk.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::value::to_raw_value;

use super::args::{Global, ReportArgs};
use super::files::{read_file, write_file};
use super::named::{GivenRecord, load_given};
use super::terminal::Terminal;
use super::{Exit, diff};
use pinwise_record::{GateHistory, GateRecord, Kind, StoredRecord, Summary};
use pinwise_report::page::{Line, PAGE, PageRecord, ShownDiff, WITHOUT_PAGE, fill_page};
use pinwise_study::gate;

pub(super) fn report(
    global: &Global,
    args: &ReportArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let template = load_template()?;
    let mut records = Vec::new();
    for id in &args.ids {
        records.push(load_given(global, id)?);
    }
    let text = render_records(&template, &records)?;
    let path = match &args.output {
        Some(path) if path == Path::new("-") => {
            terminal.print_data(&text)?;
            return Ok(Exit::Done);
        }
        Some(path) => path.clone(),
        None => choose_new_path(&records[0].entry.id)?,
    };
    write_file(&path, &text)?;
    terminal.print(&format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}

/// Renders the page of a stored record.
pub(super) fn render_stored_page(global: &Global, id: &str) -> anyhow::Result<String> {
    render_records(&load_template()?, &[load_given(global, id)?])
}

/// Renders the page of a record that is not in the store.
pub(super) fn render_page<R: StoredRecord>(record: &R) -> anyhow::Result<String> {
    let given = GivenRecord {
        entry: record.entry(),
        summary: Summary::read(&serde_json::to_value(record)?),
        record: to_raw_value(record)?,
    };
    render_records(&load_template()?, &[given])
}

/// Loads the page that records are written into: the file of `PINWISE_PAGE`, or the page that was
/// built into this binary.
pub(super) fn load_template() -> anyhow::Result<Cow<'static, str>> {
    #[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
    let file = std::env::var_os("PINWISE_PAGE").filter(|file| !file.is_empty());
    match file {
        Some(file) => {
            let path = Path::new(&file);
            let text = read_file(path).with_context(|| format!("PINWISE_PAGE {}", path.display()));
            Ok(Cow::Owned(text?))
        }
        None => PAGE.map(Cow::Borrowed).context(WITHOUT_PAGE),
    }
}

fn render_records(template: &str, records: &[GivenRecord]) -> anyhow::Result<String> {
    let shown: Vec<PageRecord<'_>> = records
        .iter()
        .map(|record| PageRecord {
            entry: Line::new(&record.entry, &record.summary),
            record: &record.record,
        })
        .collect();
    let diffs = diff_with_first(records);
    let histories = list_gate_histories(records);
    fill_page(template, &shown, &diffs, &histories).context("the report cannot be written")
}

/// The history, from commit to commit, of each benchmark that several of the records gate.
fn list_gate_histories(records: &[GivenRecord]) -> Vec<GateHistory> {
    let gates: Vec<GateRecord> = records
        .iter()
        .filter(|record| Kind::from_record_text(record.record.get()).ok() == Some(Kind::Gate))
        .filter_map(|record| serde_json::from_str(record.record.get()).ok())
        .collect();
    let mut suites: BTreeMap<&str, Vec<GateRecord>> = BTreeMap::new();
    for gate in &gates {
        suites.entry(&gate.suite).or_default().push(gate.clone());
    }
    let of_suite = |gates: &Vec<GateRecord>| -> Vec<GateHistory> {
        let benchmarks = gates.iter().flat_map(|gate| &gate.benchmarks);
        let names: BTreeSet<&str> = benchmarks.map(|one| one.name.as_str()).collect();
        let each = names
            .into_iter()
            .filter_map(|name| gate::chain_gates(gates, name));
        each.filter(|history| history.steps.len() > 1).collect()
    };
    suites.values().flat_map(of_suite).collect()
}

/// Compares each other record with the first, if they can be compared.
fn diff_with_first(records: &[GivenRecord]) -> Vec<ShownDiff<'_>> {
    let Some((first, others)) = records.split_first() else {
        return Vec::new();
    };
    others
        .iter()
        .filter_map(|other| {
            Some(ShownDiff {
                a: &first.entry.id,
                b: &other.entry.id,
                record: diff::diff_for_page(first, other)?,
            })
        })
        .collect()
}

/// The default output path; an error if the file exists, so that it is not replaced.
fn choose_new_path(id: &str) -> anyhow::Result<PathBuf> {
    let stem: String = id
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    let path = PathBuf::from(format!("pinwise-{stem}.html"));
    if path.exists() {
        bail!(
            "{} exists already: name another with -o FILE",
            path.display()
        );
    }
    Ok(path)
}
