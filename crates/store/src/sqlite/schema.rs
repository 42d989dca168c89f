//! The store's schema and the steps from older ones to it.
//!
//! A step is one transaction with all before it: killed in the middle, the
//! store is what it was, and of two processes that come at once one waits.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior};

use super::lines;
use pinwise_record::{Entry, Summary};

/// A step: what SQL does, and what only pinwise can.
type Step = (&'static str, fn(&Transaction<'_>) -> rusqlite::Result<()>);

/// Steps from an empty file to the newest schema; `user_version` counts them.
pub(super) const MIGRATIONS: [Step; 2] = [(RECORDS, |_| Ok(())), (LINES, summarise_all)];

/// Records whole, and the runs of those that were cut off.
const RECORDS: &str = "
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
";

/// The history in tables of its own, so that no list reads a body: rows of
/// `record` are spread over as many pages as their bodies fill.
const LINES: &str = "
    CREATE TABLE line (
        number   INTEGER PRIMARY KEY,
        id       TEXT NOT NULL UNIQUE REFERENCES record (id) ON DELETE CASCADE,
        schema   TEXT NOT NULL,
        time     TEXT NOT NULL,
        host     TEXT NOT NULL,
        title    TEXT NOT NULL,
        verdict  TEXT NOT NULL,
        complete INTEGER NOT NULL,
        subject  TEXT,
        words    TEXT NOT NULL
    );
    CREATE INDEX line_by_time ON line (time);
    CREATE INDEX line_by_host ON line (host, time);
    CREATE INDEX line_by_schema ON line (schema, time);
    CREATE INDEX line_by_subject ON line (subject, time);
    CREATE TABLE outline (
        number INTEGER PRIMARY KEY REFERENCES line (number) ON DELETE CASCADE,
        body   TEXT NOT NULL
    );
    CREATE TABLE tag (
        name   TEXT NOT NULL,
        number INTEGER NOT NULL REFERENCES line (number) ON DELETE CASCADE,
        PRIMARY KEY (name, number)
    ) WITHOUT ROWID;
    CREATE INDEX tag_by_line ON tag (number);
";

/// Brings a store to the newest schema.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let done: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (sql, fill) in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(sql)?;
        fill(&transaction)?;
    }
    transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    transaction.commit()
}

/// Writes the lines of records that had none, one body in memory at a time.
fn summarise_all(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut records = transaction.prepare(
        "SELECT id, schema, time, host, title, verdict, complete, body FROM record ORDER BY rowid",
    )?;
    let mut rows = records.query([])?;
    while let Some(row) = rows.next()? {
        lines::write(transaction, &old_entry(row)?, &old_summary(row.get_ref(7)?))?;
    }
    Ok(())
}

/// What is no text in an old row is damage, which must not keep the others
/// from being listed.
fn old_entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let text = |column| -> rusqlite::Result<String> {
        let value = row.get_ref(column)?;
        let bytes = value.as_bytes().unwrap_or_default();
        Ok(String::from_utf8_lossy(bytes).into_owned())
    };
    Ok(Entry {
        id: text(0)?,
        schema: text(1)?,
        time: text(2)?,
        host: text(3)?,
        title: text(4)?,
        verdict: text(5)?,
        is_complete: row.get(6)?,
    })
}

fn old_summary(body: ValueRef<'_>) -> Summary {
    let text = body.as_bytes().ok().map(str::from_utf8);
    match text {
        Some(Ok(text)) => Summary::of(text),
        _ => Summary::default(),
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
