//! `report`: records as one page that opens from disk.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::args::{Global, ReportArgs};
use super::export::{read_file, write_file};
use super::history::needed_store;
use super::terminal::Terminal;
use super::{Exit, diff};
use pinwise_record::{AnyRecord, Entry, Kind, RecordError, StoredRecord, Summary, completed};
use pinwise_report::page::{Line, PAGE, Shown, ShownDiff, WITHOUT_PAGE, page};
use pinwise_store::{StoreError, Stored};

/// A record, its line of the history, and what lists say of it.
pub(super) struct Reported {
    pub(super) entry: Entry,
    pub(super) outline: Summary,
    pub(super) record: Box<RawValue>,
}

pub(super) fn report(
    global: &Global,
    args: &ReportArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let template = template()?;
    let mut records = Vec::new();
    for id in &args.ids {
        records.push(reported(global, id)?);
    }
    let text = written(&template, &records)?;
    let path = match &args.output {
        Some(path) if path == Path::new("-") => {
            terminal.print(&text)?;
            return Ok(Exit::Done);
        }
        Some(path) => path.clone(),
        None => unused_name(&records[0].entry.id)?,
    };
    write_file(&path, &text)?;
    terminal.print(&format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}

/// The record that an argument names, stored or in a file.
pub(super) fn reported(global: &Global, id: &str) -> anyhow::Result<Reported> {
    match file_of(id) {
        Some(path) => of_file(path),
        None => of_stored(&needed_store(global)?.load(id)?),
    }
}

/// The page of a record that has just been made.
pub(super) fn of_record<R: StoredRecord>(record: &R) -> anyhow::Result<String> {
    let reported = Reported {
        entry: record.entry(),
        outline: Summary::read(&serde_json::to_value(record)?),
        record: to_raw_value(record)?,
    };
    written(&template()?, &[reported])
}

/// The page that records are written into: a file that the environment names,
/// or the one that was built into this binary.
pub(super) fn template() -> anyhow::Result<Cow<'static, str>> {
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

fn written(template: &str, records: &[Reported]) -> anyhow::Result<String> {
    let shown: Vec<Shown<'_>> = records
        .iter()
        .map(|record| Shown {
            entry: Line::new(&record.entry, &record.outline),
            record: &record.record,
        })
        .collect();
    let diffs = differences(records);
    page(template, &shown, &diffs).context("the report cannot be written")
}

/// Each record after the first against the first, where that can be.
fn differences(records: &[Reported]) -> Vec<ShownDiff<'_>> {
    let Some((first, others)) = records.split_first() else {
        return Vec::new();
    };
    others
        .iter()
        .filter_map(|other| {
            Some(ShownDiff {
                a: &first.entry.id,
                b: &other.entry.id,
                record: diff::for_page(first, other)?,
            })
        })
        .collect()
}

/// A record is named by its id; a file by a path or its ending.
fn file_of(id: &str) -> Option<&Path> {
    let is_json = Path::new(id).extension().is_some_and(|end| end == "json");
    (id.contains('/') || is_json).then(|| Path::new(id))
}

pub(super) fn of_stored(stored: &Stored) -> anyhow::Result<Reported> {
    Ok(Reported {
        entry: stored.entry.clone(),
        outline: Summary::of(&stored.body),
        record: stored.completed()?,
    })
}

/// A record that was exported, or printed with `--format json`.
fn of_file(path: &Path) -> anyhow::Result<Reported> {
    let named = Named::of_file(path)?;
    // The page shows what it finds of a record that lacks fields.
    Kind::of_text(&named.body).with_context(|| path.display().to_string())?;
    Ok(Reported {
        outline: Summary::of(&named.body),
        entry: named.entry,
        record: completed(&named.body)?,
    })
}

/// A record that an argument names, which may be damaged or newer.
pub(super) struct Named {
    pub(super) entry: Entry,
    /// As JSON.
    pub(super) body: String,
    pub(super) record: Result<AnyRecord, RecordError>,
}

impl Named {
    pub(super) fn open(global: &Global, id: &str) -> anyhow::Result<Self> {
        match file_of(id) {
            Some(path) => Self::of_file(path),
            None => Self::of_stored(needed_store(global)?.load(id)?),
        }
    }

    fn of_stored(stored: Stored) -> anyhow::Result<Self> {
        let record = match stored.record() {
            Ok(record) => Ok(record),
            Err(StoreError::Record { reason, .. }) => Err(reason),
            Err(other) => return Err(other.into()),
        };
        let body = match stored.whole() {
            Ok(whole) => whole.get().to_owned(),
            Err(_) => stored.body,
        };
        Ok(Self {
            entry: stored.entry,
            body,
            record,
        })
    }

    fn of_file(path: &Path) -> anyhow::Result<Self> {
        let named = || path.display().to_string();
        let body = read_file(path).with_context(named)?;
        let record = AnyRecord::read(&body);
        let entry = record.as_ref().ok().and_then(AnyRecord::entry);
        let mut entry = match entry {
            Some(entry) => entry,
            None => {
                let value: Value = serde_json::from_str(&body)
                    .map_err(RecordError::Damaged)
                    .with_context(named)?;
                entry_by_fields(&value)
            }
        };
        for text in [&mut entry.id, &mut entry.title] {
            if text.is_empty() {
                *text = named();
            }
        }
        Ok(Self {
            entry,
            body,
            record,
        })
    }
}

/// The line of a record that is not read as its type, of what fields there are.
fn entry_by_fields(value: &Value) -> Entry {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let host = match value["host"]["simulated"].as_bool() {
        Some(true) => &value["host"]["machine_spec"],
        _ => &value["host"]["hostname"],
    };
    Entry {
        id: text(&value["id"]),
        schema: text(&value["schema"]),
        time: text(&value["started"]),
        host: text(host),
        title: String::new(),
        verdict: text(&value["verdict"]["sentence"]),
        is_complete: true,
    }
}

/// A report never replaces a file that it was not told to.
fn unused_name(id: &str) -> anyhow::Result<PathBuf> {
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
            "{} is there already: name another with -o FILE",
            path.display()
        );
    }
    Ok(path)
}
