//! Finds records by id; the same for files and databases.

use super::{StoreError, Stored};

/// Limits the ids that are listed if a prefix matches several.
pub(super) const MAX_LISTED: usize = 3;

/// How many records before the newest: 0 for `last`, 1 for `last~1`; `None` for
/// an id.
#[must_use]
pub fn records_back(id: &str) -> Option<u32> {
    match id.strip_prefix("last")? {
        "" => Some(0),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// Requires that exactly one record was found for `id`. `found` has up to [`MAX_LISTED`] + 1
/// records, so that a list of several ids can end with "and others".
pub(super) fn require_one(id: &str, mut found: Vec<Stored>) -> Result<Stored, StoreError> {
    if found.len() > 1 {
        let ids = found.iter().map(|stored| stored.entry.id.as_str());
        let shown: Vec<&str> = ids.take(MAX_LISTED).collect();
        let others = if found.len() > MAX_LISTED {
            " and others"
        } else {
            ""
        };
        let shown = shown.join(", ");
        return Err(StoreError::Id(format!(
            "'{id}' could be any of {shown}{others}"
        )));
    }
    found.pop().ok_or_else(|| {
        StoreError::Id(match id {
            "last" => "the store is empty".to_owned(),
            id if records_back(id).is_some() => {
                format!("'{id}': the store has fewer records than that")
            }
            id => format!("no record has the id '{id}' (pinwise record history lists them)"),
        })
    })
}

/// A query for all values of a column that leads an index. It takes one step of the index for each
/// value, not for each record.
pub(super) fn select_distinct(column: &str) -> String {
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
