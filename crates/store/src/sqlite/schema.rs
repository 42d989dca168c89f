//! The store's schema. It is created in one transaction: if that is interrupted, the file is
//! unchanged, and of two simultaneous processes one waits.

use rusqlite::{Connection, TransactionBehavior};

/// The version of the schema, kept in `user_version`.
pub(super) const VERSION: i64 = 1;

/// Whole records, and the runs of unfinished ones. The history has separate tables, so that no list
/// reads a body: rows of `record` are spread over as many pages as their bodies fill.
const TABLES: &str = "
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

/// Creates the tables of an empty file.
pub(super) fn create_tables(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}
