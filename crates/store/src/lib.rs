//! Records on disk.
//!
//! A record is written as it grows: its plan at the start, every run as it
//! finishes, the whole at the end. Killed at any instant, the store opens and
//! every finished run is in it. It knows records only as text and an index of
//! them; what they mean is the record's affair.
//!
//! ```
//! use pinwise_store::{Filter, Store};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let mut store = Store::open(&folder.path().join("pinwise.db"))?;
//! let found = store.find(&Filter { text: Some("nginx".to_owned()), ..Filter::default() })?;
//! assert_eq!(found.total, 0);
//! // What is not a record of a known kind is not kept.
//! assert!(store.keep_json(r#"{"schema":"pinwise.unknown/1"}"#).is_err());
//! # Ok::<(), pinwise_store::StoreError>(())
//! ```

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests arrange the files they need"
    )
)]

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

pub use answers::{FileIdentity, Generation, Growth, Removed, Retagged};
pub use backend::Store;
pub use location::{Location, Server};
pub use matching::records_back;
pub use pinwise_record::Entry;
pub use spool::Spool;

use prepared::{Prepared, is_of, words};

use pinwise_record::{AnyRecord, Comparison, Kind, Record, RecordError, RunRecord, Summary};

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
    /// A server that does not answer, or no more.
    #[error("the store {store} cannot be reached: {reason} (choose another with --store)")]
    Unreachable {
        /// Its URL without password.
        store: String,
        /// The system's words.
        reason: String,
    },
    /// A server that answers, but not with what was asked for.
    #[error("the store {store} refuses: {reason}")]
    Refused {
        /// Its URL without password.
        store: String,
        /// The server's words.
        reason: String,
    },
    /// A connection that is not protected as it was asked to be.
    #[error("the store {store} is not used: {reason}")]
    Insecure {
        /// Its URL without password.
        store: String,
        /// What is missing.
        reason: String,
    },
    /// Written by a pinwise whose stores have another schema.
    #[error(
        "the store {path} has schema {found}, this pinwise reads schema {known} (use the pinwise that wrote it, or choose another store with --store)"
    )]
    OtherVersion {
        /// The file.
        path: String,
        /// Its schema.
        found: i64,
        /// The one that this pinwise reads and writes.
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
    /// A record that another process is writing was to be changed.
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

/// What a history is narrowed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Made on this host.
    pub host: Option<String>,
    /// Of this schema, such as `pinwise.trace/1`, or kind, such as `trace`.
    pub schema: Option<String>,
    /// With this tag.
    pub tag: Option<String>,
    /// Of this question, see [`Summary::subject`].
    pub subject: Option<String>,
    /// Words that all occur in id, title, host, verdict or tags, in any case.
    pub text: Option<String>,
    /// At most this many lines.
    pub limit: Option<usize>,
    /// Without the newest this many.
    pub offset: usize,
}

/// A record's line of the history, and what lists and plots say of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The line.
    pub entry: Entry,
    /// Tags, subject, machine, headline figures.
    pub summary: Summary,
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
    /// The record, of whatever kind. Of a comparison that was killed, with the
    /// runs that are there.
    ///
    /// # Errors
    /// [`StoreError::Record`] where it is damaged, newer or of no known kind.
    pub fn record(&self) -> Result<AnyRecord, StoreError> {
        match AnyRecord::read(&self.body).map_err(|reason| self.refusal_error(reason))? {
            AnyRecord::Comparison(_) => Ok(self.comparison()?.into()),
            other => Ok(other),
        }
    }

    fn refusal_error(&self, reason: RecordError) -> StoreError {
        StoreError::Record {
            id: self.entry.id.clone(),
            reason,
        }
    }

    /// The record as JSON, as pages and exports get it: of a comparison that
    /// was not finished, with the runs that are there.
    ///
    /// # Errors
    /// [`StoreError::Record`] where it is damaged, newer or of no known schema.
    pub fn whole(&self) -> Result<Box<RawValue>, StoreError> {
        let kind = Kind::of_text(&self.body).map_err(|reason| self.refusal_error(reason))?;
        let whole = match kind {
            Kind::Comparison if !self.entry.is_complete => to_raw_value(&self.comparison()?),
            _ => RawValue::from_string(self.body.clone()),
        };
        whole.map_err(|error| self.refusal_error(error.into()))
    }

    /// The record of this kind that this is.
    ///
    /// # Errors
    /// [`StoreError::Record`] where it is damaged, newer or of another kind.
    pub fn decode<R: Record>(&self) -> Result<R, StoreError> {
        pinwise_record::read(&self.body).map_err(|reason| self.refusal_error(reason))
    }

    /// The comparison that this is. Of one that was killed, whole blocks
    /// count and the rest is kept beside them; it has no verdict.
    ///
    /// # Errors
    /// [`StoreError::Record`] where it is damaged, newer or no comparison.
    pub fn comparison(&self) -> Result<Comparison, StoreError> {
        let mut record: Comparison = self.decode()?;
        let runs: Vec<(usize, RunRecord)> = self
            .runs
            .iter()
            .map(|(arm, json)| Ok((*arm, serde_json::from_str(json)?)))
            .collect::<Result<_, serde_json::Error>>()
            .map_err(|error| self.refusal_error(error.into()))?;
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
            ..ComparePlan::of_placements(command, &topology, &placements).unwrap()
        };
        compare::run(&plan, &mut machine, observer).unwrap()
    }

    pub(crate) fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a/b/pinwise.db")).unwrap();
        (folder, store)
    }
}
