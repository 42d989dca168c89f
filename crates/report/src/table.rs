//! Rows for CSV: the names of their columns, and a cell for each.

/// A value of a row, as text; empty if it is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell(String);

impl Cell {
    /// A count; missing if it does not fit 64 bits with a sign.
    pub(super) fn whole(value: impl TryInto<i64>) -> Self {
        Self::count(Some(value))
    }

    /// A count that may be missing.
    pub(super) fn count(value: Option<impl TryInto<i64>>) -> Self {
        Self(to_text::<i64>(
            value.and_then(|value| value.try_into().ok()),
        ))
    }

    pub(super) fn number(value: impl Into<Option<f64>>) -> Self {
        Self(to_text::<f64>(value.into()))
    }

    pub(super) fn text(value: impl Into<String>) -> Self {
        Self(value.into())
    }
}

/// Rows below the names of their columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(columns: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Appends a row: a cell for each column.
    pub(super) fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let row: Vec<String> = cells.into_iter().map(|cell| cell.0).collect();
        debug_assert_eq!(row.len(), self.columns.len(), "cells of {:?}", self.columns);
        self.rows.push(row);
    }

    /// Formats the table as CSV with a header; missing cells are empty.
    ///
    /// # Errors
    /// Errors of the CSV writer, which are not expected in memory.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        let bytes = writer.into_inner().map_err(|error| error.into_error())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn to_text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_below_their_names() {
        let mut table = Table::new(["arm", "block", "wall_s"]);
        table.push([Cell::text("a,\"b"), Cell::whole(7_u32), Cell::number(1.5)]);
        table.push([Cell::text(""), Cell::whole(u64::MAX), Cell::number(None)]);
        assert_eq!(
            table.csv().unwrap(),
            "arm,block,wall_s\n\"a,\"\"b\",7,1.5\n,,\n"
        );
    }

    #[test]
    fn a_table_without_rows_has_its_header() {
        let table = Table::new(["arm", "exit"]);
        assert_eq!(table.csv().unwrap(), "arm,exit\n");
    }
}
