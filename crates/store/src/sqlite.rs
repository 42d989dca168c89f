//! The store in an SQLite file.
//!
//! The file uses write-ahead logging without a sync per commit: if the process is killed, nothing
//! is lost; a power cut may lose the last seconds but corrupts nothing. The runs of a growing
//! record are in a journal beside the file; if its writer was killed, they are taken in when the
//! store is next opened.

mod bulk;
mod lines;
mod opening;
mod schema;
mod upkeep;
mod watching;

use std::path::PathBuf;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};

use super::journal::{self, Orphan, RecordJournal};
use super::{Entry, Filter, FoundRecords, Prepared, StoreError, Stored, matching};
use lines::read_entry;
use opening::Access;
use pinwise_record::RunRecord;

/// An open file.
#[derive(Debug)]
pub(super) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    access: Access,
    journal: Option<RecordJournal>,
}

impl Sqlite {
    pub(super) fn begin(&mut self, record: &Prepared) -> Result<(), StoreError> {
        // The lock comes first, so that no other process takes the record for an abandoned one.
        self.lock_record(&record.entry.id)?;
        self.put_whole(record).map_err(|error| {
            self.unlock_record();
            self.explain(&error)
        })
    }

    fn lock_record(&mut self, id: &str) -> Result<(), StoreError> {
        let journal = RecordJournal::create(&self.path, id).map_err(|e| self.write_error(&e))?;
        self.journal = Some(journal);
        Ok(())
    }

    fn unlock_record(&mut self) {
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
    }

    pub(super) fn keep(&mut self, record: &Prepared) -> Result<(), StoreError> {
        // A growing record without runs is locked as well.
        let entry = &record.entry;
        if !entry.is_complete && self.journal.is_none() {
            self.lock_record(&entry.id)?;
        }
        self.replace(record).map_err(|error| self.explain(&error))?;
        // The lock of another record may protect runs that exist nowhere else.
        let journal = self.journal.as_ref();
        if entry.is_complete && journal.is_some_and(|j| j.belongs_to(&self.path, &entry.id)) {
            self.unlock_record();
        }
        Ok(())
    }

    fn replace(&self, record: &Prepared) -> rusqlite::Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        self.replace_in_transaction(record)?;
        transaction.commit()
    }

    /// Writes a record in place of an older one with its runs, within the caller's transaction.
    fn replace_in_transaction(&self, record: &Prepared) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("DELETE FROM record WHERE id = ?1")?
            .execute([&record.entry.id])?;
        self.put_record(record)
    }

    pub(super) fn find_newest_on_host(
        &self,
        schema: &str,
        host: &str,
    ) -> Result<Option<Stored>, StoreError> {
        let newest = "schema = ?1 AND host = ?2 AND complete";
        self.select_newest(newest, &[&schema, &host], 0)
            .map_err(|error| self.explain(&error))
    }

    pub(super) fn find_newest(&self, schema: &str) -> Result<Option<Stored>, StoreError> {
        self.select_newest("schema = ?1", &[&schema], 0)
            .map_err(|error| self.explain(&error))
    }

    pub(super) fn add_run(&mut self, arm: usize, run: &RunRecord) -> Result<(), StoreError> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let written = journal.add(arm, run);
        written.map_err(|error| self.write_error(&error))
    }

    pub(super) fn finish(&mut self, record: &Prepared) -> Result<(), StoreError> {
        self.replace_parts(record)
            .map_err(|error| self.explain(&error))?;
        self.unlock_record();
        Ok(())
    }

    pub(super) fn withdraw(&mut self, id: &str) -> Result<(), StoreError> {
        self.connection
            .execute("DELETE FROM record WHERE id = ?1 AND NOT complete", [id])
            .map_err(|error| self.explain(&error))?;
        self.unlock_record();
        Ok(())
    }

    pub(super) fn list(&self, limit: usize) -> Result<Vec<Entry>, StoreError> {
        self.select_entries(limit)
            .map_err(|error| self.explain(&error))
    }

    pub(super) fn find(&self, filter: &Filter) -> Result<FoundRecords, StoreError> {
        // In one transaction, so that total and lines agree.
        let found = self
            .connection
            .unchecked_transaction()
            .and_then(|transaction| {
                let found = lines::find(&transaction, filter)?;
                transaction.commit()?;
                Ok(found)
            });
        found.map_err(|error| self.explain(&error))
    }

    pub(super) fn load(&self, id: &str) -> Result<Stored, StoreError> {
        let found = self
            .select_matching(id)
            .map_err(|error| self.explain(&error))?;
        let found = found.into_iter().map(|(entry, body)| Stored {
            entry,
            body,
            runs: Vec::new(),
        });
        let mut stored = matching::require_one(id, found.collect())?;
        let id = &stored.entry.id;
        let runs = self.select_runs(id);
        let mut runs = runs.map_err(|error| self.explain(&error))?;
        if runs.is_empty() && !stored.entry.is_complete {
            runs = journal::read(&journal::journal_path(&self.path, id));
        }
        stored.runs = runs;
        Ok(stored)
    }

    /// Writes a record and its line, within the caller's transaction.
    fn put_record(&self, record: &Prepared) -> rusqlite::Result<()> {
        let entry = &record.entry;
        self.connection
            .prepare_cached(
                "INSERT INTO record (id, schema, time, host, title, verdict, complete, body)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                 ON CONFLICT (id) DO UPDATE SET
                    title = excluded.title, verdict = excluded.verdict,
                    complete = excluded.complete, body = excluded.body",
            )?
            .execute(params![
                entry.id,
                entry.schema,
                entry.time,
                entry.host,
                entry.title,
                entry.verdict,
                entry.is_complete,
                record.body
            ])?;
        lines::write_line(&self.connection, entry, &record.summary)
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

    fn put_whole(&self, record: &Prepared) -> rusqlite::Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        self.put_record(record)?;
        transaction.commit()
    }

    fn replace_parts(&self, record: &Prepared) -> rusqlite::Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        // No update, because the record may not have been written when it began.
        self.put_record(record)?;
        transaction.execute("DELETE FROM run WHERE record = ?1", [&record.entry.id])?;
        transaction.commit()
    }

    fn select_entries(&self, limit: usize) -> rusqlite::Result<Vec<Entry>> {
        let sql = format!(
            "SELECT {} FROM line ORDER BY number DESC LIMIT ?1",
            lines::COLUMNS
        );
        self.connection
            .prepare(&sql)?
            .query_map([limit], read_entry)?
            .collect()
    }

    /// The newest record that matches a condition, or with `back` an older one. Newest means
    /// written last: clocks may be set back.
    fn select_newest(
        &self,
        condition: &str,
        values: &[&dyn rusqlite::ToSql],
        back: u32,
    ) -> rusqlite::Result<Option<Stored>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM record WHERE id = (
                SELECT id FROM line WHERE {condition} ORDER BY number DESC LIMIT 1 OFFSET {back}
             )"
        );
        let found = self.connection.query_row(&sql, values, read_entry_and_body);
        let found = found.optional()?;
        Ok(found.map(|(entry, body)| Stored {
            entry,
            body,
            runs: Vec::new(),
        }))
    }

    fn select_matching(&self, id: &str) -> rusqlite::Result<Vec<(Entry, String)>> {
        if let Some(back) = matching::records_back(id) {
            let newest = self.select_newest("TRUE", &[], back)?;
            let newest = newest.map(|stored| (stored.entry, stored.body));
            return Ok(newest.into_iter().collect());
        }
        let exact = format!("SELECT {COLUMNS} FROM record WHERE id = ?1");
        let same = self
            .connection
            .query_row(&exact, [id], read_entry_and_body)
            .optional()?;
        if let Some(same) = same {
            return Ok(vec![same]);
        }
        let find = |condition: &str| -> rusqlite::Result<Vec<(Entry, String)>> {
            let sql = format!(
                "SELECT {COLUMNS} FROM record WHERE id IN (
                    SELECT id FROM line WHERE {condition} ORDER BY id LIMIT ?2
                 ) ORDER BY time, rowid"
            );
            self.connection
                .prepare(&sql)?
                .query_map(params![id, matching::MAX_LISTED + 1], read_entry_and_body)?
                .collect()
        };
        // Ids with the same prefix are neighbours in the index.
        let found = find("id >= ?1 AND id < ?1 || char(0x10FFFF)")?;
        match found.is_empty() {
            true => find("substr(id, -length(?1)) = ?1"),
            false => Ok(found),
        }
    }

    fn select_runs(&self, id: &str) -> rusqlite::Result<Vec<(usize, String)>> {
        self.connection
            .prepare("SELECT arm, body FROM run WHERE record = ?1 ORDER BY number")?
            .query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }

    fn write_error(&self, error: &std::io::Error) -> StoreError {
        StoreError::Write {
            path: self.path.display().to_string(),
            reason: error.to_string(),
        }
    }

    fn explain(&self, error: &rusqlite::Error) -> StoreError {
        let path = self.path.display().to_string();
        let reason = short_reason(error);
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

/// SQLite's message on one line, without the statement.
fn short_reason(error: &rusqlite::Error) -> String {
    let words = match error {
        rusqlite::Error::SqliteFailure(_, Some(words)) => words.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// May the same work succeed later, because the store itself is intact?
fn is_transient(error: &rusqlite::Error) -> bool {
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

/// Columns that [`read_entry_and_body`] reads.
const COLUMNS: &str = "id, schema, time, host, title, verdict, complete, body";

fn read_entry_and_body(row: &Row<'_>) -> rusqlite::Result<(Entry, String)> {
    Ok((read_entry(row)?, row.get(7)?))
}

#[cfg(test)]
mod tests;
