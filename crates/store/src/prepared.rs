//! A record, prepared for any store: its line, its body and its summary.

use serde::Serialize;
use serde::de::Error as _;
use serde_json::Value;

use super::StoreError;
use pinwise_record::{
    AnyRecord, Comparison, Entry, RecordError, SchemaName, StoredRecord, Summary,
};

/// The data written for a record.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub(super) entry: Entry,
    pub(super) body: String,
    pub(super) summary: Summary,
}

impl Prepared {
    pub(super) fn new(entry: Entry, body: String) -> Self {
        Self {
            summary: Summary::from_json(&body),
            entry,
            body,
        }
    }

    pub(super) fn from_record(record: &impl StoredRecord) -> Self {
        Self::new(record.entry(), to_json(record))
    }

    /// For a comparison that has just begun.
    pub(super) fn from_begun(record: &Comparison) -> Self {
        let entry = Entry {
            verdict: String::new(),
            is_complete: false,
            ..record.entry()
        };
        Self::new(entry, to_json(record))
    }

    /// For a comparison that has ended, in whatever way.
    pub(super) fn from_finished(record: &Comparison) -> Self {
        let entry = Entry {
            verdict: record.verdict.sentence.clone(),
            is_complete: true,
            ..record.entry()
        };
        Self::new(entry, to_json(record))
    }

    /// For a record given as text.
    pub(super) fn from_json(body: &str) -> Result<Self, StoreError> {
        let refuse = |id: &str, reason| StoreError::Record {
            id: id.to_owned(),
            reason,
        };
        let record = AnyRecord::read(body).map_err(|reason| refuse(&find_id(body), reason))?;
        let kind = record.kind().name();
        let entry = record
            .entry()
            .ok_or_else(|| refuse(&find_id(body), RecordError::NotStored { kind }))?;
        if entry.id.is_empty() {
            let error = serde_json::Error::custom("missing field `id`");
            return Err(refuse("", RecordError::Damaged(error)));
        }
        Ok(Self::new(entry, body.to_owned()))
    }

    /// The text that `Filter::text` searches, in lower case: SQLite itself would fold only ASCII,
    /// PostgreSQL by the server's locale.
    pub(super) fn search_text(&self) -> String {
        build_search_text(&self.entry, &self.summary)
    }
}

/// The id in a record's text, for an error about it.
fn find_id(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    value["id"].as_str().unwrap_or_default().to_owned()
}

fn to_json(record: &impl Serialize) -> String {
    serde_json::to_string(record).unwrap_or_default()
}

pub(super) fn build_search_text(entry: &Entry, summary: &Summary) -> String {
    let parts = [&entry.id, &entry.title, &entry.host, &entry.verdict];
    let parts: Vec<&str> = parts
        .into_iter()
        .chain(&summary.tags)
        .map(String::as_str)
        .collect();
    parts.join("\n").to_lowercase()
}

/// Is this the wanted schema, or does it belong to the wanted kind?
pub(super) fn matches_schema(schema: &str, wanted: &str) -> bool {
    let name = SchemaName::parse(schema).map_or(schema, |schema| schema.name);
    schema == wanted || name == wanted || name.strip_prefix("pinwise.") == Some(wanted)
}
