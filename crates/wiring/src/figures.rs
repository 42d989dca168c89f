//! Latencies as logarithms, for clustering: the latencies of levels differ by ratios (a neighbour
//! core at 20 ns, the edge of its LLC at 90), not by differences.
//!
//! An entry that was not measured is NaN.

use super::PairMatrix;
use pinwise_format::whole_usize;

/// A square table of logarithms; NaN on the diagonal and for unknown pairs.
#[derive(Debug, Clone)]
pub(super) struct Logs {
    size: usize,
    values: Vec<f64>,
}

impl Logs {
    pub(super) fn new(size: usize) -> Self {
        Self {
            size,
            values: vec![f64::NAN; size * size],
        }
    }

    /// The latencies of these rows of a matrix. Zeros, from clocks with steps of several ns, count
    /// as half of the smallest figure above zero.
    pub(super) fn from_matrix(matrix: &PairMatrix, rows: &[usize]) -> Self {
        let mut logs = Self::new(rows.len());
        let floor = smallest_positive(matrix) / 2.0;
        for (i, &row) in rows.iter().enumerate() {
            for (j, &column) in rows.iter().enumerate().take(i) {
                if let Some(value) = usable(matrix.at(row, column)) {
                    logs.set(i, j, value.max(floor).ln());
                }
            }
        }
        logs
    }

    pub(super) const fn len(&self) -> usize {
        self.size
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.size + j]
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.size..(i + 1) * self.size]
    }

    pub(super) fn set(&mut self, i: usize, j: usize, value: f64) {
        self.values[i * self.size + j] = value;
        self.values[j * self.size + i] = value;
    }

    /// The known value of every pair.
    pub(super) fn pair_values(&self) -> Vec<f64> {
        (0..self.size)
            .flat_map(|i| self.row(i)[..i].iter().copied())
            .filter(|value| value.is_finite())
            .collect()
    }

    /// The table between groups of rows: the median of each block, which a few disturbed pairs do not
    /// change.
    pub(super) fn median_between(&self, groups: &[Vec<usize>]) -> Self {
        let mut blocks = Self::new(groups.len());
        for (a, rows) in groups.iter().enumerate() {
            for (b, columns) in groups.iter().enumerate().take(a) {
                blocks.set(a, b, median(&mut self.block(rows, columns)));
            }
        }
        blocks
    }

    /// How much two rows differ in their latencies to all others: the median difference.
    pub(super) fn unlikeness(&self, a: usize, b: usize) -> f64 {
        let pairs = self.row(a).iter().zip(self.row(b));
        let mut distances: Vec<f64> = pairs
            .map(|(x, y)| (x - y).abs())
            .filter(|distance| distance.is_finite())
            .collect();
        median(&mut distances)
    }

    /// The median between the items of a group.
    pub(super) fn median_within(&self, group: &[usize]) -> f64 {
        median(&mut self.block(group, group))
    }

    fn block(&self, rows: &[usize], columns: &[usize]) -> Vec<f64> {
        rows.iter()
            .flat_map(|&i| columns.iter().map(move |&j| self.at(i, j)))
            .filter(|value| value.is_finite())
            .collect()
    }
}

/// The value if it is a latency; zero is one.
pub(super) fn usable(value: f64) -> Option<f64> {
    (value.is_finite() && value >= 0.0).then_some(value)
}

fn smallest_positive(matrix: &PairMatrix) -> f64 {
    let n = matrix.len();
    let values = (0..n).flat_map(|i| (0..i).map(move |j| matrix.at(i, j)));
    let smallest = values
        .filter(|value| value.is_finite() && *value > 0.0)
        .fold(f64::INFINITY, f64::min);
    // Any value can replace the zeros of a matrix that has nothing else.
    if smallest.is_finite() {
        smallest.max(f64::MIN_POSITIVE * 4.0)
    } else {
        1.0
    }
}

/// The median; NaN if empty.
pub(super) fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which `share` of the values lie, by nearest rank; NaN if empty. Reorders the
/// values.
pub(super) fn quantile(values: &mut [f64], share: f64) -> f64 {
    let Some(last) = values.len().checked_sub(1) else {
        return f64::NAN;
    };
    let rank = whole_usize(share.clamp(0.0, 1.0) * count(last));
    *values.select_nth_unstable_by(rank, f64::total_cmp).1
}

/// The mean; NaN if empty.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

/// A count as a floating-point number.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of CPUs and of their pairs are far below 2^52"
)]
pub(super) const fn count(n: usize) -> f64 {
    n as f64
}
