//! Writes records. One statement writes record, line, outline and tags, so that a record costs one
//! round trip and is written completely or not at all.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;

use super::Postgres;
use super::guard::MAX_ROW_BYTES;
use super::link::{Link, Trouble, replace_nul, value};
use crate::{Prepared, StoreError};

/// Limits a body, so that its row with the other columns can be read again.
const MAX_BODY_BYTES: usize = MAX_ROW_BYTES - (1 << 20);

/// What to do with a record that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conflict {
    /// It stays, and the new one is not written.
    Keep,
    /// The new one replaces it; its runs stay.
    Replace,
    /// The new one replaces it, including its runs.
    ReplaceWithRuns,
}

impl Postgres {
    /// Writes records, each replacing its older version, all or none.
    pub(crate) fn keep_all(&mut self, records: &[Prepared]) -> Result<(), StoreError> {
        let written = put_records(&self.link, records, Conflict::ReplaceWithRuns);
        written.map(|_| ()).map_err(|trouble| self.explain(trouble))
    }

    /// Writes records whose ids do not exist; returns how many.
    pub(crate) fn create_all(&mut self, records: &[Prepared]) -> Result<usize, StoreError> {
        put_records(&self.link, records, Conflict::Keep).map_err(|trouble| self.explain(trouble))
    }

    /// Writes a record with its runs unless there is one with its id.
    pub(crate) fn create(
        &mut self,
        record: &Prepared,
        runs: &[(usize, String)],
    ) -> Result<bool, StoreError> {
        let create = || {
            self.link.transaction("BEGIN", |link| {
                let is_new = put_records(link, std::slice::from_ref(record), Conflict::Keep)? == 1;
                if is_new {
                    put_runs(link, &record.entry.id, 0, runs)?;
                }
                Ok(is_new)
            })
        };
        let created = match runs {
            [] => self.put_new(record),
            _ => retry_if_raced(create),
        };
        created.map_err(|trouble| self.explain(trouble))
    }

    /// Writes a record unless its id exists. If the connection broke and the statement was sent
    /// again, the stored record tells whether the first attempt wrote it.
    fn put_new(&self, record: &Prepared) -> Result<bool, Trouble> {
        let session = self.link.session();
        let is_new = put_records(&self.link, std::slice::from_ref(record), Conflict::Keep)? == 1;
        if is_new || self.link.session() == session {
            return Ok(is_new);
        }
        self.link.query_value(
            "SELECT EXISTS (SELECT 1 FROM record WHERE id = $1 AND body = $2)",
            &[
                (&replace_nul(&record.entry.id), Type::TEXT),
                (&record.body, Type::TEXT),
            ],
        )
    }
}

/// Repeats `work` if another session wrote the same record at the same moment: `ON CONFLICT` covers
/// only one of two unique indexes, and the sessions may collide on the other one first.
fn retry_if_raced<T>(mut work: impl FnMut() -> Result<T, Trouble>) -> Result<T, Trouble> {
    match work() {
        Err(Trouble::Raced) => work(),
        result => result,
    }
}

/// The columns of the records to write, as arrays.
#[derive(Default)]
struct Columns<'a> {
    texts: [Vec<std::borrow::Cow<'a, str>>; 9],
    complete: Vec<bool>,
    subjects: Vec<Option<std::borrow::Cow<'a, str>>>,
    tags: [Vec<std::borrow::Cow<'a, str>>; 2],
}

impl<'a> Columns<'a> {
    fn add(&mut self, record: &'a Prepared) {
        let entry = &record.entry;
        let summary = serde_json::to_string(&record.summary).unwrap_or_default();
        let texts = [
            replace_nul(&entry.id),
            replace_nul(&entry.schema),
            replace_nul(&entry.time),
            replace_nul(&entry.host),
            replace_nul(&entry.title),
            replace_nul(&entry.verdict),
            replace_nul(&record.body),
            replace_nul(&record.search_text()).into_owned().into(),
            summary.into(),
        ];
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.push(text);
        }
        self.complete.push(entry.is_complete);
        self.subjects
            .push(record.summary.subject.as_deref().map(replace_nul));
        for tag in &record.summary.tags {
            self.tags[0].push(replace_nul(&entry.id));
            self.tags[1].push(replace_nul(tag));
        }
    }
}

/// Writes records; returns how many were written.
pub(super) fn put_records(
    link: &Link,
    records: &[Prepared],
    conflict: Conflict,
) -> Result<usize, Trouble> {
    // A statement may write a row only once, and all writers must use the same order of records.
    let records: BTreeMap<&str, &Prepared> = records
        .iter()
        .map(|record| (record.entry.id.as_str(), record))
        .collect();
    let mut columns = Columns::default();
    for record in records.values() {
        if record.body.len() > MAX_BODY_BYTES {
            let mib = MAX_BODY_BYTES >> 20;
            return Err(Trouble::Refused(format!(
                "record {} is larger than {mib} MiB (an SQLite file takes it)",
                record.entry.id
            )));
        }
        columns.add(record);
    }
    let [id, schema, time, host, title, verdict, body, words, summary] = &columns.texts;
    let [tagged, tags] = &columns.tags;
    let bytes = records.values().map(|record| record.body.len()).sum();
    let texts = || Type::TEXT_ARRAY;
    let send = || {
        link.send(
            bytes,
            &build_statement(conflict),
            &[
                (id, texts()),
                (schema, texts()),
                (time, texts()),
                (host, texts()),
                (title, texts()),
                (verdict, texts()),
                (&columns.complete, Type::BOOL_ARRAY),
                (body, texts()),
                (&columns.subjects, texts()),
                (words, texts()),
                (summary, texts()),
                (tagged, texts()),
                (tags, texts()),
            ],
        )
    };
    // A failed transaction accepts no second statement: the caller retries all of it.
    let rows = match link.is_in_transaction() {
        true => send(),
        false => retry_if_raced(send),
    }?;
    let written: i64 = rows.first().map_or(Ok(0), |row| value(row, 0))?;
    Ok(usize::try_from(written).unwrap_or(0))
}

fn build_statement(conflict: Conflict) -> String {
    let record = match conflict {
        Conflict::Keep => "NOTHING",
        Conflict::Replace | Conflict::ReplaceWithRuns => {
            "UPDATE SET schema = excluded.schema, time = excluded.time, host = excluded.host,
                title = excluded.title, verdict = excluded.verdict,
                complete = excluded.complete, body = excluded.body"
        }
    };
    let runs = match conflict {
        Conflict::ReplaceWithRuns => {
            ", runless AS (DELETE FROM run USING kept WHERE run.record = kept.id)"
        }
        Conflict::Keep | Conflict::Replace => "",
    };
    format!(
        "WITH input AS (
            SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[],
                $6::text[], $7::bool[], $8::text[], $9::text[], $10::text[], $11::text[])
            AS t (id, schema, time, host, title, verdict, complete, body, subject, words, outline)
         ), kept AS (
            INSERT INTO record (id, schema, time, host, title, verdict, complete, body)
            SELECT id, schema, time, host, title, verdict, complete, body FROM input
            ON CONFLICT (id) DO {record}
            RETURNING id
         ), listed AS (
            INSERT INTO line (id, schema, time, host, title, verdict, complete, subject, words)
            SELECT id, schema, time, host, title, verdict, complete, subject, words
            FROM input JOIN kept USING (id)
            ON CONFLICT (id) DO UPDATE SET schema = excluded.schema, time = excluded.time,
                host = excluded.host, title = excluded.title, verdict = excluded.verdict,
                complete = excluded.complete, subject = excluded.subject, words = excluded.words
            RETURNING number, id
         ), outlined AS (
            INSERT INTO outline (number, body)
            SELECT number, outline FROM input JOIN listed USING (id)
            ON CONFLICT (number) DO UPDATE SET body = excluded.body
         ), label AS (
            SELECT DISTINCT * FROM unnest($12::text[], $13::text[]) AS t (id, name)
         ), untagged AS (
            DELETE FROM tag USING listed WHERE tag.number = listed.number AND NOT EXISTS (
                SELECT 1 FROM label WHERE label.id = listed.id AND label.name = tag.name
            )
         ), tagged AS (
            INSERT INTO tag (name, number) SELECT name, number FROM label JOIN listed USING (id)
            ON CONFLICT DO NOTHING
         ){runs}
         SELECT count(*) FROM kept"
    )
}

/// Writes runs of an unfinished record, numbered from `first`; existing ones stay unchanged.
pub(super) fn put_runs(
    link: &Link,
    id: &str,
    first: usize,
    runs: &[(usize, String)],
) -> Result<(), Trouble> {
    let number = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    let numbers: Vec<i32> = (first..first + runs.len()).map(number).collect();
    let arms: Vec<i32> = runs.iter().map(|(arm, _)| number(*arm)).collect();
    let bodies: Vec<&str> = runs.iter().map(|(_, body)| body.as_str()).collect();
    let bytes = bodies.iter().map(|body| body.len()).sum();
    link.send(
        bytes,
        "INSERT INTO run (record, number, arm, body)
         SELECT record.id, t.number, t.arm, t.body
         FROM unnest($2::int[], $3::int[], $4::text[]) AS t (number, arm, body)
         JOIN record ON record.id = $1 AND NOT record.complete
         ON CONFLICT DO NOTHING",
        &[
            (&replace_nul(id), Type::TEXT),
            (&numbers, Type::INT4_ARRAY),
            (&arms, Type::INT4_ARRAY),
            (&bodies, Type::TEXT_ARRAY),
        ],
    )?;
    Ok(())
}
