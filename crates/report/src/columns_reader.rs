//! Reads JSON by columns back, as the page does: for tests of this crate and of the
//! command.

use std::collections::{BTreeMap, VecDeque};

struct Reader<'a> {
    shapes: Vec<Vec<String>>,
    columns: Vec<VecDeque<&'a str>>,
    used: usize,
    recent: VecDeque<String>,
}

struct Place {
    column: usize,
    item: Option<Box<Self>>,
    fields: BTreeMap<String, Self>,
}

/// The JSON in columns; panics if they are damaged.
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
    let mut top = reader.place();
    reader.value(&mut top)
}

impl Reader<'_> {
    fn place(&mut self) -> Place {
        self.used += 1;
        Place {
            column: self.used - 1,
            item: None,
            fields: BTreeMap::new(),
        }
    }

    fn value(&mut self, place: &mut Place) -> String {
        let entry = self.columns[place.column].pop_front().unwrap();
        let number = || entry[1..].parse::<usize>().unwrap();
        match entry.as_bytes()[0] {
            b'#' => {
                let mut parts = Vec::new();
                for name in self.shapes[number()].clone() {
                    let own = place.fields.entry(name.clone());
                    let own = own.or_insert_with(|| self.place());
                    let name = serde_json::to_string(&name).unwrap();
                    parts.push(format!("{name}:{}", self.value(own)));
                }
                format!("{{{}}}", parts.join(","))
            }
            b'*' => {
                let mut parts = Vec::new();
                for _ in 0..number() {
                    let own = place.item.get_or_insert_with(|| Box::new(self.place()));
                    parts.push(self.value(own));
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
