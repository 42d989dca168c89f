//! Finds and reads records.

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::Postgres;
use super::link::{Link, Trouble, replace_nul, value};
use crate::condition::{Condition, Dialect};
use crate::{
    Entry, Filter, FoundRecords, ListedRecord, StoreError, Stored, journal, matching, spool,
};
use pinwise_record::Summary;

/// Columns that [`read_entry`] reads.
const COLUMNS: &str =
    "line.id, line.schema, line.time, line.host, line.title, line.verdict, line.complete";

/// Newest first; ties in the order of writing.
const ORDER_NEWEST: &str = "ORDER BY line.time DESC, line.number DESC";

/// Begins a transaction whose reads all see the same moment.
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

impl Postgres {
    /// The newest complete record of this schema and host.
    pub(crate) fn find_newest_on_host(
        &self,
        schema: &str,
        host: &str,
    ) -> Result<Option<Stored>, StoreError> {
        let condition = "line.schema = $1 AND line.host = $2 AND line.complete";
        let values: [(&(dyn ToSql + Sync), Type); 2] = [
            (&replace_nul(schema), Type::TEXT),
            (&replace_nul(host), Type::TEXT),
        ];
        let newest = self.select_newest(condition, &values, 0);
        newest.map_err(|trouble| self.explain(trouble))
    }

    /// The newest record of this schema, complete or not, of whatever host.
    pub(crate) fn find_newest(&self, schema: &str) -> Result<Option<Stored>, StoreError> {
        self.select_newest("line.schema = $1", &[(&replace_nul(schema), Type::TEXT)], 0)
            .map_err(|trouble| self.explain(trouble))
    }

    pub(crate) fn list(&self, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let list = || -> Result<Vec<Entry>, Trouble> {
            let sql = format!("SELECT {COLUMNS} FROM line ORDER BY line.number DESC LIMIT $1");
            let rows = self.link.query(&sql, &[(&to_bigint(limit), Type::INT8)])?;
            rows.iter().map(read_entry).collect()
        };
        list().map_err(|trouble| self.explain(trouble))
    }

    /// Finds records by a filter, newest first, without reading a body.
    pub(crate) fn find(&self, filter: &Filter) -> Result<FoundRecords, StoreError> {
        self.link
            .transaction(BEGIN_SNAPSHOT, |link| find_lines(link, filter))
            .map_err(|trouble| self.explain(trouble))
    }

    /// Calls `visit` with line and body of each record found by a filter, newest first.
    pub(crate) fn visit_bodies(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(Entry, &str),
    ) -> Result<(), StoreError> {
        let visit_all = |visit: &mut dyn FnMut(Entry, &str)| {
            let condition = build_condition(
                filter,
                &select_names(&self.link, &matching::select_distinct("schema"))?,
            );
            let sql = format!(
                "SELECT {COLUMNS}, record.body FROM line JOIN record ON record.id = line.id {}
                 {ORDER_NEWEST} {}",
                condition.sql,
                condition.page_clause()
            );
            let (limit, offset) = find_page(filter);
            let mut values = borrow_values(&condition);
            values.extend(borrow_page(&limit, &offset));
            self.link.visit_rows(&sql, &values, &mut |row| {
                let body: &str = row
                    .try_get(7)
                    .map_err(|error| Trouble::Refused(error.to_string()))?;
                visit(read_entry(row)?, body);
                Ok(())
            })
        };
        visit_all(visit).map_err(|trouble| self.explain(trouble))
    }

    /// The record whose id begins or ends with `id`, or the newest for `last`.
    pub(crate) fn load(&self, id: &str) -> Result<Stored, StoreError> {
        let found = self
            .select_matching(id)
            .map_err(|trouble| self.explain(trouble))?;
        let mut stored = matching::require_one(id, found)?;
        if !stored.entry.is_complete {
            let runs = self.select_runs(&stored.entry.id);
            stored.runs = runs.map_err(|trouble| self.explain(trouble))?;
            // The writer, if it runs on this host, may not have sent the last runs.
            let name = spool::file_name(&stored.entry.id);
            let written = journal::read(&journal::journal_path(&self.spool.journal_base(), &name));
            if written.len() > stored.runs.len() {
                stored.runs = written;
            }
        }
        Ok(stored)
    }

    fn select_newest(
        &self,
        condition: &str,
        values: &[(&(dyn ToSql + Sync), Type)],
        back: u32,
    ) -> Result<Option<Stored>, Trouble> {
        let sql = format!(
            "SELECT {COLUMNS}, record.body FROM line JOIN record ON record.id = line.id
             WHERE {condition} ORDER BY line.number DESC LIMIT 1 OFFSET {back}"
        );
        let rows = self.link.query(&sql, values)?;
        rows.first().map(read_stored).transpose()
    }

    fn select_matching(&self, id: &str) -> Result<Vec<Stored>, Trouble> {
        if let Some(back) = matching::records_back(id) {
            return Ok(self.select_newest("TRUE", &[], back)?.into_iter().collect());
        }
        let exact = self.select_newest("line.id = $1", &[(&replace_nul(id), Type::TEXT)], 0)?;
        if let Some(exact) = exact {
            return Ok(vec![exact]);
        }
        let limit = to_bigint(matching::MAX_LISTED + 1);
        let find = |condition: &str| {
            let sql = format!(
                "SELECT {COLUMNS}, record.body FROM line JOIN record ON record.id = line.id
                 WHERE {condition} ORDER BY line.id LIMIT $2"
            );
            let values: [(&(dyn ToSql + Sync), Type); 2] =
                [(&replace_nul(id), Type::TEXT), (&limit, Type::INT8)];
            self.link.query(&sql, &values)
        };
        // Ids with the same prefix are neighbours in the index.
        let mut rows = find("line.id >= $1 AND line.id < $1 || chr(1114111)")?;
        if rows.is_empty() {
            rows = find("right(line.id, length($1)) = $1")?;
        }
        rows.iter().map(read_stored).collect()
    }

    fn select_runs(&self, id: &str) -> Result<Vec<(usize, String)>, Trouble> {
        let rows = self.link.query(
            "SELECT arm, body FROM run WHERE record = $1 ORDER BY number",
            &[(&replace_nul(id), Type::TEXT)],
        )?;
        let read_run = |row: &Row| {
            let arm: i32 = value(row, 0)?;
            Ok((usize::try_from(arm).unwrap_or(0), value(row, 1)?))
        };
        rows.iter().map(read_run).collect()
    }
}

pub(super) fn read_entry(row: &Row) -> Result<Entry, Trouble> {
    Ok(Entry {
        id: value(row, 0)?,
        schema: value(row, 1)?,
        time: value(row, 2)?,
        host: value(row, 3)?,
        title: value(row, 4)?,
        verdict: value(row, 5)?,
        is_complete: value(row, 6)?,
    })
}

fn read_stored(row: &Row) -> Result<Stored, Trouble> {
    Ok(Stored {
        entry: read_entry(row)?,
        body: value(row, 7)?,
        runs: Vec::new(),
    })
}

fn find_lines(link: &Link, filter: &Filter) -> Result<FoundRecords, Trouble> {
    let schemas = select_names(link, &matching::select_distinct("schema"))?;
    let condition = build_condition(filter, &schemas);
    let (limit, offset) = find_page(filter);
    let sql = format!(
        "SELECT {COLUMNS}, outline.body
         FROM line LEFT JOIN outline ON outline.number = line.number {} {ORDER_NEWEST} {}",
        condition.sql,
        condition.page_clause()
    );
    let mut values = borrow_values(&condition);
    values.extend(borrow_page(&limit, &offset));
    let rows = link.query(&sql, &values)?;
    let read_listed = |row: &Row| {
        let summary: Option<String> = value(row, 7)?;
        let summary = summary.and_then(|json| serde_json::from_str::<Summary>(&json).ok());
        Ok(ListedRecord {
            entry: read_entry(row)?,
            summary: summary.unwrap_or_default(),
        })
    };
    let lines = rows
        .iter()
        .map(read_listed)
        .collect::<Result<_, Trouble>>()?;
    let sql = format!("SELECT count(*) FROM line {}", condition.sql);
    let total: i64 = link.query_value(&sql, &borrow_values(&condition))?;
    Ok(FoundRecords {
        lines,
        total: usize::try_from(total).unwrap_or(0),
        hosts: select_names(link, &matching::select_distinct("host"))?,
        tags: select_names(link, "SELECT DISTINCT name FROM tag ORDER BY name")?,
        schemas,
    })
}

fn select_names(link: &Link, sql: &str) -> Result<Vec<String>, Trouble> {
    let rows = link.query(sql, &[])?;
    rows.iter().map(|row| value(row, 0)).collect()
}

/// The condition of a filter. The index of subjects needs a bounded length.
fn build_condition(filter: &Filter, schemas: &[String]) -> Condition {
    let dialect = Dialect {
        placeholder: '$',
        position: "strpos",
        subject: "md5(line.subject) = md5(@)",
    };
    let mut condition = Condition::from_filter(filter, schemas, &dialect);
    for value in &mut condition.values {
        *value = replace_nul(value).into_owned();
    }
    condition
}

fn borrow_values(condition: &Condition) -> Vec<(&(dyn ToSql + Sync), Type)> {
    let values = condition.values.iter();
    values
        .map(|value| (value as &(dyn ToSql + Sync), Type::TEXT))
        .collect()
}

fn borrow_page<'a>(limit: &'a Option<i64>, offset: &'a i64) -> [(&'a (dyn ToSql + Sync), Type); 2] {
    [(limit, Type::INT8), (offset, Type::INT8)]
}

/// Limit and offset; no limit becomes `NULL`.
fn find_page(filter: &Filter) -> (Option<i64>, i64) {
    (filter.limit.map(to_bigint), to_bigint(filter.offset))
}

fn to_bigint(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
