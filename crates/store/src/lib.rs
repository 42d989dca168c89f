//! Records on disk.
//!
//! A record is written as it grows: its plan at the start, every run as it finishes, the whole at
//! the end. If pinwise is killed at any moment, the store still opens and has every finished run.
//! Records are handled only as text with an index; `record` knows their meaning.
//!
//! ```
//! use pinwise_store::{Filter, Store};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let mut store = Store::open(&folder.path().join("pinwise.db"))?;
//! let found = store.find(&Filter { text: Some("nginx".to_owned()), ..Filter::default() })?;
//! assert_eq!(found.total, 0);
//! // Only records of known kinds are kept.
//! assert!(store.create_json(r#"{"schema":"pinwise.unknown/1"}"#).is_err());
//! # Ok::<(), pinwise_store::StoreError>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

mod answers;
mod backend;
mod condition;
mod journal;
mod location;
mod matching;
mod passfile;
mod postgres;
mod prepared;
mod spool;
mod sqlite;
mod sslmode;

use serde_json::value::{RawValue, to_raw_value};

pub use answers::{FileIdentity, Generation, Growth, RemovalResult, TagChange};
pub use backend::Store;
pub use location::{Location, Server};
pub use matching::records_back;
pub use pinwise_record::Entry;
pub use spool::Spool;

use prepared::{Prepared, build_search_text, matches_schema};

use pinwise_record::{AnyRecord, Comparison, Kind, Record, RecordError, RunRecord, Summary};

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The text after `--store` is not a store.
    #[error("--store '{text}': {reason}")]
    Location {
        /// The given text.
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
        /// The system's error.
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
        /// SQLite's message.
        reason: String,
    },
    /// A server that does not answer, or has stopped answering.
    #[error("the store {store} cannot be reached: {reason} (choose another with --store)")]
    Unreachable {
        /// Its URL without password.
        store: String,
        /// The system's error.
        reason: String,
    },
    /// A server that answers, but refuses the request.
    #[error("the store {store} refuses: {reason}")]
    Refused {
        /// Its URL without password.
        store: String,
        /// The server's message.
        reason: String,
    },
    /// A connection that lacks the requested protection.
    #[error("the store {store} is not used: {reason}")]
    Insecure {
        /// Its URL without password.
        store: String,
        /// What is missing.
        reason: String,
    },
    /// Written by a pinwise with another store schema.
    #[error(
        "the store {path} has schema {found}, this pinwise reads schema {known} (use the pinwise that wrote it, or choose another store with --store)"
    )]
    OtherVersion {
        /// The file.
        path: String,
        /// Its schema.
        found: i64,
        /// The schema of this pinwise.
        known: i64,
    },
    /// The disk is full or writing failed.
    #[error("the store {path} cannot be written: {reason}")]
    Write {
        /// The file.
        path: String,
        /// The system's error.
        reason: String,
    },
    /// No record, or more than one, has this id.
    #[error("{0}")]
    Id(String),
    /// A record to change belongs to another user of the database.
    #[error("record {id} belongs to database user {owner}, who alone may change it")]
    OtherOwner {
        /// Its id.
        id: String,
        /// Its owner.
        owner: String,
    },
    /// A record to change is being written by another process.
    #[error("record {id} is still being written by a running pinwise; try again when it has ended")]
    BeingWritten {
        /// Its id.
        id: String,
    },
    /// A record exists but cannot be read.
    #[error("record {id}: {reason}")]
    Record {
        /// Its id.
        id: String,
        /// Why.
        reason: RecordError,
    },
}

/// A filter of the history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only records made on this host.
    pub host: Option<String>,
    /// Only records of this schema, such as `pinwise.trace/1`, or kind, such as `trace`.
    pub schema: Option<String>,
    /// Only records with this tag.
    pub tag: Option<String>,
    /// Only records about this question, see [`Summary::subject`].
    pub subject: Option<String>,
    /// Only records with all these words in id, title, host, verdict or tags, ignoring case.
    pub text: Option<String>,
    /// Maximum number of lines.
    pub limit: Option<usize>,
    /// Number of the newest matches to skip.
    pub offset: usize,
}

/// A record's line of the history, with data for lists and plots.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedRecord {
    /// The line.
    pub entry: Entry,
    /// Tags, subject, machine, headline figures.
    pub summary: Summary,
}

/// The result of a filter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundRecords {
    /// The records, newest first, within limit and offset.
    pub lines: Vec<ListedRecord>,
    /// Their number without limit and offset.
    pub total: usize,
    /// Hosts of all records of the store, sorted.
    pub hosts: Vec<String>,
    /// Schemas of all records of the store, sorted.
    pub schemas: Vec<String>,
    /// Tags of all records of the store, sorted.
    pub tags: Vec<String>,
}

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its line of the history.
    pub entry: Entry,
    /// The record as JSON; without runs if unfinished.
    pub body: String,
    /// Runs of an unfinished record: arm number and JSON.
    pub runs: Vec<(usize, String)>,
}

impl Stored {
    /// Parses the record, of any kind; an interrupted comparison has the runs until then.
    ///
    /// # Errors
    /// [`StoreError::Record`] if it is damaged, newer or of an unknown kind.
    pub fn record(&self) -> Result<AnyRecord, StoreError> {
        match AnyRecord::read(&self.body).map_err(|reason| self.unreadable_error(reason))? {
            AnyRecord::Comparison(_) => Ok(self.comparison()?.into()),
            other => Ok(other),
        }
    }

    fn unreadable_error(&self, reason: RecordError) -> StoreError {
        StoreError::Record {
            id: self.entry.id.clone(),
            reason,
        }
    }

    /// The record as JSON, for pages and exports; an unfinished comparison has the runs so far.
    ///
    /// # Errors
    /// [`StoreError::Record`] if it is damaged, newer or of an unknown schema.
    pub fn whole(&self) -> Result<Box<RawValue>, StoreError> {
        let kind =
            Kind::from_record_text(&self.body).map_err(|reason| self.unreadable_error(reason))?;
        let whole = match kind {
            Kind::Comparison if !self.entry.is_complete => to_raw_value(&self.comparison()?),
            _ => RawValue::from_string(self.body.clone()),
        };
        whole.map_err(|error| self.unreadable_error(error.into()))
    }

    /// Parses the body as a record of this kind.
    ///
    /// # Errors
    /// [`StoreError::Record`] if it is damaged, newer or of another kind.
    pub fn decode<R: Record>(&self) -> Result<R, StoreError> {
        pinwise_record::read(&self.body).map_err(|reason| self.unreadable_error(reason))
    }

    /// Parses the body as a comparison. An interrupted one counts whole blocks, keeps the remaining
    /// runs separately, and has no verdict.
    ///
    /// # Errors
    /// [`StoreError::Record`] if it is damaged, newer or not a comparison.
    pub fn comparison(&self) -> Result<Comparison, StoreError> {
        let mut record: Comparison = self.decode()?;
        let runs: Vec<(usize, RunRecord)> = self
            .runs
            .iter()
            .map(|(arm, json)| Ok((*arm, serde_json::from_str(json)?)))
            .collect::<Result<_, serde_json::Error>>()
            .map_err(|error| self.unreadable_error(error.into()))?;
        if !runs.is_empty() {
            record.adopt_runs(runs);
        }
        Ok(record)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pinwise_machine::Host;
    use pinwise_sim::SimulatedMachine;
    use pinwise_study::compare::{self, ComparePlan, Observer, Tuning};
    use pinwise_workload::Command;

    /// A small simulated comparison.
    pub(crate) fn comparison(id: &str, observer: &mut dyn Observer) -> Comparison {
        let mut machine = SimulatedMachine::open("core:2 pu:1", 1).unwrap();
        let (topology, _) = machine.topology().unwrap();
        let placements = ["os-default", "cpu:0"].map(|name| name.parse().unwrap());
        let command = Command::from_line("prog").unwrap();
        let plan = ComparePlan {
            id: id.to_owned(),
            tuning: Tuning {
                max_runs: Some(8),
                ..Tuning::default()
            },
            ..ComparePlan::compare_placements(command, &topology, &placements).unwrap()
        };
        compare::run(&plan, &mut machine, observer).unwrap()
    }

    pub(crate) fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a/b/pinwise.db")).unwrap();
        (folder, store)
    }
}
