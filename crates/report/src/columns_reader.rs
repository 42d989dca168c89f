//! Restores JSON from columns, as the page does, for tests.

use std::collections::{BTreeMap, VecDeque};

struct Reader<'a> {
    shapes: Vec<Vec<String>>,
    columns: Vec<VecDeque<&'a str>>,
    used: usize,
    recent: VecDeque<String>,
}

struct Path {
    column: usize,
    item: Option<Box<Self>>,
    fields: BTreeMap<String, Self>,
}

/// Restores the JSON; panics if the columns are damaged.
pub(crate) fn from_columns(text: &str) -> String {
    let mut columns = text.split("\n\n").map(|column| column.split('\n'));
    let shapes = columns.next().unwrap().filter(|shape| !shape.is_empty());
    let mut reader = Reader {
        shapes: shapes
            .map(|shape| serde_json::from_str(shape).unwrap())
            .collect(),
        columns: columns.map(Iterator::collect).collect(),
        used: 0,
        recent: VecDeque::new(),
    };
    let mut top = reader.new_path();
    reader.read_value(&mut top)
}

impl Reader<'_> {
    fn new_path(&mut self) -> Path {
        self.used += 1;
        Path {
            column: self.used - 1,
            item: None,
            fields: BTreeMap::new(),
        }
    }

    fn read_value(&mut self, path: &mut Path) -> String {
        let entry = self.columns[path.column].pop_front().unwrap();
        let number = || entry[1..].parse::<usize>().unwrap();
        match entry.as_bytes()[0] {
            b'#' => {
                let mut parts = Vec::new();
                for name in self.shapes[number()].clone() {
                    let child = path.fields.entry(name.clone());
                    let child = child.or_insert_with(|| self.new_path());
                    let name = serde_json::to_string(&name).unwrap();
                    parts.push(format!("{name}:{}", self.read_value(child)));
                }
                format!("{{{}}}", parts.join(","))
            }
            b'*' => {
                let mut parts = Vec::new();
                for _ in 0..number() {
                    let child = path.item.get_or_insert_with(|| Box::new(self.new_path()));
                    parts.push(self.read_value(child));
                }
                format!("[{}]", parts.join(","))
            }
            first => {
                let text = match first {
                    b'~' => self.recent[number()].clone(),
                    _ => entry.to_owned(),
                };
                self.recent.push_front(text.clone());
                self.recent.truncate(64);
                text
            }
        }
    }
}
