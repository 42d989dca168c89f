//! The part of a query that applies a filter, in the dialect of each database.

use super::{Filter, matches_schema};

/// The differences between databases.
pub(super) struct Dialect {
    /// The character before the number of a value.
    pub(super) place: char,
    /// The function that returns the position of a text in another, 0 if absent.
    pub(super) position: &'static str,
    /// Is the subject the value `@`?
    pub(super) subject: &'static str,
}

/// Tests of columns of `line`, and the values that they compare with.
pub(super) struct Condition {
    pub(super) sql: String,
    pub(super) values: Vec<String>,
    place: char,
}

impl Condition {
    /// `schemas` are those in the store: a filter may name a kind.
    pub(super) fn from_filter(filter: &Filter, schemas: &[String], dialect: &Dialect) -> Self {
        let mut all = Self {
            sql: String::new(),
            values: Vec::new(),
            place: dialect.place,
        };
        all.require("line.host = @", filter.host.as_ref());
        all.require(dialect.subject, filter.subject.as_ref());
        if let Some(wanted) = &filter.schema {
            let of_kind: Vec<&String> = schemas
                .iter()
                .filter(|name| matches_schema(name, wanted))
                .collect();
            let places = vec!["@"; of_kind.len()].join(", ");
            match of_kind.is_empty() {
                true => all.require("FALSE", []),
                false => all.require(&format!("line.schema IN ({places})"), of_kind),
            }
        }
        let tagged = "line.number IN (SELECT number FROM tag WHERE name = @)";
        all.require(tagged, filter.tag.as_ref());
        for word in filter.text.iter().flat_map(|text| text.split_whitespace()) {
            let test = format!("{}(line.words, @) > 0", dialect.position);
            all.require(&test, [&word.to_lowercase()]);
        }
        all
    }

    /// Each `@` of the test is the next value; a test that lacks a value is dropped.
    fn require<'a>(&mut self, test: &str, values: impl IntoIterator<Item = &'a String>) {
        let before = self.values.len();
        self.values.extend(values.into_iter().cloned());
        let mut parts = test.split('@');
        let mut sql = parts.next().unwrap_or_default().to_owned();
        for (part, number) in parts.zip(before + 1..) {
            if number > self.values.len() {
                return;
            }
            sql += &format!("{}{number}{part}", self.place);
        }
        let word = if self.sql.is_empty() { "WHERE" } else { " AND" };
        self.sql += &format!("{word} {sql}");
    }

    /// Limit and offset, their values after the others.
    pub(super) fn page(&self) -> String {
        let (place, count) = (self.place, self.values.len());
        format!("LIMIT {place}{} OFFSET {place}{}", count + 1, count + 2)
    }
}
