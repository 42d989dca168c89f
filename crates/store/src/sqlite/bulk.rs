//! Bulk writes, and records that must be new.

use rusqlite::{Row, Transaction, TransactionBehavior, params, params_from_iter};

use super::Sqlite;
use super::lines::{self, read_entry};
use crate::{Entry, Filter, Prepared, StoreError};

impl Sqlite {
    /// Writes records, each replacing its older version, all or none.
    pub(crate) fn keep_all(&mut self, records: &[Prepared]) -> Result<(), StoreError> {
        let keep = || -> rusqlite::Result<()> {
            let transaction =
                Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            for record in records {
                self.replace_in_transaction(record)?;
            }
            transaction.commit()
        };
        keep().map_err(|error| self.explain(&error))
    }

    /// Writes records whose ids do not exist; returns how many.
    pub(crate) fn create_all(&mut self, records: &[Prepared]) -> Result<usize, StoreError> {
        let create = || -> rusqlite::Result<usize> {
            let transaction =
                Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let mut created = 0;
            for record in records {
                created += usize::from(self.put_new(record, &[])?);
            }
            transaction.commit()?;
            Ok(created)
        };
        create().map_err(|error| self.explain(&error))
    }

    /// Writes a record with its runs unless there is one with its id.
    pub(crate) fn create(
        &mut self,
        record: &Prepared,
        runs: &[(usize, String)],
    ) -> Result<bool, StoreError> {
        let create = || -> rusqlite::Result<bool> {
            let transaction =
                Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let is_new = self.put_new(record, runs)?;
            transaction.commit()?;
            Ok(is_new)
        };
        create().map_err(|error| self.explain(&error))
    }

    /// Writes a record unless its id exists, within the caller's transaction.
    fn put_new(&self, record: &Prepared, runs: &[(usize, String)]) -> rusqlite::Result<bool> {
        let id = &record.entry.id;
        let exists = self
            .connection
            .prepare_cached("SELECT 1 FROM record WHERE id = ?1")?
            .exists([id])?;
        if exists {
            return Ok(false);
        }
        self.put_record(record)?;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO run (record, number, arm, body) VALUES (?1, ?2, ?3, ?4)",
        )?;
        for (number, (arm, body)) in runs.iter().enumerate() {
            insert.execute(params![id, number, arm, body])?;
        }
        Ok(true)
    }

    pub(crate) fn visit_bodies(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(Entry, &str),
    ) -> Result<(), StoreError> {
        self.query_bodies(filter, visit)
            .map_err(|error| self.explain(&error))
    }

    fn query_bodies(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(Entry, &str),
    ) -> rusqlite::Result<()> {
        let transaction = self.connection.unchecked_transaction()?;
        let schemas = lines::select_schemas(&transaction)?;
        let condition = lines::build_condition(filter, &schemas);
        let sql = format!(
            "SELECT {}, record.body FROM line JOIN record ON record.id = line.id {}
             ORDER BY line.time DESC, line.number DESC {}",
            lines::COLUMNS,
            condition.sql,
            condition.page_clause()
        );
        let mut statement = transaction.prepare(&sql)?;
        let mut rows =
            statement.query(params_from_iter(lines::collect_values(&condition, filter)))?;
        while let Some(row) = rows.next()? {
            let row: &Row<'_> = row;
            // A body that is not text is damaged and must not hide the others.
            let body = row.get_ref(7)?.as_bytes().unwrap_or_default();
            visit(read_entry(row)?, &String::from_utf8_lossy(body));
        }
        Ok(())
    }
}
