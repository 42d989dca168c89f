//! Cholesky factors of covariance matrices, stored row by row.

/// A lower triangular factor L with L Lᵀ = A.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factors a symmetric matrix of `size` rows, of which only the lower half
    /// is read; `None` where it is not positive definite.
    pub(super) fn of(mut matrix: Vec<f64>, size: usize) -> Option<Self> {
        for row in 0..size {
            for column in 0..=row {
                let (above, below) = (&matrix[column * size..], &matrix[row * size..]);
                let done = dot(&above[..column], &below[..column]);
                let left = matrix[row * size + column] - done;
                matrix[row * size + column] = if row == column {
                    // Written so that a NaN is refused, too.
                    if !(left > 0.0 && left.is_finite()) {
                        return None;
                    }
                    left.sqrt()
                } else {
                    left / matrix[column * size + column]
                };
            }
        }
        Some(Self {
            size,
            lower: matrix,
        })
    }

    /// ln det A.
    pub(super) fn log_determinant(&self) -> f64 {
        let diagonal = (0..self.size).map(|at| self.lower[at * self.size + at].ln());
        2.0 * diagonal.sum::<f64>()
    }

    /// L x in place.
    pub(super) fn multiply(&self, vector: &mut [f64]) {
        for row in (0..self.size).rev() {
            let coefficients = &self.lower[row * self.size..=row * self.size + row];
            vector[row] = dot(coefficients, &vector[..=row]);
        }
    }

    /// Solves L x = b in place.
    pub(super) fn solve_lower(&self, vector: &mut [f64]) {
        for row in 0..self.size {
            let coefficients = &self.lower[row * self.size..row * self.size + row];
            let done = dot(coefficients, &vector[..row]);
            vector[row] = (vector[row] - done) / self.lower[row * self.size + row];
        }
    }
}

/// Four sums side by side: one would wait for each addition before the next.
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
        let matrix = vec![4.0, 0.0, 0.0, 12.0, 37.0, 0.0, -16.0, -43.0, 98.0];
        let factor = Cholesky::of(matrix, 3).unwrap();
        assert!(are_near(&factor.lower[3..5], &[6.0, 1.0]));
        assert!(are_near(&factor.lower[6..9], &[-8.0, 5.0, 3.0]));
        assert!((factor.log_determinant() - 36f64.ln()).abs() < 1e-12);
        let mut vector = [2.0, 7.0, 1.0];
        factor.solve_lower(&mut vector);
        assert!(are_near(&vector, &[1.0, 1.0, 4.0 / 3.0]));
        factor.multiply(&mut vector);
        assert!(are_near(&vector, &[2.0, 7.0, 1.0]));
    }

    #[test]
    fn what_is_no_covariance_is_refused() {
        assert_eq!(Cholesky::of(vec![1.0, 0.0, 2.0, 1.0], 2), None);
        assert_eq!(Cholesky::of(vec![f64::NAN], 1), None);
    }
}
