//! Opens the records that arguments name, by id or as files.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;
use serde_json::value::RawValue;

use super::args::Global;
use super::files::read_file;
use super::opening::require_store;
use pinwise_format::shell;
use pinwise_record::{AnyRecord, Entry, Kind, RecordError, Summary};
use pinwise_store::{StoreError, Stored};

/// A record with the data that lists show.
pub(super) struct GivenRecord {
    pub(super) entry: Entry,
    pub(super) summary: Summary,
    pub(super) record: Box<RawValue>,
}

/// Loads the record that an argument names, from the store or a file.
pub(super) fn load_given(global: &Global, id: &str) -> anyhow::Result<GivenRecord> {
    match as_file(id) {
        Some(path) => open_file(path),
        None => open_stored(&require_store(global)?.load(id)?),
    }
}

/// The file that an argument names, by a slash or the extension `.json`; `None` for an id.
fn as_file(id: &str) -> Option<&Path> {
    let is_json = Path::new(id).extension().is_some_and(|end| end == "json");
    (id.contains('/') || is_json).then(|| Path::new(id))
}

pub(super) fn open_stored(stored: &Stored) -> anyhow::Result<GivenRecord> {
    Ok(GivenRecord {
        entry: stored.entry.clone(),
        summary: Summary::from_json(&stored.body),
        record: stored.whole()?,
    })
}

/// Opens a record that was exported, or printed with `--format json`.
fn open_file(path: &Path) -> anyhow::Result<GivenRecord> {
    let named = NamedRecord::from_file(path)?;
    // The kind is enough: the page shows what there is of a record that lacks fields.
    Kind::from_record_text(&named.body).with_context(|| path.display().to_string())?;
    Ok(GivenRecord {
        summary: Summary::from_json(&named.body),
        entry: named.entry,
        record: RawValue::from_string(named.body)?,
    })
}

/// A record that an argument names, which may be damaged or newer.
pub(super) struct NamedRecord {
    pub(super) entry: Entry,
    /// As JSON.
    pub(super) body: String,
    pub(super) record: Result<AnyRecord, RecordError>,
}

impl NamedRecord {
    pub(super) fn open(global: &Global, id: &str) -> anyhow::Result<Self> {
        match as_file(id) {
            Some(path) => Self::from_file(path),
            None => Self::from_stored(require_store(global)?.load(id)?),
        }
    }

    fn from_stored(stored: Stored) -> anyhow::Result<Self> {
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

    fn from_file(path: &Path) -> anyhow::Result<Self> {
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
                entry_from_fields(&value)
            }
        };
        if entry.id.is_empty() {
            entry.id = named();
        }
        if entry.title.is_empty() {
            let title = title_from_fields(&entry.schema, &body);
            entry.title = title.unwrap_or_else(|| title_of_file(&entry.schema, path));
        }
        Ok(Self {
            entry,
            body,
            record,
        })
    }
}

/// What a record that is never stored is about; `None` for other kinds, or if it does not say it.
fn title_from_fields(schema: &str, body: &str) -> Option<String> {
    let kind = schema.strip_prefix("pinwise.")?.split('/').next()?;
    let record: Value = serde_json::from_str(body).ok()?;
    let text = |pointer| record.pointer(pointer).and_then(Value::as_str);
    Some(match kind {
        "applied" => format!("{} on {}", text("/service/name")?, text("/placement")?),
        "doctor" => "doctor".to_owned(),
        "fleet-diff" => format!("{} against {}", text("/b/fleet")?, text("/a/fleet")?),
        "fleet-status" => format!("fleet {}", text("/fleet")?),
        "kernel" => format!("bench kernel {}", text("/kernel")?),
        "placements" => "placements of threads".to_owned(),
        "prediction" => {
            let words = record["command"].as_array()?.iter();
            let command: Vec<&str> = words.filter_map(Value::as_str).collect();
            format!("prediction for {}", shell::line(&command))
        }
        "replay" => "topology from latencies".to_owned(),
        "rule-change" => format!("rules, {}", text("/name")?),
        "rules" => format!("rules of {}", text("/file")?),
        "top" => format!("top on {}", text("/host")?),
        "topology" => format!("topology of {}", text("/machine/hostname")?),
        "topology-diff" => format!("{} and {}", text("/between/0")?, text("/between/1")?),
        _ => return None,
    })
}

/// A title such as `spin scan: loops.json`, for a record without one.
fn title_of_file(schema: &str, path: &Path) -> String {
    let kind = schema.strip_prefix("pinwise.").unwrap_or(schema);
    let kind = kind.split('/').next().unwrap_or_default().replace('-', " ");
    let file = path.file_name().unwrap_or(path.as_os_str());
    format!("{kind}: {}", file.to_string_lossy())
}

/// The history entry of a record that cannot be read as its type, from the fields that it has.
fn entry_from_fields(value: &Value) -> Entry {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let host = match &value["host"] {
        Value::String(_) => &value["host"],
        host if host["simulated"] == true => &host["machine_spec"],
        host => &host["hostname"],
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
