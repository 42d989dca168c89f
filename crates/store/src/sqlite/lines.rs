//! The lines of the history: written beside every record, found by filters.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::{Entry, Filter, Found, Listed, is_of, words};
use pinwise_record::Summary;

/// Columns of [`entry`].
pub(super) const COLUMNS: &str =
    "line.id, line.schema, line.time, line.host, line.title, line.verdict, line.complete";

pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
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

/// Writes the line of a record that stands in the store, within the caller's
/// transaction.
pub(super) fn write(
    connection: &Connection,
    entry: &Entry,
    summary: &Summary,
) -> rusqlite::Result<()> {
    let number: i64 = connection
        .prepare_cached(
            "INSERT INTO line (id, schema, time, host, title, verdict, complete, subject, words)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (id) DO UPDATE SET
                verdict = excluded.verdict, complete = excluded.complete,
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
                words(entry, summary)
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

/// What a filter finds, newest first.
pub(super) fn find(connection: &Connection, filter: &Filter) -> rusqlite::Result<Found> {
    let names = |sql: &str| names(connection, sql);
    let schemas = schemas(connection)?;
    let condition = Condition::of(filter, &schemas);
    Ok(Found {
        lines: page(connection, &condition, filter)?,
        total: count(connection, &condition)?,
        hosts: names(&distinct("host"))?,
        tags: names("SELECT DISTINCT name FROM tag ORDER BY name")?,
        schemas,
    })
}

/// Schemas of all records, sorted.
pub(super) fn schemas(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    names(connection, &distinct("schema"))
}

fn names(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached(sql)?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// All values of a column that leads an index: one step of the index for each
/// value, not for each record.
fn distinct(column: &str) -> String {
    format!(
        "WITH RECURSIVE found (value) AS (
            SELECT min({column}) FROM line
            UNION ALL
            SELECT (SELECT min({column}) FROM line WHERE {column} > value) FROM found
            WHERE value IS NOT NULL
         )
         SELECT value FROM found WHERE value IS NOT NULL"
    )
}

/// The part of a query that narrows it.
pub(super) struct Condition {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Condition {
    pub(super) fn of(filter: &Filter, schemas: &[String]) -> Self {
        let mut parts: Vec<String> = Vec::new();
        let mut values: Vec<Value> = Vec::new();
        let columns = [("host", &filter.host), ("subject", &filter.subject)];
        for (column, value) in columns {
            if let Some(value) = value {
                parts.push(format!("line.{column} = ?"));
                values.push(value.clone().into());
            }
        }
        if let Some(wanted) = &filter.schema {
            let of_kind = schemas.iter().filter(|schema| is_of(schema, wanted));
            let of_kind: Vec<Value> = of_kind.map(|schema| schema.clone().into()).collect();
            let places = vec!["?"; of_kind.len()].join(", ");
            parts.push(format!("line.schema IN ({places})"));
            values.extend(of_kind);
        }
        if let Some(tag) = &filter.tag {
            parts.push("line.number IN (SELECT number FROM tag WHERE name = ?)".to_owned());
            values.push(tag.clone().into());
        }
        for word in filter.text.iter().flat_map(|text| text.split_whitespace()) {
            parts.push("instr(line.words, ?) > 0".to_owned());
            values.push(word.to_lowercase().into());
        }
        let sql = match parts.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", parts.join(" AND ")),
        };
        Self { sql, values }
    }

    /// Its values, and those of a limit and an offset after it.
    pub(super) fn paged(&self, filter: &Filter) -> impl Iterator<Item = Value> {
        let number = |count: usize| Value::from(i64::try_from(count).unwrap_or(i64::MAX));
        let limit = filter.limit.map_or(Value::from(-1), number);
        let page = [limit, number(filter.offset)];
        self.values.iter().cloned().chain(page)
    }
}

fn page(
    connection: &Connection,
    condition: &Condition,
    filter: &Filter,
) -> rusqlite::Result<Vec<Listed>> {
    let sql = format!(
        "SELECT {COLUMNS}, outline.body
         FROM line LEFT JOIN outline ON outline.number = line.number {}
         ORDER BY line.time DESC, line.number DESC LIMIT ? OFFSET ?",
        condition.sql
    );
    let listed = |row: &Row<'_>| -> rusqlite::Result<Listed> {
        let summary: Option<String> = row.get(7)?;
        Ok(Listed {
            entry: entry(row)?,
            summary: summary.as_deref().map(read_summary).unwrap_or_default(),
        })
    };
    connection
        .prepare_cached(&sql)?
        .query_map(params_from_iter(condition.paged(filter)), listed)?
        .collect()
}

fn read_summary(json: &str) -> Summary {
    serde_json::from_str(json).unwrap_or_default()
}

fn count(connection: &Connection, condition: &Condition) -> rusqlite::Result<usize> {
    let sql = format!("SELECT count(*) FROM line {}", condition.sql);
    let found = connection
        .prepare_cached(&sql)?
        .query_row(params_from_iter(&condition.values), |row| row.get(0))
        .optional()?;
    Ok(found.unwrap_or_default())
}
