//! Latency matrices as text.
//!
//! Reads what core-to-core-latency, c2clat and spreadsheets write: a square of
//! numbers in ns, separated by commas, whole or only its lower triangle, with
//! or without a diagonal. Refuses everything else by line and column: headers,
//! ragged or missing rows, figures that are none.

use super::PairMatrix;

/// Why a matrix could not be read. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// No figure at all.
    #[error("there is no figure in it; a matrix has a row and a column for every CPU")]
    Empty,
    /// A cell that is no number.
    #[error(
        "line {line}, column {column}: '{cell}' is not a number; a matrix holds latencies in ns, without headers"
    )]
    NotANumber {
        /// Line of the text.
        line: usize,
        /// Cell of the line.
        column: usize,
        /// What stands there, shortened.
        cell: String,
    },
    /// A negative or infinite latency.
    #[error(
        "line {line}, column {column}: {cell} is not a latency; a matrix holds one figure of 0 ns or more for every pair"
    )]
    NotALatency {
        /// Line of the text.
        line: usize,
        /// Cell of the line.
        column: usize,
        /// What stands there, shortened.
        cell: String,
    },
    /// A figure missing from the lower triangle.
    #[error(
        "line {line}, column {column}: the latency of CPUs {row} and {other} is missing; is the file cut off?"
    )]
    Missing {
        /// Line of the text.
        line: usize,
        /// Cell of the line.
        column: usize,
        /// CPU of the row.
        row: usize,
        /// CPU of the column.
        other: usize,
    },
    /// A row longer or shorter than the others say.
    #[error(
        "line {line}, column {column}: the row has {found} cells where {expected} are expected; is the file cut off?"
    )]
    Ragged {
        /// Line of the text.
        line: usize,
        /// First cell too many, or the first that is missing.
        column: usize,
        /// Cells of the row.
        found: usize,
        /// Cells it should have.
        expected: usize,
    },
    /// More columns than rows.
    #[error(
        "line {line}: the matrix ends after {rows} rows of {columns} columns; is the file cut off?"
    )]
    NotSquare {
        /// Last line of the matrix.
        line: usize,
        /// Rows of the text.
        rows: usize,
        /// Cells of each row.
        columns: usize,
    },
    /// An empty line between rows.
    #[error("line {line} is empty between rows of the matrix; is a row missing?")]
    EmptyLine {
        /// Line of the text.
        line: usize,
    },
    /// One CPU only.
    #[error("line {line}: a matrix of one CPU has no pairs; it needs two rows or more")]
    OneCpu {
        /// Its line.
        line: usize,
    },
    /// More rows than supported.
    #[error("line {line}: matrices of more than {max} CPUs are not supported", max = PairMatrix::MAX_CPUS)]
    TooLarge {
        /// First line too many.
        line: usize,
    },
}

/// A line of the matrix.
struct Row<'a> {
    line: usize,
    cells: Vec<&'a str>,
}

impl PairMatrix {
    /// The most CPUs that a matrix may have where it is read from text.
    pub const MAX_CPUS: usize = 1024;

    /// Reads a matrix from comma-separated values, in ns; row and column `i`
    /// are CPU `i`.
    ///
    /// Rows are of one length (a square, of which the upper triangle may be
    /// empty), or each is one cell longer than the one before (a triangle).
    /// What stands on the diagonal is not used.
    ///
    /// Where both triangles are filled each pair takes the smaller of its two
    /// figures: what disturbs a transfer only ever adds time, and where two
    /// homes of the line were tried the nearer one shows the wiring.
    ///
    /// # Errors
    /// [`MatrixError`] names the first cell that is no latency, is missing or
    /// is one too many.
    pub fn from_csv(text: &str) -> Result<Self, MatrixError> {
        let rows = split(text)?;
        check_lengths(&rows)?;
        let shift = usize::from(lacks_first_row(&rows));
        let n = rows.len() + shift;
        if n > Self::MAX_CPUS {
            let line = rows.last().map_or(1, |row| row.line);
            return Err(MatrixError::TooLarge { line });
        }
        let mut matrix = Self::new((0..n).collect());
        for (index, row) in rows.iter().enumerate() {
            matrix.read_row(index + shift, row)?;
        }
        for (index, row) in rows.iter().enumerate() {
            matrix.check_row(index + shift, row)?;
        }
        if n == 1 {
            return Err(MatrixError::OneCpu { line: rows[0].line });
        }
        Ok(matrix)
    }

    fn read_row(&mut self, cpu: usize, row: &Row<'_>) -> Result<(), MatrixError> {
        for (other, cell) in row.cells.iter().enumerate() {
            let value = latency(cell, row.line, other + 1)?;
            // The diagonal is no pair, whatever stands there.
            if let Some(value) = value.filter(|_| other != cpu) {
                // `min` takes the other where one is NaN.
                self.set(cpu, other, value.min(self.at(cpu, other)));
            }
        }
        Ok(())
    }

    /// Every pair of this CPU with those before it must be known.
    fn check_row(&self, cpu: usize, row: &Row<'_>) -> Result<(), MatrixError> {
        match (0..cpu).find(|&other| self.at(cpu, other).is_nan()) {
            None => Ok(()),
            Some(other) => Err(MatrixError::Missing {
                line: row.line,
                column: other + 1,
                row: cpu,
                other,
            }),
        }
    }

    /// The lower triangle as comma-separated values in ns, the way
    /// [`PairMatrix::from_csv`] reads it; empty where not measured.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = String::new();
        for row in 0..self.len() {
            for column in 0..self.len() {
                if column > 0 {
                    text.push(',');
                }
                let value = self.at(row, column);
                if column < row && value.is_finite() {
                    text.push_str(&value.to_string());
                }
            }
            text.push('\n');
        }
        text
    }
}

/// Lines of cells, without empty lines before and after the matrix. The first
/// row of a triangle without diagonal is an empty line of its own.
fn split(text: &str) -> Result<Vec<Row<'_>>, MatrixError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut gap = None;
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        if text.trim().is_empty() {
            gap = gap.or(Some(line));
            continue;
        }
        if let Some(gap) = gap.take().filter(|_| !rows.is_empty()) {
            return Err(MatrixError::EmptyLine { line: gap });
        }
        if rows.len() > PairMatrix::MAX_CPUS {
            return Err(MatrixError::TooLarge { line });
        }
        let cells: Vec<&str> = text.split(',').map(unquoted).collect();
        if rows.is_empty() && line == 2 && (1..=2).contains(&cells.len()) {
            rows.push(Row {
                line: 1,
                cells: vec![""; cells.len() - 1],
            });
        }
        rows.push(Row { line, cells });
    }
    if rows.is_empty() || rows.iter().all(|row| used(row) == 0) {
        return Err(MatrixError::Empty);
    }
    Ok(rows)
}

/// All rows of one length, or each one cell longer than the last; and as many
/// rows as columns.
fn check_lengths(rows: &[Row<'_>]) -> Result<(), MatrixError> {
    let first = rows[0].cells.len();
    let is_triangle = rows.get(1).is_some_and(|row| row.cells.len() == first + 1) && first <= 2;
    for (index, row) in rows.iter().enumerate() {
        let expected = first + if is_triangle { index } else { 0 };
        let found = row.cells.len();
        if found != expected {
            return Err(MatrixError::Ragged {
                line: row.line,
                column: found.min(expected) + 1,
                found,
                expected,
            });
        }
    }
    // A comma after the last cell opens one more, which stays empty.
    let width = if rows.iter().all(|row| row.cells.last() == Some(&"")) && !is_triangle {
        first - 1
    } else {
        first
    };
    let is_square = is_triangle || width == rows.len() || first == rows.len();
    if is_square {
        return Ok(());
    }
    let last = &rows[rows.len() - 1];
    if width < rows.len() {
        return Err(MatrixError::Ragged {
            line: last.line,
            column: width + 1,
            found: width,
            expected: rows.len(),
        });
    }
    Err(MatrixError::NotSquare {
        line: last.line,
        rows: rows.len(),
        columns: width,
    })
}

/// A triangle whose first row holds a figure: either the diagonal, or, since no
/// CPU is farther from itself than from others, the row of CPU 1 after one of
/// CPU 0 that was left out.
fn lacks_first_row(rows: &[Row<'_>]) -> bool {
    if rows.len() < 2 || rows[0].cells.len() != 1 || rows[1].cells.len() != 2 {
        return false;
    }
    let figure = |cell: &str| cell.parse::<f64>().ok().filter(|v| v.is_finite());
    let ends = rows
        .iter()
        .map(|row| row.cells.last().and_then(|c| figure(c)));
    let Some(mut ends) = ends.collect::<Option<Vec<f64>>>() else {
        return false;
    };
    let inner = rows.iter().flat_map(|row| row.cells.iter().rev().skip(1));
    let smallest = inner
        .filter_map(|cell| figure(cell))
        .fold(f64::INFINITY, f64::min);
    ends.sort_by(f64::total_cmp);
    ends[ends.len() / 2] >= smallest
}

fn unquoted(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'))
        .map_or(cell, str::trim)
}

/// Cells up to the last that is not empty.
fn used(row: &Row<'_>) -> usize {
    let last = row.cells.iter().rposition(|cell| !cell.is_empty());
    last.map_or(0, |last| last + 1)
}

/// A cell's figure; `None` where it is empty.
fn latency(cell: &str, line: usize, column: usize) -> Result<Option<f64>, MatrixError> {
    if cell.is_empty() {
        return Ok(None);
    }
    let value: f64 = cell.parse().map_err(|_| MatrixError::NotANumber {
        line,
        column,
        cell: shortened(cell),
    })?;
    if value.is_finite() && value >= 0.0 {
        return Ok(Some(value));
    }
    Err(MatrixError::NotALatency {
        line,
        column,
        cell: shortened(cell),
    })
}

/// Enough of a cell to find it again.
fn shortened(cell: &str) -> String {
    const ENOUGH: usize = 24;
    if cell.chars().count() <= ENOUGH {
        return cell.to_owned();
    }
    let start: String = cell.chars().take(ENOUGH).collect();
    format!("{start}…")
}
