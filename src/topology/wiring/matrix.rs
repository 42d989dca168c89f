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
        "line {line}, column {column}: {cell} is not a latency in ns; leave cells that were not measured empty"
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
        "line {line}, column {column}: the latency of row {line} and column {column} is missing; is the file cut off?"
    )]
    Missing {
        /// Line of the text.
        line: usize,
        /// Cell of the line.
        column: usize,
    },
    /// More columns than rows.
    #[error(
        "line {line}, column {column}: a matrix of {rows} rows has at most as many columns; is the file cut off?"
    )]
    TooWide {
        /// Line of the text.
        line: usize,
        /// First cell too many.
        column: usize,
        /// Rows of the text.
        rows: usize,
    },
    /// An empty line between rows.
    #[error("line {line} is empty between rows of the matrix; is a row missing?")]
    EmptyLine {
        /// Line of the text.
        line: usize,
    },
    /// One CPU only.
    #[error("a matrix of one CPU has no pairs; it needs two rows or more")]
    OneCpu,
    /// More rows than supported.
    #[error("line {line}: matrices of more than {max} CPUs are not supported", max = PairMatrix::MAX_CPUS)]
    TooLarge {
        /// First line too many.
        line: usize,
    },
}

type Cells<'a> = Vec<&'a str>;

impl PairMatrix {
    /// The most CPUs that a matrix may have where it is read from text.
    pub const MAX_CPUS: usize = 1024;

    /// Reads a matrix from comma-separated values, in ns; row and column `i`
    /// are CPU `i`.
    ///
    /// Where both triangles are filled each pair takes the smaller of its two
    /// figures: what disturbs a transfer only ever adds time, and of a line's
    /// two homes the nearer shows the wiring (Dual EPYC, see `home`).
    ///
    /// # Errors
    /// [`MatrixError`] names the first cell that is no latency, is missing or
    /// is one too many.
    pub fn from_csv(text: &str) -> Result<Self, MatrixError> {
        let rows = split(text)?;
        let width = rows.iter().map(|(_, cells)| used(cells)).max().unwrap_or(0);
        // A lower triangle without diagonal may leave out CPU 0's empty row.
        let n = rows.len();
        match (n, width) {
            (0, _) | (_, 0) => return Err(MatrixError::Empty),
            (1, 1) => return Err(MatrixError::OneCpu),
            _ => {}
        }
        let mut matrix = Self::new((0..n).collect());
        for (row, (line, cells)) in rows.iter().enumerate() {
            if used(cells) > n {
                return Err(MatrixError::TooWide {
                    line: *line,
                    column: n + 1,
                    rows: n,
                });
            }
            matrix.read_row(row, *line, cells)?;
        }
        Ok(matrix)
    }

    fn read_row(&mut self, row: usize, line: usize, cells: &[&str]) -> Result<(), MatrixError> {
        for column in 0..cells.len().max(row) {
            let cell = cells.get(column).copied().unwrap_or("");
            let value = latency(cell, line, column + 1)?;
            match value {
                // The diagonal is no pair, whatever stands there.
                _ if column == row => {}
                Some(value) => {
                    let known = self.at(row, column);
                    // `min` takes the other where one is NaN.
                    self.set(row, column, value.min(known));
                }
                None if column < row => {
                    return Err(MatrixError::Missing {
                        line,
                        column: column + 1,
                    });
                }
                None => {}
            }
        }
        Ok(())
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

/// Lines of cells with their numbers, without what surrounds the matrix.
fn split(text: &str) -> Result<Vec<(usize, Cells<'_>)>, MatrixError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows: Vec<(usize, Cells<'_>)> = Vec::new();
    let mut gap = None;
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            gap = gap.or((!rows.is_empty()).then_some(index + 1));
            continue;
        }
        if let Some(line) = gap {
            return Err(MatrixError::EmptyLine { line });
        }
        if rows.len() == PairMatrix::MAX_CPUS {
            return Err(MatrixError::TooLarge { line: index + 1 });
        }
        rows.push((index + 1, line.split(',').map(unquoted).collect()));
    }
    Ok(rows)
}

fn unquoted(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'))
        .map_or(cell, str::trim)
}

/// Cells up to the last that is not empty.
fn used(cells: &[&str]) -> usize {
    cells
        .iter()
        .rposition(|cell| !cell.is_empty())
        .map_or(0, |last| last + 1)
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
