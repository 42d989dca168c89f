//! Rows for data frames: the CSV of a record as Parquet, with typed columns.
//!
//! The CSV stays the one place that says which rows and columns there are;
//! here every column gets its type by its name, and an empty number is null.
//! One row group, plain pages without compression: what records hold is small,
//! and any reader takes it.

use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// Columns of text; an empty one is an empty text.
const TEXTS: [&str; 14] = [
    "arm",
    "cpus",
    "phase",
    "granted_cpus",
    "step",
    "name",
    "end",
    "kernel",
    "group",
    "question",
    "comparison",
    "cell",
    "placement",
    "isa",
];

/// Columns of whole numbers. All others are of numbers with a point.
const WHOLE: [&str; 16] = [
    "block",
    "order",
    "max_rss_bytes",
    "exit",
    "threads",
    "threads_set",
    "migrations",
    "context_switches",
    "minor_faults",
    "major_faults",
    "cycles",
    "instructions",
    "thread",
    "process",
    "cpu",
    "size",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Whole,
    Real,
}

impl Kind {
    fn of(column: &str) -> Self {
        if TEXTS.contains(&column) {
            Self::Text
        } else if WHOLE.contains(&column) {
            Self::Whole
        } else {
            Self::Real
        }
    }

    fn field(self, name: &str) -> Result<Arc<Type>> {
        let (physical, logical) = match self {
            Self::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Self::Whole => (Physical::INT64, None),
            Self::Real => (Physical::DOUBLE, None),
        };
        let repetition = match self {
            Self::Text => Repetition::REQUIRED,
            Self::Whole | Self::Real => Repetition::OPTIONAL,
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition);
        Ok(Arc::new(field.build()?))
    }
}

/// A CSV with a header as the bytes of a Parquet file.
///
/// # Errors
/// The words of the CSV's reader or of Parquet's writer.
pub fn from_csv(csv: &str) -> Result<Vec<u8>> {
    let damaged = |error: csv::Error| ParquetError::General(error.to_string());
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().map_err(damaged)?.clone();
    let rows: Vec<csv::StringRecord> = reader
        .records()
        .collect::<std::result::Result<_, _>>()
        .map_err(damaged)?;
    let fields = header.iter().map(|name| Kind::of(name).field(name));
    let schema = Type::group_type_builder("row")
        .with_fields(fields.collect::<Result<_>>()?)
        .build()?;
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(true)
        .set_encoding(Encoding::PLAIN)
        .set_created_by(format!("pinwise {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (index, name) in header.iter().enumerate() {
        let Some(mut column) = group.next_column()? else {
            break;
        };
        let cells = rows.iter().map(|row| row.get(index).unwrap_or_default());
        match Kind::of(name) {
            Kind::Text => {
                let texts: Vec<ByteArray> = cells.map(ByteArray::from).collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&texts, None, None)?;
            }
            Kind::Whole => numbers::<Int64Type>(&mut column, cells.map(|cell| cell.parse().ok()))?,
            Kind::Real => numbers::<DoubleType>(&mut column, cells.map(|cell| cell.parse().ok()))?,
        }
        column.close()?;
    }
    group.close()?;
    file.into_inner()
}

/// Writes a column in which numbers may be missing.
fn numbers<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let mut values = Vec::new();
    let mut levels: Vec<i16> = Vec::new();
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    column
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    /// Rows as they are read back, cell by cell.
    fn read(bytes: &[u8]) -> Vec<Vec<(String, Field)>> {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        let cells = |row: parquet::record::Row| {
            let columns = row.get_column_iter();
            columns
                .map(|(name, field)| (name.clone(), field.clone()))
                .collect()
        };
        rows.map(|row| cells(row.unwrap())).collect()
    }

    #[test]
    fn columns_have_types_and_missing_figures_are_null() {
        let csv = "arm,block,wall_s,exit\n7,0,1.5,0\n\"a,\"\"b\",1,2,\n";
        let rows = read(&from_csv(csv).unwrap());
        let cell = |row: usize, column: usize| rows[row][column].1.clone();
        assert_eq!(rows.len(), 2);
        assert_eq!(cell(0, 0), Field::Str("7".to_owned()));
        assert_eq!(cell(0, 1), Field::Long(0));
        assert_eq!(cell(0, 2), Field::Double(1.5));
        assert_eq!(cell(1, 0), Field::Str("a,\"b".to_owned()));
        assert_eq!(cell(1, 2), Field::Double(2.0));
        assert_eq!(cell(1, 3), Field::Null);
        assert_eq!(rows[1][3].0, "exit");
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        assert!(read(&from_csv("arm,wall_s\n").unwrap()).is_empty());
    }

    #[test]
    fn no_column_of_runs_loses_what_its_csv_says() {
        use proptest::strategy::{Strategy, ValueTree};
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        for _ in 0..50 {
            let run = crate::record::tests::any_run();
            let run = run.new_tree(&mut runner).unwrap().current();
            let cells = crate::report::export::run_fields(&run);
            for (name, cell) in crate::report::export::RUN_FIELDS.iter().zip(&cells) {
                let is_kept = match Kind::of(name) {
                    Kind::Text => true,
                    Kind::Whole => cell.is_empty() || cell.parse::<i128>().is_ok(),
                    Kind::Real => cell.is_empty() || cell.parse::<f64>().is_ok(),
                };
                assert!(is_kept, "{name}: {cell}");
            }
        }
    }
}
