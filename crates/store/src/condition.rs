//! The part of a query that applies a filter, in the dialect of each database.

use super::{Filter, matches_schema};

/// The differences between databases.
pub(super) struct Dialect {
    /// The character before a value's number: `?` or `$`.
    pub(super) placeholder: char,
    /// The function that returns the position of a text in another, 0 if absent.
    pub(super) position: &'static str,
    /// The test whether a record's subject is the value `@`.
    pub(super) subject: &'static str,
}

/// A `WHERE` clause over columns of `line`, and its values.
pub(super) struct Condition {
    pub(super) sql: String,
    pub(super) values: Vec<String>,
    placeholder: char,
}

impl Condition {
    /// `schemas` are those in the store: a filter may name a kind.
    pub(super) fn from_filter(filter: &Filter, schemas: &[String], dialect: &Dialect) -> Self {
        let mut condition = Self {
            sql: String::new(),
            values: Vec::new(),
            placeholder: dialect.placeholder,
        };
        condition.require("line.host = @", filter.host.as_ref());
        condition.require(dialect.subject, filter.subject.as_ref());
        if let Some(wanted) = &filter.schema {
            let matching: Vec<&String> = schemas
                .iter()
                .filter(|name| matches_schema(name, wanted))
                .collect();
            let places = vec!["@"; matching.len()].join(", ");
            match matching.is_empty() {
                true => condition.require("FALSE", []),
                false => condition.require(&format!("line.schema IN ({places})"), matching),
            }
        }
        let has_tag = "line.number IN (SELECT number FROM tag WHERE name = @)";
        condition.require(has_tag, filter.tag.as_ref());
        for word in filter.text.iter().flat_map(|text| text.split_whitespace()) {
            let test = format!("{}(line.words, @) > 0", dialect.position);
            condition.require(&test, [&word.to_lowercase()]);
        }
        condition
    }

    /// Adds a test. Each `@` in it is the next value; a test that lacks a value is dropped.
    fn require<'a>(&mut self, test: &str, values: impl IntoIterator<Item = &'a String>) {
        let before = self.values.len();
        self.values.extend(values.into_iter().cloned());
        let mut parts = test.split('@');
        let mut sql = parts.next().unwrap_or_default().to_owned();
        for (part, number) in parts.zip(before + 1..) {
            if number > self.values.len() {
                return;
            }
            sql += &format!("{}{number}{part}", self.placeholder);
        }
        let word = if self.sql.is_empty() { "WHERE" } else { " AND" };
        self.sql += &format!("{word} {sql}");
    }

    /// The clause of limit and offset; their values come after [`Self::values`].
    pub(super) fn page_clause(&self) -> String {
        let (placeholder, count) = (self.placeholder, self.values.len());
        format!(
            "LIMIT {placeholder}{} OFFSET {placeholder}{}",
            count + 1,
            count + 2
        )
    }
}
