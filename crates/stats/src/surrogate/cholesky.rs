//! Cholesky factors of covariance matrices.

/// A lower triangular factor L with L Lᵀ = A: its rows up to the diagonal, one after the other. Each
/// row depends only on those before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factorises a symmetric matrix, given by its rows up to the diagonal; `None` if it is not
    /// positive definite.
    pub(super) fn factorise(rows: impl Iterator<Item = Vec<f64>>) -> Option<Self> {
        let mut factor = Self::default();
        for row in rows {
            factor.extend(&row)?;
        }
        Some(factor)
    }

    /// Adds a row of A up to the diagonal; `None` if A is then not positive definite, and the
    /// factor must not be used any more.
    pub(super) fn extend(&mut self, row: &[f64]) -> Option<()> {
        let begin = self.lower.len();
        for (column, value) in row.iter().take(self.size).enumerate() {
            let (above, below) = (self.row(column), &self.lower[begin..]);
            let left = value - dot(&above[..column], &below[..column]);
            self.lower.push(left / above[column]);
        }
        let own = &self.lower[begin..];
        let left = row[self.size] - dot(own, own);
        // This form also refuses NaN.
        if !(left > 0.0 && left.is_finite()) {
            return None;
        }
        self.lower.push(left.sqrt());
        self.size += 1;
        Some(())
    }

    fn row(&self, row: usize) -> &[f64] {
        let begin = row * (row + 1) / 2;
        &self.lower[begin..=begin + row]
    }

    /// ln det A.
    pub(super) fn log_determinant(&self) -> f64 {
        let diagonal = (0..self.size).map(|at| self.row(at)[at].ln());
        2.0 * diagonal.sum::<f64>()
    }

    /// Replaces x by L x.
    pub(super) fn multiply(&self, vector: &mut [f64]) {
        for row in (0..self.size).rev() {
            vector[row] = dot(self.row(row), &vector[..=row]);
        }
    }

    /// Solves L x = b in place.
    pub(super) fn solve_lower(&self, vector: &mut [f64]) {
        for row in 0..self.size {
            vector[row] = self.whiten(&vector[..row], vector[row]).0;
        }
    }

    /// The next element of the solution of L x = b, and its conditional standard deviation, which it
    /// was divided by.
    pub(super) fn whiten(&self, before: &[f64], value: f64) -> (f64, f64) {
        let coefficients = self.row(before.len());
        let sd = coefficients[before.len()];
        (
            (value - dot(&coefficients[..before.len()], before)) / sd,
            sd,
        )
    }
}

/// Scalar product. It uses four sums, since a single one would have to wait for each addition.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (wide_a, wide_b) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = wide_a
        .remainder()
        .iter()
        .zip(wide_b.remainder())
        .map(|(x, y)| x * y)
        .sum();
    for (x, y) in wide_a.zip(wide_b) {
        for lane in 0..4 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_near(a: &[f64], b: &[f64]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-12)
    }

    #[test]
    fn a_known_matrix_is_factored_and_solved() {
        let rows = [vec![4.0], vec![12.0, 37.0], vec![-16.0, -43.0, 98.0]];
        let factor = Cholesky::factorise(rows.into_iter()).unwrap();
        assert!(are_near(factor.row(1), &[6.0, 1.0]));
        assert!(are_near(factor.row(2), &[-8.0, 5.0, 3.0]));
        assert!((factor.log_determinant() - 36f64.ln()).abs() < 1e-12);
        let mut vector = [2.0, 7.0, 1.0];
        factor.solve_lower(&mut vector);
        assert!(are_near(&vector, &[1.0, 1.0, 4.0 / 3.0]));
        factor.multiply(&mut vector);
        assert!(are_near(&vector, &[2.0, 7.0, 1.0]));
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_is_refused() {
        let rows = [vec![1.0], vec![2.0, 1.0]];
        assert_eq!(Cholesky::factorise(rows.into_iter()), None);
        assert_eq!(Cholesky::default().extend(&[f64::NAN]), None);
    }
}
