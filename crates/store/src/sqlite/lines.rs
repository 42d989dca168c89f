//! The lines of the history: written with every record, found by filters.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::condition::{Condition, Dialect};
use crate::{Entry, Filter, FoundRecords, ListedRecord, build_search_text, matching};
use pinwise_record::Summary;

/// Columns that [`read_entry`] reads.
pub(super) const COLUMNS: &str =
    "line.id, line.schema, line.time, line.host, line.title, line.verdict, line.complete";

pub(super) fn read_entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
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

/// Writes the line of a record that is in the store, within the caller's
/// transaction.
pub(super) fn write_line(
    connection: &Connection,
    entry: &Entry,
    summary: &Summary,
) -> rusqlite::Result<()> {
    let number: i64 = connection
        .prepare_cached(
            "INSERT INTO line (id, schema, time, host, title, verdict, complete, subject, words)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (id) DO UPDATE SET
                title = excluded.title, verdict = excluded.verdict, complete = excluded.complete,
                subject = excluded.subject, words = excluded.words
             RETURNING number",
        )?
        .query_row(
            params![
                entry.id,
                entry.schema,
                entry.time,
                entry.host,
                entry.title,
                entry.verdict,
                entry.is_complete,
                summary.subject,
                build_search_text(entry, summary)
            ],
            |row| row.get(0),
        )?;
    let body = serde_json::to_string(summary).unwrap_or_default();
    connection
        .prepare_cached("INSERT OR REPLACE INTO outline (number, body) VALUES (?1, ?2)")?
        .execute(params![number, body])?;
    connection
        .prepare_cached("DELETE FROM tag WHERE number = ?1")?
        .execute([number])?;
    for tag in &summary.tags {
        connection
            .prepare_cached("INSERT OR IGNORE INTO tag (name, number) VALUES (?1, ?2)")?
            .execute(params![tag, number])?;
    }
    Ok(())
}

/// Finds records by a filter, newest first.
pub(super) fn find(connection: &Connection, filter: &Filter) -> rusqlite::Result<FoundRecords> {
    let names = |sql: &str| select_names(connection, sql);
    let schemas = select_schemas(connection)?;
    let condition = build_condition(filter, &schemas);
    Ok(FoundRecords {
        lines: select_page(connection, &condition, filter)?,
        total: count_lines(connection, &condition)?,
        hosts: names(&matching::select_distinct("host"))?,
        tags: names("SELECT DISTINCT name FROM tag ORDER BY name")?,
        schemas,
    })
}

/// Schemas of all records, sorted.
pub(super) fn select_schemas(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    select_names(connection, &matching::select_distinct("schema"))
}

fn select_names(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached(sql)?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// The condition of a filter.
pub(super) fn build_condition(filter: &Filter, schemas: &[String]) -> Condition {
    let dialect = Dialect {
        placeholder: '?',
        position: "instr",
        subject: "line.subject = @",
    };
    Condition::from_filter(filter, schemas, &dialect)
}

/// The values of a condition, and those of a limit and an offset after it.
pub(super) fn collect_values(
    condition: &Condition,
    filter: &Filter,
) -> impl Iterator<Item = Value> {
    let to_value = |count: usize| Value::from(i64::try_from(count).unwrap_or(i64::MAX));
    let limit = filter.limit.map_or(Value::from(-1), to_value);
    let values = condition.values.iter().cloned().map(Value::from);
    values.chain([limit, to_value(filter.offset)])
}

fn select_page(
    connection: &Connection,
    condition: &Condition,
    filter: &Filter,
) -> rusqlite::Result<Vec<ListedRecord>> {
    let sql = format!(
        "SELECT {COLUMNS}, outline.body
         FROM line LEFT JOIN outline ON outline.number = line.number {}
         ORDER BY line.time DESC, line.number DESC {}",
        condition.sql,
        condition.page_clause()
    );
    let read_listed = |row: &Row<'_>| -> rusqlite::Result<ListedRecord> {
        let summary: Option<String> = row.get(7)?;
        Ok(ListedRecord {
            entry: read_entry(row)?,
            summary: summary.as_deref().map(read_summary).unwrap_or_default(),
        })
    };
    connection
        .prepare_cached(&sql)?
        .query_map(
            params_from_iter(collect_values(condition, filter)),
            read_listed,
        )?
        .collect()
}

fn read_summary(json: &str) -> Summary {
    serde_json::from_str(json).unwrap_or_default()
}

fn count_lines(connection: &Connection, condition: &Condition) -> rusqlite::Result<usize> {
    let sql = format!("SELECT count(*) FROM line {}", condition.sql);
    let found = connection
        .prepare_cached(&sql)?
        .query_row(params_from_iter(&condition.values), |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or_default())
}
