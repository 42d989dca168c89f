//! Rows for data frames, as Parquet with typed columns. An absent number is null.
//!
//! One row group, plain pages without compression: what records hold is small,
//! and any reader takes it.

use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::table::{Table, Values};

fn field(name: &str, values: &Values) -> Result<Arc<Type>> {
    let (physical, logical, repetition) = match values {
        Values::Text(_) => {
            let text = Some(LogicalType::String);
            (Physical::BYTE_ARRAY, text, Repetition::REQUIRED)
        }
        Values::Whole(_) => (Physical::INT64, None, Repetition::OPTIONAL),
        Values::Number(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
    };
    let field = Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition);
    Ok(Arc::new(field.build()?))
}

/// A table as the bytes of a Parquet file.
///
/// # Errors
/// Those of Parquet's writer.
pub fn parquet(table: &Table) -> Result<Vec<u8>> {
    let fields = table
        .columns
        .iter()
        .map(|(name, values)| field(name, values));
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
    for (_, values) in &table.columns {
        let Some(mut column) = group.next_column()? else {
            break;
        };
        match values {
            Values::Text(texts) => {
                let texts: Vec<ByteArray> = texts
                    .iter()
                    .map(|text| ByteArray::from(text.as_str()))
                    .collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&texts, None, None)?;
            }
            Values::Whole(values) => numbers::<Int64Type>(&mut column, values)?,
            Values::Number(values) => numbers::<DoubleType>(&mut column, values)?,
        }
        column.close()?;
    }
    group.close()?;
    file.into_inner()
}

/// Writes a column in which numbers may be missing.
fn numbers<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: &[Option<T::T>],
) -> Result<()> {
    let mut values = Vec::new();
    let mut levels: Vec<i16> = Vec::new();
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell.clone());
    }
    column
        .typed::<T>()
        .write_batch(&values, Some(&levels), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Holds};
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
        let mut table = Table::new([
            ("arm", Holds::Text),
            ("block", Holds::Whole),
            ("wall_s", Holds::Number),
            ("exit", Holds::Whole),
        ]);
        let missing = Cell::count(None::<i64>);
        table.push([
            Cell::text("7"),
            Cell::whole(0),
            Cell::number(1.5),
            Cell::whole(0),
        ]);
        table.push([
            Cell::text("a,\"b"),
            Cell::whole(1),
            Cell::number(2.0),
            missing,
        ]);
        let rows = read(&parquet(&table).unwrap());
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
        let table = Table::new([("arm", Holds::Text), ("wall_s", Holds::Number)]);
        assert!(read(&parquet(&table).unwrap()).is_empty());
    }
}
