//! Changes of records after they were written.

use std::collections::BTreeMap;

use tokio_postgres::types::Type;

use super::link::{Link, Trouble, replace_nul, value};
use super::writing::{Conflict, put_records};
use super::{Postgres, schema};
use crate::{Prepared, RemovalResult, StoreError, TagChange};
use pinwise_record::{RecordError, replace_tags};

impl Postgres {
    /// Changes the tags of a record, in the record's JSON and in its row of the history, or in
    /// neither.
    pub(crate) fn retag(
        &mut self,
        id: &str,
        change: impl FnOnce(&[String]) -> Vec<String>,
    ) -> Result<TagChange, StoreError> {
        let entry = self.load(id)?.entry;
        let retagged = self.link.transaction("BEGIN", |link| {
            let sql = format!(
                "SELECT body, {} FROM record WHERE id = $1 FOR UPDATE",
                schema::is_held("id")
            );
            let rows = link.query(&sql, &[(&replace_nul(&entry.id), Type::TEXT)])?;
            let Some(row) = rows.first() else {
                return Err(Trouble::Store(explain_unchangeable(link, &entry.id)?));
            };
            let (body, is_held): (String, bool) = (value(row, 0)?, value(row, 1)?);
            if is_held {
                return Err(Trouble::Store(StoreError::BeingWritten {
                    id: entry.id.clone(),
                }));
            }
            let before = Prepared::new(entry.clone(), body);
            let after = change(&before.summary.tags);
            let retagged = TagChange {
                id: entry.id.clone(),
                before: before.summary.tags,
                after,
            };
            if retagged.before == retagged.after {
                return Ok(retagged);
            }
            let body = replace_tags(&before.body, &retagged.after).map_err(|error| {
                Trouble::Store(StoreError::Record {
                    id: entry.id.clone(),
                    reason: RecordError::Damaged(error),
                })
            })?;
            put_records(
                link,
                &[Prepared::new(entry.clone(), body)],
                Conflict::Replace,
            )?;
            Ok(retagged)
        });
        retagged.map_err(|trouble| self.explain(trouble))
    }

    pub(crate) fn bytes_of(&self, id: &str) -> Result<u64, StoreError> {
        let sql = "SELECT (coalesce((SELECT octet_length(body) FROM record WHERE id = $1), 0)
            + (SELECT coalesce(sum(octet_length(body)), 0) FROM run WHERE record = $1))::bigint";
        let bytes: Result<i64, Trouble> = self
            .link
            .query_value(sql, &[(&replace_nul(id), Type::TEXT)]);
        bytes
            .map(i64::unsigned_abs)
            .map_err(|trouble| self.explain(trouble))
    }

    /// Removes records with their runs and tags, except those that a living process writes, on any
    /// host, and those of other users.
    pub(crate) fn remove(&mut self, ids: &[String]) -> Result<RemovalResult, StoreError> {
        let sql = format!(
            "WITH asked AS (SELECT unnest($1::text[]) AS id),
             busy AS MATERIALIZED (SELECT id FROM asked WHERE {}),
             gone AS (
                DELETE FROM record WHERE id = ANY($1) AND id NOT IN (SELECT id FROM busy)
                RETURNING id
             )
             SELECT id, TRUE FROM busy
             UNION ALL
             SELECT id, FALSE FROM record WHERE id = ANY($1)
                AND id NOT IN (SELECT id FROM busy) AND id NOT IN (SELECT id FROM gone)",
            schema::is_held("asked.id")
        );
        let requested: Vec<_> = ids.iter().map(|id| replace_nul(id)).collect();
        let rows = self.link.query(&sql, &[(&requested, Type::TEXT_ARRAY)]);
        let rows = rows.map_err(|trouble| self.explain(trouble))?;
        let read_kept = || -> Result<BTreeMap<String, bool>, Trouble> {
            let pairs = rows.iter().map(|row| Ok((value(row, 0)?, value(row, 1)?)));
            pairs.collect()
        };
        let kept = read_kept().map_err(|trouble| self.explain(trouble))?;
        let mut removed = RemovalResult::default();
        for id in ids {
            let list = match kept.get(&*replace_nul(id)) {
                None => &mut removed.gone,
                Some(true) => &mut removed.being_written,
                Some(false) => &mut removed.of_others,
            };
            list.push(id.clone());
        }
        Ok(removed)
    }

    /// Does nothing: VACUUM is the server's business. Frees 0 bytes.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the file of the other stores is written anew"
    )]
    pub(crate) fn reclaim_space(&mut self) -> Result<u64, StoreError> {
        Ok(0)
    }
}

/// Why a readable record cannot be changed.
fn explain_unchangeable(link: &Link, id: &str) -> Result<StoreError, Trouble> {
    let sql = "SELECT owner FROM record WHERE id = $1";
    let rows = link.query(sql, &[(&replace_nul(id), Type::TEXT)])?;
    Ok(match rows.first() {
        Some(row) => StoreError::OtherOwner {
            id: id.to_owned(),
            owner: value(row, 0)?,
        },
        None => StoreError::Id(format!("record {id} has just been removed")),
    })
}
