//! Rows with typed columns: the same for CSV and Parquet.
//!
//! Whoever makes a table says what each column holds; nothing is guessed from
//! names, and no CSV is read back.

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Text,
    Whole,
    Number,
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Text(String),
    Whole(Option<i64>),
    Number(Option<f64>),
}

impl Cell {
    /// A count; one that no 64 bits with a sign can hold is missing.
    pub(super) fn whole(value: impl TryInto<i64>) -> Self {
        Self::Whole(value.try_into().ok())
    }

    /// A count that may be missing.
    pub(super) fn count(value: Option<impl TryInto<i64>>) -> Self {
        Self::Whole(value.and_then(|value| value.try_into().ok()))
    }

    pub(super) fn number(value: impl Into<Option<f64>>) -> Self {
        Self::Number(value.into())
    }

    pub(super) fn text(value: impl Into<String>) -> Self {
        Self::Text(value.into())
    }
}

/// The values of a column, from the first row to the last.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    Text(Vec<String>),
    Whole(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
}

/// Rows with typed columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    pub(super) columns: Vec<(&'static str, Values)>,
    rows: usize,
}

impl Table {
    /// Without rows.
    pub(super) fn new(columns: impl IntoIterator<Item = (&'static str, Holds)>) -> Self {
        let empty = |holds| match holds {
            Holds::Text => Values::Text(Vec::new()),
            Holds::Whole => Values::Whole(Vec::new()),
            Holds::Number => Values::Number(Vec::new()),
        };
        Self {
            columns: columns
                .into_iter()
                .map(|(name, holds)| (name, empty(holds)))
                .collect(),
            rows: 0,
        }
    }

    /// Appends a row: a cell for each column, of what the column holds. One of
    /// another type is missing.
    pub(super) fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut cells = cells.into_iter();
        for (name, values) in &mut self.columns {
            let cell = cells.next();
            match (values, cell) {
                (Values::Text(values), Some(Cell::Text(value))) => values.push(value),
                (Values::Whole(values), Some(Cell::Whole(value))) => values.push(value),
                (Values::Number(values), Some(Cell::Number(value))) => values.push(value),
                (values, cell) => {
                    debug_assert!(false, "column {name} does not hold {cell:?}");
                    match values {
                        Values::Text(values) => values.push(String::new()),
                        Values::Whole(values) => values.push(None),
                        Values::Number(values) => values.push(None),
                    }
                }
            }
        }
        debug_assert!(cells.next().is_none(), "more cells than columns");
        self.rows += 1;
    }

    /// With a header; what is missing is empty.
    ///
    /// # Errors
    /// The CSV writer's, in the unlikely case that it has any.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|(name, _)| name))?;
        for row in 0..self.rows {
            for (_, values) in &self.columns {
                match values {
                    Values::Text(values) => writer.write_field(&values[row])?,
                    Values::Whole(values) => writer.write_field(shown(values[row]))?,
                    Values::Number(values) => writer.write_field(shown(values[row]))?,
                }
            }
            writer.write_record(None::<&[u8]>)?;
        }
        let bytes = writer.into_inner().map_err(|error| error.into_error())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn shown(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_their_names() {
        let mut table = Table::new([
            ("arm", Holds::Text),
            ("block", Holds::Whole),
            ("wall_s", Holds::Number),
        ]);
        table.push([Cell::text("a,\"b"), Cell::whole(7_u32), Cell::number(1.5)]);
        table.push([Cell::text(""), Cell::whole(u64::MAX), Cell::number(None)]);
        assert_eq!(
            table.csv().unwrap(),
            "arm,block,wall_s\n\"a,\"\"b\",7,1.5\n,,\n"
        );
    }

    #[test]
    fn a_table_without_rows_has_its_header() {
        let table = Table::new([("arm", Holds::Text), ("exit", Holds::Whole)]);
        assert_eq!(table.csv().unwrap(), "arm,exit\n");
    }
}
