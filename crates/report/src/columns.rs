//! Lays JSON out in columns, so that it compresses well: values of the same field of many objects
//! are stored together, names of fields once, and a repeated value as a reference. The text of
//! every number is preserved.
//!
//! Columns are separated by an empty line, their entries by line ends. The first column holds
//! shapes: the fields' names of an object. In the others `#3` is an object of shape 3, `*2` a list
//! of two, `~1` the value before the last one; everything else is plain JSON. `web/src/columns.ts`
//! reads it.

use std::collections::{BTreeMap, VecDeque};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The number of most recent values that can be referenced.
const RECENT: usize = 24;
/// Values of up to this many bytes are written again instead of referenced.
const MAX_REPEATED_BYTES: usize = 3;
/// Values that are nested deeper are written as JSON.
const MAX_DEPTH: usize = 64;

/// Lays a JSON text out in columns.
///
/// # Errors
/// If it is not JSON.
pub(super) fn lay_out_in_columns(json: &str) -> Result<String, serde_json::Error> {
    let mut writer = Writer::default();
    let mut top = writer.new_path();
    writer.write(&mut top, serde_json::from_str(json)?, 0)?;
    let shapes = writer.shapes.join("\n");
    let columns = writer.columns.into_iter();
    Ok([shapes]
        .into_iter()
        .chain(columns)
        .collect::<Vec<_>>()
        .join("\n\n"))
}

#[derive(Default)]
struct Writer {
    shapes: Vec<String>,
    numbers: BTreeMap<String, usize>,
    columns: Vec<String>,
    recent: VecDeque<String>,
}

/// A position in the structure, such as "the field `runs` of an item of the top list", and its
/// column.
struct Path {
    column: usize,
    item: Option<Box<Self>>,
    fields: BTreeMap<String, Self>,
}

impl Writer {
    /// Adds the column of a new path; columns are in the order in which paths first occur.
    fn new_path(&mut self) -> Path {
        self.columns.push(String::new());
        Path {
            column: self.columns.len() - 1,
            item: None,
            fields: BTreeMap::new(),
        }
    }

    fn write(
        &mut self,
        path: &mut Path,
        value: &RawValue,
        depth: usize,
    ) -> Result<(), serde_json::Error> {
        let text = value.get();
        match text.as_bytes().first() {
            Some(b'{') if depth < MAX_DEPTH => {
                let Fields(fields) = serde_json::from_str(text)?;
                let shape = self.shape(&fields)?;
                self.push(path, &format!("#{shape}"));
                for (name, value) in fields {
                    let child = path.fields.entry(name).or_insert_with(|| self.new_path());
                    self.write(child, value, depth + 1)?;
                }
            }
            Some(b'[') if depth < MAX_DEPTH => {
                let items: Vec<&RawValue> = serde_json::from_str(text)?;
                self.push(path, &format!("*{}", items.len()));
                for value in items {
                    let child = path.item.get_or_insert_with(|| Box::new(self.new_path()));
                    self.write(child, value, depth + 1)?;
                }
            }
            _ => self.write_leaf(path, text),
        }
        Ok(())
    }

    /// The number of a shape, which is added if it is new.
    fn shape(&mut self, fields: &[(String, &RawValue)]) -> Result<usize, serde_json::Error> {
        let names: Vec<&String> = fields.iter().map(|(name, _)| name).collect();
        let names = serde_json::to_string(&names)?;
        let next = self.shapes.len();
        Ok(*self.numbers.entry(names.clone()).or_insert_with(|| {
            self.shapes.push(names);
            next
        }))
    }

    fn write_leaf(&mut self, path: &Path, text: &str) {
        // A line break in JSON can only be white space between values.
        let text = text.replace(['\n', '\r'], " ");
        let known = self.recent.iter().position(|recent| *recent == text);
        match known.filter(|_| text.len() > MAX_REPEATED_BYTES) {
            Some(back) => self.push(path, &format!("~{back}")),
            None => self.push(path, &text),
        }
        self.recent.push_front(text);
        self.recent.truncate(RECENT);
    }

    fn push(&mut self, path: &Path, entry: &str) {
        let column = &mut self.columns[path.column];
        if !column.is_empty() {
            column.push('\n');
        }
        column.push_str(entry);
    }
}

/// An object's fields in their order.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
#[path = "columns_reader.rs"]
pub(super) mod reader;

#[cfg(test)]
mod tests {
    use super::reader::from_columns;
    use super::*;

    /// The page's test reads the same file back.
    #[test]
    fn columns_are_those_that_the_page_reads() {
        let cases = include_str!("../../../tests/data/columns.json");
        let cases: Vec<[String; 2]> = serde_json::from_str(cases).unwrap();
        assert!(!cases.is_empty());
        for [json, columns] in cases {
            assert_eq!(lay_out_in_columns(&json).unwrap(), columns, "{json}");
            assert_eq!(from_columns(&columns), json);
        }
    }

    #[test]
    fn each_line_has_one_entry_whatever_the_depth_and_spacing() {
        let deep = format!("{}\n1\n{}", "[".repeat(9_000), "]".repeat(9_000));
        let columns = lay_out_in_columns(&deep).unwrap();
        let entries: Vec<&str> = columns.split("\n\n").skip(1).collect();
        assert_eq!(entries.len(), MAX_DEPTH + 1);
        assert!(entries.iter().all(|entry| !entry.contains('\n')));
    }
}
