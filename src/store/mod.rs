//! Records on disk.
//!
//! A record is written as it grows: its plan at the start, every run as it
//! finishes, the whole at the end. Killed at any instant, the store opens and
//! every finished run is in it. It knows records only as text and an index of
//! them; what they mean is the record's affair.

mod journal;
mod lines;
mod schema;
mod sqlite;
mod upkeep;

use std::path::PathBuf;

use serde_json::value::{RawValue, to_raw_value};

pub use crate::record::Entry;
pub use sqlite::{FileIdentity, Generation, Growth, Store};
pub use upkeep::{Removed, Retagged};

use crate::record::{
    COMPARISON_SCHEMA, Comparison, Outline, RecordError, RunRecord, TOPOLOGY_SCHEMA, TopologyRecord,
};

/// Where records are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// An SQLite file.
    Sqlite(PathBuf),
    /// Nowhere: records are only printed.
    Nowhere,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The text after `--store` is no store.
    #[error("--store '{text}': {reason}")]
    Location {
        /// What was written.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// The file or its folder cannot be opened or made.
    #[error(
        "the store {path} cannot be opened: {reason} (choose another with --store, or none with --store none)"
    )]
    Open {
        /// The file.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// Another process keeps it locked.
    #[error(
        "the store {path} is locked by another process; try again later or choose another with --store"
    )]
    Locked {
        /// The file.
        path: String,
    },
    /// Not an SQLite file, or broken.
    #[error(
        "the store {path} is damaged or not a pinwise store: {reason} (move it away to start anew)"
    )]
    Damaged {
        /// The file.
        path: String,
        /// SQLite's words.
        reason: String,
    },
    /// Written by a newer pinwise.
    #[error(
        "the store {path} has schema {found}, this pinwise knows {known}; a newer pinwise reads it"
    )]
    Newer {
        /// The file.
        path: String,
        /// Its schema.
        found: i64,
        /// The newest known.
        known: i64,
    },
    /// The disk is full or writing failed.
    #[error("the store {path} cannot be written: {reason}")]
    Write {
        /// The file.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// No record, or more than one, has this id.
    #[error("{0}")]
    Id(String),
    /// A record that another process is writing shall be changed.
    #[error("record {id} is still being written by a running pinwise; try again when it has ended")]
    BeingWritten {
        /// Its id.
        id: String,
    },
    /// A record that is there cannot be read.
    #[error("record {id}: {reason}")]
    Record {
        /// Its id.
        id: String,
        /// Why.
        reason: RecordError,
    },
}

impl Location {
    /// Reads `sqlite:PATH`, a plain path, or `none`.
    ///
    /// # Errors
    /// [`StoreError::Location`] where it is neither.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let bad = |reason: &str| StoreError::Location {
            text: text.to_owned(),
            reason: reason.to_owned(),
        };
        if text == "none" {
            return Ok(Self::Nowhere);
        }
        if text.starts_with("postgres:") || text.starts_with("postgresql:") {
            return Err(bad("PostgreSQL stores are not available in this version"));
        }
        let has_other_scheme = text.split_once(':').is_some_and(|(scheme, _)| {
            scheme != "sqlite" && scheme.chars().all(|c| c.is_ascii_alphanumeric())
        });
        if has_other_scheme {
            return Err(bad("write sqlite:PATH, or none"));
        }
        let path = text.strip_prefix("sqlite:").unwrap_or(text);
        if path.is_empty() {
            return Err(bad("write sqlite:PATH, or none"));
        }
        Ok(Self::Sqlite(PathBuf::from(path)))
    }
}

/// What a history is narrowed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Made on this host.
    pub host: Option<String>,
    /// Of this schema, such as `pinwise.trace/1`, or kind, such as `trace`.
    pub schema: Option<String>,
    /// With this tag.
    pub tag: Option<String>,
    /// Of this question, see [`Outline::subject`].
    pub subject: Option<String>,
    /// Words that all occur in id, title, host, verdict or tags, in any case.
    pub text: Option<String>,
    /// At most so many lines.
    pub limit: Option<usize>,
    /// Without the newest so many.
    pub offset: usize,
}

/// A record's line of the history, and what lists and plots say of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The line.
    pub entry: Entry,
    /// Tags, subject, machine, headline figures.
    pub outline: Outline,
}

/// What a filter finds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The records, newest first, within limit and offset.
    pub lines: Vec<Listed>,
    /// How many there are beyond limit and offset, too.
    pub total: usize,
    /// Hosts of all records of the store, sorted.
    pub hosts: Vec<String>,
    /// Schemas of all records of the store, sorted.
    pub schemas: Vec<String>,
    /// Tags of all records of the store, sorted.
    pub tags: Vec<String>,
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its line of the history.
    pub entry: Entry,
    /// The record as JSON; of an unfinished one, without runs.
    pub body: String,
    /// Runs of an unfinished record: arm number and JSON.
    pub runs: Vec<(usize, String)>,
}

impl Stored {
    /// Is this a record of this schema, of whatever version?
    #[must_use]
    pub fn is_of(&self, schema: &str) -> bool {
        let name = |text| crate::record::SchemaName::parse(text).map(|s| s.name.to_owned());
        name(&self.entry.schema) == name(schema)
    }

    /// The record as JSON, as pages and exports get it: of a comparison that
    /// was not finished, with the runs that are there.
    ///
    /// # Errors
    /// [`StoreError::Record`] where it is damaged, newer or of no known schema.
    pub fn whole(&self) -> Result<Box<RawValue>, StoreError> {
        let bad = |reason| StoreError::Record {
            id: self.entry.id.clone(),
            reason,
        };
        crate::record::check(&self.body).map_err(bad)?;
        if !self.entry.is_complete && self.is_of(COMPARISON_SCHEMA) {
            return to_raw_value(&self.comparison()?).map_err(|error| bad(error.into()));
        }
        RawValue::from_string(self.body.clone()).map_err(|error| bad(error.into()))
    }

    /// The machine that this is.
    ///
    /// # Errors
    /// [`StoreError::Record`] where it is damaged, newer or no machine.
    pub fn topology(&self) -> Result<TopologyRecord, StoreError> {
        self.kept(TOPOLOGY_SCHEMA)
    }

    /// The record of this schema that this is.
    ///
    /// # Errors
    /// [`StoreError::Record`] where it is damaged, newer or another.
    pub fn kept<T: serde::de::DeserializeOwned>(
        &self,
        schema: &'static str,
    ) -> Result<T, StoreError> {
        crate::record::read(&self.body, schema).map_err(|reason| StoreError::Record {
            id: self.entry.id.clone(),
            reason,
        })
    }

    /// The comparison that this is. Of one that was killed, whole blocks
    /// count and the rest is kept beside them; it has no verdict.
    ///
    /// # Errors
    /// [`StoreError::Record`] where it is damaged, newer or no comparison.
    pub fn comparison(&self) -> Result<Comparison, StoreError> {
        let bad = |reason| StoreError::Record {
            id: self.entry.id.clone(),
            reason,
        };
        let mut record: Comparison =
            crate::record::read(&self.body, COMPARISON_SCHEMA).map_err(bad)?;
        let runs: Vec<(usize, RunRecord)> = self
            .runs
            .iter()
            .map(|(arm, json)| Ok((*arm, serde_json::from_str(json)?)))
            .collect::<Result<_, serde_json::Error>>()
            .map_err(|error| bad(error.into()))?;
        if !runs.is_empty() {
            record.adopt_runs(runs);
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_location_is_read_or_refused(text in "(none|sqlite:|postgres:)?\\PC{0,20}") {
            match Location::parse(&text) {
                Ok(Location::Sqlite(path)) => prop_assert!(text.ends_with(path.to_str().unwrap())),
                Ok(Location::Nowhere) => prop_assert_eq!(text, "none"),
                Err(error) => prop_assert!(error.to_string().contains(&text)),
            }
        }
    }
}
