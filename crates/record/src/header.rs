//! The fields of every stored record.

use serde::{Deserialize, Serialize};

use crate::{Entry, Finding, Record, Stopped};

/// The fields of every stored record. Its fields are read as the record's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Header {
    /// Identifies it in the store: date, time and a random part, or the name of a fleet. Missing
    /// for a topology that was not measured.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// When it began, RFC 3339 in UTC: for an imported file when it was read, for a node by its own
    /// clock.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started: String,
    /// Version of pinwise that wrote it.
    #[serde(default)]
    pub pinwise_version: String,
    /// Findings about the result, most severe first.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// Further notes, as full sentences.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The user's labels; records of a fleet also have the fleet's.
    #[serde(default)]
    pub tags: Vec<String>,
}

impl Default for Header {
    fn default() -> Self {
        Self::new("", "", Vec::new())
    }
}

impl Header {
    /// The header of a new record of this version, without results yet.
    #[must_use]
    pub fn new(id: impl Into<String>, started: impl Into<String>, tags: Vec<String>) -> Self {
        Self {
            id: id.into(),
            started: started.into(),
            pinwise_version: env!("CARGO_PKG_VERSION").to_owned(),
            findings: Vec::new(),
            notes: Vec::new(),
            tags,
        }
    }

    /// The history's entry for a record that has ended.
    pub(crate) fn to_entry<R: Record>(
        &self,
        host: String,
        title: String,
        verdict: String,
    ) -> Entry {
        Entry {
            id: self.id.clone(),
            schema: R::KIND.schema().to_owned(),
            time: self.started.clone(),
            host,
            title,
            verdict,
            is_complete: true,
        }
    }

    /// The history's entry for a growing record: its sentence is not a verdict before it has ended.
    pub(crate) fn to_growing_entry<R: Record>(
        &self,
        stopped: Option<&Stopped>,
        host: String,
        title: String,
        sentence: &str,
    ) -> Entry {
        let verdict = stopped.map_or("", |_| sentence);
        Entry {
            is_complete: stopped.is_some(),
            ..self.to_entry::<R>(host, title, verdict.to_owned())
        }
    }
}
