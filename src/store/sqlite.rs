//! The store in an SQLite file.
//!
//! Write-ahead logging without a sync per commit: a killed process loses
//! nothing; a power cut may lose the last seconds but corrupts nothing. The
//! runs of a record that still grows stand in a journal beside the file; one
//! whose writer was killed is taken in when the store is next opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};

use super::journal::{self, Journal, Orphan};
use super::{Entry, StoreError, Stored};
use crate::record::{Comparison, Keepsake, RunRecord};

/// How long to wait for another process's lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ids listed where the beginning of one fits several.
const SHOWN_MATCHES: usize = 3;

/// Steps from an empty file to the newest schema; `user_version` counts them.
const MIGRATIONS: [&str; 1] = ["
    CREATE TABLE record (
        id       TEXT PRIMARY KEY NOT NULL,
        schema   TEXT NOT NULL,
        time     TEXT NOT NULL,
        host     TEXT NOT NULL,
        title    TEXT NOT NULL,
        verdict  TEXT NOT NULL,
        complete INTEGER NOT NULL,
        body     TEXT NOT NULL
    );
    CREATE INDEX record_by_time ON record (time);
    CREATE TABLE run (
        record TEXT NOT NULL REFERENCES record (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        arm    INTEGER NOT NULL,
        body   TEXT NOT NULL,
        PRIMARY KEY (record, number)
    ) WITHOUT ROWID;
"];

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    journal: Option<Journal>,
}

impl Store {
    /// Opens a store, making file, folder and tables where they are missing.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be opened, is locked, damaged or newer.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| StoreError::Open {
                path: path.display().to_string(),
                reason: error.to_string(),
            })?;
        }
        let connection = Connection::open(path).map_err(|error| StoreError::Open {
            path: path.display().to_string(),
            reason: error.to_string(),
        })?;
        let mut store = Self {
            connection,
            path: path.to_owned(),
            journal: None,
        };
        store.refuse_newer()?;
        store.prepare().map_err(|error| store.explain(&error))?;
        store.migrate().map_err(|error| store.explain(&error))?;
        store
            .adopt_orphans()
            .map_err(|error| store.explain(&error))?;
        Ok(store)
    }

    /// Writes a record that has just begun.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written.
    pub fn begin(&mut self, record: &Comparison) -> Result<(), StoreError> {
        self.put(record, false)
            .map_err(|error| self.explain(&error))?;
        let journal = Journal::create(&self.path, &record.id).map_err(|e| self.cannot_write(&e))?;
        self.journal = Some(journal);
        Ok(())
    }

    /// Writes a record, in place of what was kept of it before.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written.
    pub fn keep(&mut self, record: &(impl Keepsake + serde::Serialize)) -> Result<(), StoreError> {
        let line = record.entry();
        let body = serde_json::to_string(record).unwrap_or_default();
        let row = params![
            line.id,
            line.schema,
            line.time,
            line.host,
            line.title,
            line.verdict,
            line.is_complete,
            body
        ];
        self.replace_row(&line.id, row)
            .map_err(|error| self.explain(&error))
    }

    fn replace_row(&self, id: &str, row: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        transaction.execute("DELETE FROM record WHERE id = ?1", [id])?;
        self.write_row(row)?;
        transaction.commit()
    }

    /// The newest complete record of this schema and host.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn newest(&self, schema: &str, host: &str) -> Result<Option<Stored>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM record WHERE schema = ?1 AND host = ?2 AND complete
             ORDER BY time DESC, rowid DESC LIMIT 1"
        );
        let found = self
            .connection
            .query_row(&sql, [schema, host], with_body)
            .optional()
            .map_err(|error| self.explain(&error))?;
        Ok(found.map(|(entry, body)| Stored {
            entry,
            body,
            runs: Vec::new(),
        }))
    }

    /// The newest record of this schema, complete or not, of whatever host.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn newest_of(&self, schema: &str) -> Result<Option<Stored>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM record WHERE schema = ?1
             ORDER BY time DESC, rowid DESC LIMIT 1"
        );
        let found = self
            .connection
            .query_row(&sql, [schema], with_body)
            .optional()
            .map_err(|error| self.explain(&error))?;
        Ok(found.map(|(entry, body)| Stored {
            entry,
            body,
            runs: Vec::new(),
        }))
    }

    /// Adds a run that has just finished to the record begun last.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written.
    pub fn add_run(&mut self, arm: usize, run: &RunRecord) -> Result<(), StoreError> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let written = journal.add(arm, run);
        written.map_err(|error| self.cannot_write(&error))
    }

    /// Writes a record that is finished, in place of its parts.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written; the parts then stay.
    pub fn finish(&mut self, record: &Comparison) -> Result<(), StoreError> {
        self.replace_parts(record)
            .map_err(|error| self.explain(&error))?;
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
        Ok(())
    }

    /// Takes back a record that was begun and has no run.
    ///
    /// # Errors
    /// [`StoreError`] where it cannot be written; the record then stays.
    pub fn withdraw(&mut self, id: &str) -> Result<(), StoreError> {
        self.connection
            .execute("DELETE FROM record WHERE id = ?1 AND NOT complete", [id])
            .map_err(|error| self.explain(&error))?;
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
        Ok(())
    }

    /// The newest records first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read.
    pub fn list(&self, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.select_entries(limit)
            .map_err(|error| self.explain(&error))
    }

    /// The record whose id begins with `id`, or the newest for `last`.
    ///
    /// # Errors
    /// [`StoreError::Id`] where none or several do.
    pub fn load(&self, id: &str) -> Result<Stored, StoreError> {
        let found = self
            .select_matching(id)
            .map_err(|error| self.explain(&error))?;
        match found.as_slice() {
            [] if id == "last" => Err(StoreError::Id("the store is empty".to_owned())),
            [] => Err(StoreError::Id(format!(
                "no record has the id '{id}' (pinwise history lists them)"
            ))),
            [(entry, body)] => {
                let mut runs = self
                    .select_runs(&entry.id)
                    .map_err(|error| self.explain(&error))?;
                if runs.is_empty() && !entry.is_complete {
                    runs = journal::read(&journal::path(&self.path, &entry.id));
                }
                Ok(Stored {
                    entry: entry.clone(),
                    body: body.clone(),
                    runs,
                })
            }
            several => {
                let ids = several.iter().map(|(entry, _)| entry.id.as_str());
                let shown: Vec<&str> = ids.take(SHOWN_MATCHES).collect();
                let others = if several.len() > SHOWN_MATCHES {
                    " and others"
                } else {
                    ""
                };
                Err(StoreError::Id(format!(
                    "'{id}' could be any of {}{others}",
                    shown.join(", ")
                )))
            }
        }
    }

    fn prepare(&self) -> rusqlite::Result<()> {
        self.connection.pragma_update(None, "journal_mode", "WAL")?;
        self.connection
            .pragma_update(None, "synchronous", "NORMAL")?;
        self.connection.pragma_update(None, "foreign_keys", true)
    }

    /// Looks before anything is changed: a newer store is left as it is.
    fn refuse_newer(&self) -> Result<(), StoreError> {
        let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
        let found = self.version().map_err(|error| self.explain(&error))?;
        if found <= known {
            return Ok(());
        }
        Err(StoreError::Newer {
            path: self.path.display().to_string(),
            found,
            known,
        })
    }

    fn version(&self) -> rusqlite::Result<i64> {
        self.connection.busy_timeout(PATIENCE)?;
        self.connection
            .pragma_query_value(None, "user_version", |row| row.get(0))
    }

    fn migrate(&mut self) -> rusqlite::Result<()> {
        if usize::try_from(self.version()?) == Ok(MIGRATIONS.len()) {
            return Ok(());
        }
        let transaction = self
            .connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        let done: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        for step in MIGRATIONS.iter().skip(done) {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
        transaction.commit()
    }

    fn put(&self, record: &Comparison, is_complete: bool) -> rusqlite::Result<()> {
        let body = serde_json::to_string(record).unwrap_or_default();
        let verdict = if is_complete {
            &record.verdict.sentence
        } else {
            ""
        };
        self.write_row(params![
            record.id,
            record.schema,
            record.started,
            record.host_name(),
            record.title(),
            verdict,
            is_complete,
            body
        ])
    }

    fn write_row(&self, row: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO record (id, schema, time, host, title, verdict, complete, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT (id) DO UPDATE SET
                    verdict = excluded.verdict, complete = excluded.complete, body = excluded.body",
            )?
            .execute(row)?;
        Ok(())
    }

    /// Takes in the journals whose writers are gone.
    fn adopt_orphans(&mut self) -> rusqlite::Result<()> {
        for orphan in journal::orphans(&self.path) {
            match self.adopt(&orphan) {
                Ok(()) => orphan.remove(),
                // Where nothing can be written for now, as on a full disk, its
                // runs are read from where they stand.
                Err(error) if is_of_the_moment(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn adopt(&mut self, orphan: &Orphan) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        for (number, (arm, body)) in orphan.runs().into_iter().enumerate() {
            transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO run (record, number, arm, body)
                     SELECT id, ?2, ?3, ?4 FROM record WHERE id = ?1 AND NOT complete",
                )?
                .execute(params![orphan.id(), number, arm, body])?;
        }
        transaction.commit()
    }

    fn replace_parts(&self, record: &Comparison) -> rusqlite::Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        // Not an update: it may be that its beginning could not be written.
        self.put(record, true)?;
        transaction.execute("DELETE FROM run WHERE record = ?1", [&record.id])?;
        transaction.commit()
    }

    fn select_entries(&self, limit: usize) -> rusqlite::Result<Vec<Entry>> {
        self.connection
            .prepare(
                "SELECT id, schema, time, host, title, verdict, complete FROM record
                 ORDER BY time DESC, rowid DESC LIMIT ?1",
            )?
            .query_map([limit], entry)?
            .collect()
    }

    fn select_matching(&self, id: &str) -> rusqlite::Result<Vec<(Entry, String)>> {
        if id == "last" {
            let sql =
                format!("SELECT {COLUMNS} FROM record ORDER BY time DESC, rowid DESC LIMIT 1");
            let newest = self.connection.query_row(&sql, [], with_body).optional()?;
            return Ok(newest.into_iter().collect());
        }
        let exact = format!("SELECT {COLUMNS} FROM record WHERE id = ?1");
        let same = self
            .connection
            .query_row(&exact, [id], with_body)
            .optional()?;
        if let Some(same) = same {
            return Ok(vec![same]);
        }
        let sql = format!(
            "SELECT {COLUMNS} FROM record WHERE substr(id, 1, length(?1)) = ?1 ORDER BY time LIMIT ?2"
        );
        self.connection
            .prepare(&sql)?
            .query_map(params![id, SHOWN_MATCHES + 1], with_body)?
            .collect()
    }

    fn select_runs(&self, id: &str) -> rusqlite::Result<Vec<(usize, String)>> {
        self.connection
            .prepare("SELECT arm, body FROM run WHERE record = ?1 ORDER BY number")?
            .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }

    fn cannot_write(&self, error: &std::io::Error) -> StoreError {
        StoreError::Write {
            path: self.path.display().to_string(),
            reason: error.to_string(),
        }
    }

    fn explain(&self, error: &rusqlite::Error) -> StoreError {
        let path = self.path.display().to_string();
        let reason = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Locked { path }
            }
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                StoreError::Damaged { path, reason }
            }
            Some(ErrorCode::DiskFull | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure) => {
                StoreError::Write { path, reason }
            }
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                StoreError::Open { path, reason }
            }
            _ => StoreError::Damaged { path, reason },
        }
    }
}

/// May it be well later, with nothing wrong in the store?
fn is_of_the_moment(error: &rusqlite::Error) -> bool {
    use ErrorCode as Code;
    matches!(
        error.sqlite_error_code(),
        Some(
            Code::DatabaseBusy
                | Code::DatabaseLocked
                | Code::DiskFull
                | Code::ReadOnly
                | Code::SystemIoFailure
        )
    )
}

/// Columns of [`with_body`].
const COLUMNS: &str = "id, schema, time, host, title, verdict, complete, body";

fn with_body(row: &Row<'_>) -> rusqlite::Result<(Entry, String)> {
    Ok((entry(row)?, row.get(7)?))
}

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        id: row.get(0)?,
        schema: row.get(1)?,
        time: row.get(2)?,
        host: row.get(3)?,
        title: row.get(4)?,
        verdict: row.get(5)?,
        is_complete: row.get(6)?,
    })
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
