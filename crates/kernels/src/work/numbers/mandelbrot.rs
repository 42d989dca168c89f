//! The Mandelbrot set by escape time: multiplications and additions on
//! several points at once.
//!
//! Points of a row are taken in chunks as wide as the registers of the instruction set. A block of
//! steps runs without checks; if a point left the circle meanwhile, the block is repeated and
//! counted step by step: a point outside never comes back, so counts are exact. The picture must
//! mirror itself at the real axis and have the area of the set. No fused multiplication: every
//! instruction set counts the same.

use super::fold_digest;
use crate::work::isa::{Version, versions};
use crate::work::{Group, Job, Kernel, KernelError, Setup, Size, Worker, Wrong};

pub(in crate::work) const MANDELBROT: Kernel = Kernel {
    name: "mandelbrot",
    group: Group::Float,
    about: "escape times of a picture's points: arithmetic on many at once",
    source: "Mandelbrot 1980, z = z² + c from 0, |z| ≤ 2, at most 256 steps; x −2 to 0.5, y ±1.25",
    operation: "points",
    size: Some(Size {
        of: "points on a side",
        default: 640,
        least: 32,
        most: 1 << 20,
    }),
    has_versions: true,
    footprint_bytes: |size, threads| threads as u64 * 8 * size,
    prepare: |setup: &Setup| {
        Ok(Box::new(Mandelbrot {
            version: setup.isa.version(),
            side: setup.size,
        }))
    },
};

/// Steps after which a point counts as inside.
const STEPS: u64 = 256;
/// Steps without a check.
const BLOCK: u64 = 8;
const LEFT: f64 = -2.0;
const WIDTH: f64 = 2.5;
/// The set's area is 1.5066 (Förstemann 2012); with so few steps some outside points count as
/// inside.
const AREA: f64 = 1.52;

struct Mandelbrot {
    version: Version,
    side: u64,
}

impl Job for Mandelbrot {
    fn operations_per_unit(&self) -> u64 {
        self.side * self.side
    }

    fn working_set_bytes(&self) -> u64 {
        2048
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        let side = usize::try_from(self.side).unwrap_or(usize::MAX);
        Ok(Box::new(Painter {
            version: self.version,
            rows: vec![0; side],
        }))
    }
}

struct Painter {
    version: Version,
    /// Digest of each row.
    rows: Vec<u64>,
}

impl Worker for Painter {
    fn run_unit(&mut self, _unit: u64) -> Result<u64, Wrong> {
        let inside = compute_picture(self.version, &mut self.rows);
        let side = self.rows.len();
        let mirrored = self.rows.iter().rev();
        if !self.rows.iter().take(side / 2).eq(mirrored.take(side / 2)) {
            return Err("the picture is not its own mirror image");
        }
        let step = WIDTH / side as f64;
        let area = inside as f64 * step * step;
        // Half of the edge points are in, and every column has some: the error grows with the width
        // of a column.
        if (area - AREA).abs() > 0.02 + 1.5 * step {
            return Err("the set does not have its area");
        }
        Ok(self
            .rows
            .iter()
            .fold(inside, |digest, &row| fold_digest(digest, row)))
    }
}

/// Escape times of all points; stores a digest of each row and returns the number of points inside.
fn compute_picture(version: Version, rows: &mut [u64]) -> u64 {
    let side = rows.len();
    let mut inside = 0;
    for (number, digest) in rows.iter_mut().enumerate() {
        let y = imaginary(number, side);
        let (within, found) = match version {
            Version::V1 | Version::V2 => compute_narrow(version, y, side),
            Version::V3 => compute_wide(version, y, side),
            Version::V4 | Version::V4Plus => compute_widest(version, y, side),
        };
        inside += within;
        *digest = found;
    }
    inside
}

/// The middle of a row; rows at equal distances from the axis have exactly
/// opposite ones.
fn imaginary(row: usize, side: usize) -> f64 {
    (2.0 * row as f64 + 1.0 - side as f64) * (WIDTH / 2.0 / side as f64)
}

versions! { fn compute_narrow(y: f64, side: usize) -> (u64, u64) = compute_row::<8>; }
versions! { fn compute_wide(y: f64, side: usize) -> (u64, u64) = compute_row::<16>; }
versions! { fn compute_widest(y: f64, side: usize) -> (u64, u64) = compute_row::<32>; }

/// The number of points of a row inside, and a digest of all its counts.
#[inline(always)]
fn compute_row<const LANES: usize>(y: f64, side: usize) -> (u64, u64) {
    let step = WIDTH / side as f64;
    let (mut inside, mut digest) = (0u64, 0u64);
    for start in (0..side).step_by(LANES) {
        let mut x = [0.0; LANES];
        for (lane, x) in x.iter_mut().enumerate() {
            *x = LEFT + ((start + lane) as f64 + 0.5) * step;
        }
        let counts = escape_times(&x, y);
        // The last chunk may extend beyond the edge.
        for (count, column) in counts.into_iter().zip(start..side) {
            inside += u64::from(count == STEPS);
            digest = digest.wrapping_add(count.wrapping_mul(2 * column as u64 + 1));
        }
    }
    (inside, digest)
}

/// The number of z₁, z₂, … inside the circle, for each point.
#[inline(always)]
fn escape_times<const LANES: usize>(x: &[f64; LANES], y: f64) -> [u64; LANES] {
    let (mut re, mut im) = ([0.0; LANES], [0.0; LANES]);
    let mut counts = [0u64; LANES];
    // All ones while inside.
    let mut marks = [u64::MAX; LANES];
    for _ in 0..STEPS / BLOCK {
        let before = (re, im);
        for _ in 0..BLOCK {
            advance(&mut re, &mut im, x, y);
        }
        let found = mark_inside(&re, &im);
        if !differ(&found, &marks) {
            for (count, mark) in counts.iter_mut().zip(&marks) {
                *count += mark & BLOCK;
            }
        } else {
            (re, im) = before;
            for _ in 0..BLOCK {
                advance(&mut re, &mut im, x, y);
                let now = mark_inside(&re, &im);
                for ((count, mark), now) in counts.iter_mut().zip(&mut marks).zip(now) {
                    *mark &= now;
                    *count += *mark & 1;
                }
            }
            if !differ(&marks, &[0; LANES]) {
                break;
            }
        }
    }
    counts
}

/// Compared in registers: `==` on arrays would store both and call a function.
#[inline(always)]
fn differ<const LANES: usize>(one: &[u64; LANES], other: &[u64; LANES]) -> bool {
    let pairs = one.iter().zip(other);
    pairs.fold(0, |any, (one, other)| any | (one ^ other)) != 0
}

#[inline(always)]
fn advance<const LANES: usize>(
    re: &mut [f64; LANES],
    im: &mut [f64; LANES],
    x: &[f64; LANES],
    y: f64,
) {
    for lane in 0..LANES {
        let (a, b) = (re[lane], im[lane]);
        re[lane] = a * a - b * b + x[lane];
        im[lane] = (a + a) * b + y;
    }
}

/// All ones if the point is in the circle of radius 2; a NaN has long left it.
#[inline(always)]
fn mark_inside<const LANES: usize>(re: &[f64; LANES], im: &[f64; LANES]) -> [u64; LANES] {
    let mut marks = [0; LANES];
    for lane in 0..LANES {
        let square = re[lane] * re[lane] + im[lane] * im[lane];
        marks[lane] = if square <= 4.0 { u64::MAX } else { 0 };
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Isa;

    /// The definition, one point at a time.
    fn count_steps(x: f64, y: f64) -> u64 {
        let (mut re, mut im) = (0.0f64, 0.0f64);
        for count in 0..STEPS {
            (re, im) = (re * re - im * im + x, (re + re) * im + y);
            if re * re + im * im > 4.0 {
                return count;
            }
        }
        STEPS
    }

    #[test]
    fn counts_are_those_of_the_definition() {
        let side = 90;
        let step = WIDTH / side as f64;
        let mut rows = vec![0; side];
        for isa in Isa::list_supported() {
            let inside = compute_picture(isa.version(), &mut rows);
            let mut expected = 0;
            for (number, row) in rows.iter().enumerate() {
                let y = imaginary(number, side);
                let counts = (0..side).map(|i| count_steps(LEFT + (i as f64 + 0.5) * step, y));
                let counts: Vec<u64> = counts.collect();
                expected += counts.iter().filter(|&&count| count == STEPS).count() as u64;
                let digest = counts.iter().zip(0u64..).map(|(c, i)| c * (2 * i + 1));
                assert_eq!(*row, digest.sum::<u64>(), "row {number}, {isa}");
            }
            assert_eq!(inside, expected);
        }
    }

    #[test]
    fn points_at_the_very_edge_are_counted_exactly() {
        // −2 stays on the circle for ever; its neighbours do not.
        let edge = [
            -2.0,
            -2.0 - 1e-15,
            -2.0 + 1e-15,
            0.25,
            0.25 + 1e-12,
            -0.75,
            0.5,
            -1.25,
        ];
        for y in [0.0, 1e-16, -1e-9, 0.1] {
            let expected = edge.map(|x| count_steps(x, y));
            assert_eq!(escape_times(&edge, y), expected, "{y}");
        }
    }

    #[test]
    fn pictures_of_any_size_are_accepted() {
        for side in 32..200 {
            let mut painter = Painter {
                version: Isa::Native.version(),
                rows: vec![0; side],
            };
            assert!(painter.run_unit(0).is_ok(), "{side}");
        }
    }
}
