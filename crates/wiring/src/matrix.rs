//! Reads and writes latency matrices as text.
//!
//! The formats are those of core-to-core-latency, c2clat and spreadsheets: a square of numbers in ns,
//! separated by commas, or only its lower triangle, with or without a diagonal. CPU numbers above and
//! beside the figures, as pandas writes them, are understood. Errors name line and column.

use pinwise_topology::CpuSet;

use super::PairMatrix;

/// Why a matrix could not be read. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// No figure at all.
    #[error("no figures; a matrix has a row and a column for every CPU")]
    Empty,
    /// A cell that is not a number.
    #[error(
        "line {line}, column {column}: '{cell}' is not a number; a matrix holds latencies in ns, without headers"
    )]
    NotANumber {
        /// Line of the text.
        line: usize,
        /// Cell of the line.
        column: usize,
        /// The cell, shortened.
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
        /// The cell, shortened.
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
    /// A row longer or shorter than the others.
    #[error(
        "line {line}, column {column}: the row has {found} cells and should have {expected}; is the file cut off?"
    )]
    Ragged {
        /// Line of the text.
        line: usize,
        /// First superfluous or missing cell.
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
    /// Only zeros.
    #[error("every latency is 0; nothing was measured")]
    AllZero,
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
    /// The largest number of CPUs in a matrix that is read from text.
    pub const MAX_CPUS: usize = 1024;

    /// Reads a matrix from comma-separated values, in ns; row and column `i` are CPU `i`.
    ///
    /// Rows are of one length (a square, whose upper triangle may be empty), or each is one cell
    /// longer than the one before (a triangle). The diagonal is not used.
    ///
    /// If both triangles are filled, each pair takes the smaller of its two figures: a disturbance
    /// only adds time, and of two homes of the line the nearer one shows the wiring.
    ///
    /// # Errors
    /// [`MatrixError`] names the first cell that is not a latency, is missing or is superfluous.
    pub fn from_csv(text: &str) -> Result<Self, MatrixError> {
        let mut rows = split_rows(text)?;
        let numbers = take_cpu_numbers(&mut rows);
        check_lengths(&rows)?;
        let shift = usize::from(lacks_first_row(&rows));
        let n = rows.len() + shift;
        if n > Self::MAX_CPUS {
            let line = rows.last().map_or(1, |row| row.line);
            return Err(MatrixError::TooLarge { line });
        }
        let cpus = numbers.filter(|numbers| numbers.len() == n);
        let mut matrix = Self::new(cpus.unwrap_or_else(|| (0..n).collect()));
        for (index, row) in rows.iter().enumerate() {
            matrix.read_row(index + shift, row)?;
        }
        for (index, row) in rows.iter().enumerate() {
            matrix.check_row(index + shift, row)?;
        }
        if n == 1 {
            return Err(MatrixError::OneCpu { line: rows[0].line });
        }
        let mut pairs = (0..n).flat_map(|row| (0..row).map(move |column| (row, column)));
        if pairs.all(|(row, column)| matrix.at(row, column) == 0.0) {
            return Err(MatrixError::AllZero);
        }
        Ok(matrix)
    }

    fn read_row(&mut self, cpu: usize, row: &Row<'_>) -> Result<(), MatrixError> {
        for (other, cell) in row.cells.iter().enumerate() {
            let value = parse_latency(cell, row.line, other + 1)?;
            // The diagonal is not a pair, whatever its value.
            if let Some(value) = value.filter(|_| other != cpu) {
                let known = self.at(cpu, other);
                // `min` and `max` ignore NaN. Zeros may fill the other triangle.
                let both = match value == 0.0 || known == 0.0 {
                    true => value.max(known),
                    false => value.min(known),
                };
                self.set(cpu, other, both);
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

    /// The lower triangle as comma-separated values in ns, the format of [`PairMatrix::from_csv`];
    /// empty if not measured.
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

/// Lines of cells, without empty lines before and after the matrix. The first row of a triangle
/// without diagonal is itself an empty line.
fn split_rows(text: &str) -> Result<Vec<Row<'_>>, MatrixError> {
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
        let cells: Vec<&str> = text.split(',').map(unquote).collect();
        if rows.is_empty() && line == 2 && (1..=2).contains(&cells.len()) {
            rows.push(Row {
                line: 1,
                cells: vec![""; cells.len() - 1],
            });
        }
        rows.push(Row { line, cells });
    }
    if rows.is_empty() || rows.iter().all(|row| count_used_cells(row) == 0) {
        return Err(MatrixError::Empty);
    }
    Ok(rows)
}

/// Removes the CPU numbers above and beside the figures, if there are any: the same ascending whole
/// numbers in the first row and in the first cell of each other row, as pandas writes them. Returns
/// `None` for consecutive numbers from 0 or 1 on, which only count the rows.
fn take_cpu_numbers(rows: &mut Vec<Row<'_>>) -> Option<Vec<usize>> {
    let number = |cell: &&str| -> Option<usize> {
        let whole = cell.strip_suffix(".0").unwrap_or(cell);
        whole.parse().ok().filter(|n| *n <= CpuSet::MAX_CPU)
    };
    let (first, rest) = rows.split_first()?;
    let above: Vec<usize> = first
        .cells
        .get(1..)?
        .iter()
        .map(number)
        .collect::<Option<_>>()?;
    let beside = rest.iter().map(|row| number(row.cells.first()?));
    let beside: Vec<usize> = beside.collect::<Option<_>>()?;
    let is_growing = above.windows(2).all(|pair| pair[0] < pair[1]);
    if above.len() < 2 || above != beside || !is_growing || !are_cpu_numbers(&above, first, rest) {
        return None;
    }
    rows.remove(0);
    for row in rows {
        row.cells.remove(0);
    }
    let is_plain = above[0] <= 1 && above.windows(2).all(|pair| pair[1] == pair[0] + 1);
    (!is_plain).then_some(above)
}

/// Are these numbers of CPUs rather than figures? The first row and column of a symmetric matrix are
/// alike as well. But no latency is 0 ns, and more than three figures of a row are hardly all
/// ascending and whole numbers if others are not.
fn are_cpu_numbers(above: &[usize], first: &Row<'_>, rest: &[Row<'_>]) -> bool {
    let is_corner_word = !first.cells[0].is_empty() && first.cells[0].parse::<f64>().is_err();
    let counts_from_1 = above.iter().copied().eq(1..=above.len());
    let inside = rest.iter().flat_map(|row| row.cells[1..].iter());
    let has_fractions = || {
        let mut figures = inside.filter_map(|cell| cell.parse::<f64>().ok());
        figures.any(|figure| figure.fract() != 0.0)
    };
    is_corner_word || above[0] == 0 || counts_from_1 || above.len() > 3 && has_fractions()
}

/// Checks that all rows have one length, or that each is one cell longer than the last, and that there
/// are as many rows as columns.
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
    // A comma after the last cell opens an empty one. In a lower triangle without diagonal that is
    // the column of a CPU whose row is lost.
    let n = rows.len();
    let widest = rows.iter().map(count_used_cells).max().unwrap_or(0);
    let is_square = first == n || (first == n + 1 && widest == n);
    if is_square || is_triangle {
        return Ok(());
    }
    let last = &rows[rows.len() - 1];
    if first < n {
        return Err(MatrixError::Ragged {
            line: last.line,
            column: first + 1,
            found: first,
            expected: n,
        });
    }
    Err(MatrixError::NotSquare {
        line: last.line,
        rows: n,
        columns: first,
    })
}

/// Is the empty row of CPU 0 left out? A triangle whose rows all end with a figure above zero has no
/// diagonal, since that would be zeros.
fn lacks_first_row(rows: &[Row<'_>]) -> bool {
    let is_figure = |cell: &&str| cell.parse::<f64>().is_ok_and(|v| v.is_finite() && v > 0.0);
    rows[0].cells.len() == 1
        && rows.get(1).is_none_or(|row| row.cells.len() == 2)
        && rows
            .iter()
            .all(|row| row.cells.last().is_some_and(is_figure))
}

fn unquote(cell: &str) -> &str {
    let cell = cell.trim();
    cell.strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'))
        .map_or(cell, str::trim)
}

/// Cells up to the last that is not empty.
fn count_used_cells(row: &Row<'_>) -> usize {
    let last = row.cells.iter().rposition(|cell| !cell.is_empty());
    last.map_or(0, |last| last + 1)
}

/// A cell's figure; `None` if it is empty.
fn parse_latency(cell: &str, line: usize, column: usize) -> Result<Option<f64>, MatrixError> {
    if cell.is_empty() {
        return Ok(None);
    }
    let value: f64 = cell.parse().map_err(|_| MatrixError::NotANumber {
        line,
        column,
        cell: shorten(cell),
    })?;
    if value.is_finite() && value >= 0.0 {
        return Ok(Some(value));
    }
    Err(MatrixError::NotALatency {
        line,
        column,
        cell: shorten(cell),
    })
}

/// Shortens a cell for a message.
fn shorten(cell: &str) -> String {
    const MAX_CHARACTERS: usize = 24;
    if cell.chars().count() <= MAX_CHARACTERS {
        return cell.to_owned();
    }
    let start: String = cell.chars().take(MAX_CHARACTERS).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests;
