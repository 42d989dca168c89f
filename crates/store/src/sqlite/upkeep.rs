//! Changes of records after they were written: their tags, and their removal.

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::Sqlite;
use super::lines::{self, read_entry};
use crate::{Entry, RemovalResult, StoreError, TagChange, journal};
use pinwise_record::{RecordError, Summary, replace_tags};

impl Sqlite {
    pub(crate) fn retag(
        &mut self,
        id: &str,
        change: impl FnOnce(&[String]) -> Vec<String>,
    ) -> Result<TagChange, StoreError> {
        let id = self.load(id)?.entry.id;
        let retagged = self.retag_exact(&id, change);
        retagged.map_err(|error| match error {
            RetagError::Sqlite(error) => self.explain(&error),
            RetagError::Store(error) => error,
        })
    }

    fn retag_exact(
        &self,
        id: &str,
        change: impl FnOnce(&[String]) -> Vec<String>,
    ) -> Result<TagChange, RetagError> {
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        // Checked within the transaction: a record begins with its lock.
        if journal::is_being_written(&self.path, id) {
            return Err(RetagError::Store(StoreError::BeingWritten {
                id: id.to_owned(),
            }));
        }
        let body: String =
            transaction.query_row("SELECT body FROM record WHERE id = ?1", [id], |row| {
                row.get(0)
            })?;
        let mut summary = Summary::from_json(&body);
        let after = change(&summary.tags);
        let retagged = TagChange {
            id: id.to_owned(),
            before: std::mem::replace(&mut summary.tags, after.clone()),
            after,
        };
        if retagged.before == retagged.after {
            return Ok(retagged);
        }
        let body = replace_tags(&body, &retagged.after).map_err(|error| {
            RetagError::Store(StoreError::Record {
                id: id.to_owned(),
                reason: RecordError::Damaged(error),
            })
        })?;
        transaction.execute(
            "UPDATE record SET body = ?2 WHERE id = ?1",
            params![id, body],
        )?;
        lines::write_line(&transaction, &select_line(&transaction, id)?, &summary)?;
        transaction.commit()?;
        Ok(retagged)
    }

    pub(crate) fn bytes_of(&self, id: &str) -> Result<u64, StoreError> {
        let bytes = self
            .connection
            .prepare_cached(
                "SELECT octet_length(body)
                    + (SELECT coalesce(sum(octet_length(run.body)), 0) FROM run WHERE record = ?1)
                 FROM record WHERE id = ?1",
            )
            .and_then(|mut query| query.query_row([id], |row| row.get(0)).optional());
        let bytes: Option<u64> = bytes.map_err(|error| self.explain(&error))?;
        Ok(bytes.unwrap_or_default())
    }

    pub(crate) fn remove(&mut self, ids: &[String]) -> Result<RemovalResult, StoreError> {
        self.remove_all(ids).map_err(|error| self.explain(&error))
    }

    fn remove_all(&self, ids: &[String]) -> rusqlite::Result<RemovalResult> {
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        let mut removed = RemovalResult::default();
        for id in ids {
            if journal::is_being_written(&self.path, id) {
                removed.being_written.push(id.clone());
                continue;
            }
            transaction
                .prepare_cached("DELETE FROM record WHERE id = ?1")?
                .execute([id])?;
            removed.gone.push(id.clone());
        }
        transaction.commit()?;
        Ok(removed)
    }

    /// Rewrites the file: SQLite keeps the space of removed records for new ones, and can shorten a
    /// file step by step only if it was created with `auto_vacuum`.
    pub(crate) fn reclaim_space(&mut self) -> Result<u64, StoreError> {
        let vacuum = || -> rusqlite::Result<u64> {
            let before = measure_size(&self.connection)?;
            self.connection.execute_batch("VACUUM")?;
            // The new file stays in the log until it is checkpointed.
            self.connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(before.saturating_sub(measure_size(&self.connection)?))
        };
        vacuum().map_err(|error| self.explain(&error))
    }
}

fn select_line(connection: &Connection, id: &str) -> rusqlite::Result<Entry> {
    let sql = format!("SELECT {} FROM line WHERE id = ?1", lines::COLUMNS);
    connection.query_row(&sql, [id], read_entry)
}

fn measure_size(connection: &Connection) -> rusqlite::Result<u64> {
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let length: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(pages * length)
}

/// An error of SQLite, or one that is already the store's.
enum RetagError {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for RetagError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

#[cfg(test)]
mod tests;
