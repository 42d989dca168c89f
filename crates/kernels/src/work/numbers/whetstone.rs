//! Whetstone: the mix of floating-point work, calls, jumps and mathematical
//! functions that a survey of scientific Algol programs found in 1970.
//!
//! The modules and their weights are those of the paper's program with `I = 10`, a million
//! Whetstone instructions, repeated; after each repetition every module's results are compared with
//! the printed ones. Modules 1, 5 and 10 have no passes in the paper, and none here. The platform's
//! mathematical library is part of what is measured.

use std::hint::black_box;

use super::{fold_digest, round};
use crate::work::isa::{Version, versions};
use crate::work::{Group, Job, Kernel, KernelError, Setup, Worker, Wrong};

pub(in crate::work) const WHETSTONE: Kernel = Kernel {
    name: "whetstone",
    group: Group::Float,
    about: "floating-point mix with sin, cos, atan, exp, log, sqrt and calls",
    source: "Curnow and Wichmann 1976, Computer Journal 19(1); module mix of netlib's whetstone",
    operation: "Whetstone instructions",
    size: None,
    has_versions: true,
    footprint_bytes: |_, _| 0,
    prepare: |setup: &Setup| Ok(Box::new(Whetstone(setup.isa.version()))),
};

/// Repetitions of the paper's program in a unit: about 10 ms.
const REPETITIONS: u64 = 75;
/// Whetstone instructions of one repetition.
const INSTRUCTIONS: u64 = 1_000_000;
/// The paper's `I`.
const LOOPS: usize = 10;

struct Whetstone(Version);

impl Job for Whetstone {
    fn operations_per_unit(&self) -> u64 {
        REPETITIONS * INSTRUCTIONS
    }

    fn working_set_bytes(&self) -> u64 {
        1024
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        Ok(Box::new(Self(self.0)))
    }
}

impl Worker for Whetstone {
    fn run_unit(&mut self, _unit: u64) -> Result<u64, Wrong> {
        let mut digest = 0;
        for _ in 0..REPETITIONS {
            let results = run_mix(self.0, black_box(LOOPS), black_box(&FACTORS));
            if !results.are_right() {
                return Err("a module's results differ from those of the paper");
            }
            digest = results.digest(digest);
        }
        Ok(digest)
    }
}

/// T, T1 and T2 of the paper.
const FACTORS: [f64; 3] = [0.499_975, 0.500_25, 2.0];

/// The results of the modules, by their number in the paper.
#[derive(Debug, Default, Clone, PartialEq)]
struct Results {
    elements: [f64; 4],
    parameters: [f64; 4],
    jump: i64,
    integers: [i64; 3],
    integer_elements: [f64; 4],
    trigonometric: [f64; 2],
    calls: f64,
    references: [f64; 3],
    functions: f64,
}

/// Reads a figure from the results.
type Read = fn(&Results) -> f64;

/// The printed results for `I = 10`, to five digits.
const PRINTED: [(Read, f64); 17] = [
    (|results| results.elements[0], -6.8342e-2),
    (|results| results.elements[1], -4.6264e-1),
    (|results| results.elements[2], -7.2972e-1),
    (|results| results.elements[3], -1.1240),
    (|results| results.parameters[0], -5.5336e-2),
    (|results| results.parameters[1], -4.4744e-1),
    (|results| results.parameters[2], -7.1097e-1),
    (|results| results.parameters[3], -1.1031),
    (|results| results.integer_elements[0], 6.0),
    (|results| results.integer_elements[1], 6.0),
    (|results| results.trigonometric[0], 4.9041e-1),
    (|results| results.trigonometric[1], 4.9039e-1),
    (|results| results.calls, 9.9994e-1),
    (|results| results.references[0], 3.0),
    (|results| results.references[1], 2.0),
    (|results| results.references[2], 3.0),
    (|results| results.functions, 8.3467e-1),
];

impl Results {
    fn are_right(&self) -> bool {
        let is_printed = |(read, printed): &(Read, f64)| {
            let unit_of_last_digit = 10f64.powf(printed.abs().log10().floor() - 4.0);
            (read(self) - printed).abs() < 0.51 * unit_of_last_digit
        };
        // Module 6 leaves J = 1, K = 2; its subscripts need L = 3.
        self.jump == 1 && self.integers == [1, 2, 3] && PRINTED.iter().all(is_printed)
    }

    fn digest(&self, digest: u64) -> u64 {
        PRINTED.iter().fold(digest, |digest, (read, _)| {
            fold_digest(digest, round(read(self)))
        })
    }
}

versions! { fn run_mix(loops: usize, factors: &[f64; 3]) -> Results = mix_body; }

#[inline(always)]
fn mix_body(loops: usize, factors: &[f64; 3]) -> Results {
    let mut results = Results::default();
    let mut array = [1.0, -1.0, -1.0, -1.0];
    for _ in 0..12 * loops {
        run_elements(&mut array, factors[0]);
    }
    results.elements = array;
    for _ in 0..14 * loops {
        run_array_as_parameter(&mut array, factors);
    }
    results.parameters = array;
    results.jump = run_jumps(345 * loops);
    results.integers = run_integers(210 * loops, &mut array);
    results.integer_elements = array;
    results.trigonometric = run_trigonometric(32 * loops, factors);
    for _ in 0..899 * loops {
        run_procedure(1.0, 1.0, &mut results.calls, factors);
    }
    array[..3].copy_from_slice(&[1.0, 2.0, 3.0]);
    for _ in 0..616 * loops {
        run_array_references(&mut array, [0, 1, 2]);
    }
    results.references.copy_from_slice(&array[..3]);
    results.functions = run_functions(93 * loops, factors);
    results
}

/// One pass of module 2.
#[inline(always)]
fn run_elements(e: &mut [f64; 4], t: f64) {
    e[0] = (e[0] + e[1] + e[2] - e[3]) * t;
    e[1] = (e[0] + e[1] - e[2] + e[3]) * t;
    e[2] = (e[0] - e[1] + e[2] + e[3]) * t;
    e[3] = (-e[0] + e[1] + e[2] + e[3]) * t;
}

/// One pass of module 3, the paper's procedure PA.
#[inline(always)]
fn run_array_as_parameter(e: &mut [f64; 4], factors: &[f64; 3]) {
    for _ in 0..6 {
        e[0] = (e[0] + e[1] + e[2] - e[3]) * factors[0];
        e[1] = (e[0] + e[1] - e[2] + e[3]) * factors[0];
        e[2] = (e[0] - e[1] + e[2] + e[3]) * factors[0];
        e[3] = (-e[0] + e[1] + e[2] + e[3]) / factors[2];
    }
}

/// Module 4. The value is hidden from the compiler once per pass: otherwise it would know where the
/// jumps end.
#[inline(always)]
fn run_jumps(passes: usize) -> i64 {
    let mut j = 1;
    for _ in 0..passes {
        j = if black_box(j) == 1 { 2 } else { 3 };
        j = if j > 2 { 0 } else { 1 };
        j = if j < 1 { 1 } else { 0 };
    }
    j
}

/// Module 6.
#[inline(always)]
fn run_integers(passes: usize, e: &mut [f64; 4]) -> [i64; 3] {
    let (mut j, mut k, mut l) = black_box((1_i64, 2_i64, 3_i64));
    for _ in 0..passes {
        j = j * (k - j) * (l - k);
        k = l * k - (l - j) * k;
        l = (l - k) * (k + j);
        e[convert_subscript(l - 1)] = (j + k + l) as f64;
        e[convert_subscript(k - 1)] = (j * k * l) as f64;
    }
    [j, k, l]
}

/// Converts a Fortran subscript, which counts from 1.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "masked to the four elements there are"
)]
const fn convert_subscript(fortran: i64) -> usize {
    (fortran - 1) as usize & 3
}

/// Module 7.
#[inline(always)]
fn run_trigonometric(passes: usize, factors: &[f64; 3]) -> [f64; 2] {
    let (mut x, mut y) = (0.5_f64, 0.5_f64);
    let term = |angle: f64, x: f64, y: f64| {
        let cosines = (x + y).cos() + (x - y).cos() - 1.0;
        factors[0] * (factors[2] * angle.sin() * angle.cos() / cosines).atan()
    };
    for _ in 0..passes {
        x = term(x, x, y);
        y = term(y, x, y);
    }
    [x, y]
}

/// The paper's P3, a call with its parameters. It writes through a reference,
/// so that calls cannot be left out.
#[inline(never)]
fn run_procedure(x: f64, y: f64, z: &mut f64, factors: &[f64; 3]) {
    let first = factors[0] * (x + y);
    let second = factors[0] * (first + y);
    *z = (first + second) / factors[2];
}

/// The paper's P0, array references.
#[inline(never)]
fn run_array_references(e: &mut [f64; 4], [j, k, l]: [usize; 3]) {
    e[j] = e[k];
    e[k] = e[l];
    e[l] = e[j];
}

/// Module 11.
#[inline(always)]
fn run_functions(passes: usize, factors: &[f64; 3]) -> f64 {
    let mut x = 0.75_f64;
    for _ in 0..passes {
        x = (x.ln() / factors[1]).exp().sqrt();
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_those_that_the_program_prints() {
        let results = run_mix(Version::V1, LOOPS, &FACTORS);
        for (read, printed) in PRINTED {
            assert_eq!(format!("{:.4e}", read(&results)), format!("{printed:.4e}"));
        }
        assert!(results.are_right(), "{results:?}");
    }

    #[test]
    fn a_wrong_factor_is_noticed() {
        for factor in 0..3 {
            let mut factors = FACTORS;
            factors[factor] *= 1.001;
            assert!(
                !run_mix(Version::V1, LOOPS, &factors).are_right(),
                "{factor}"
            );
        }
        assert!(!run_mix(Version::V1, LOOPS + 1, &FACTORS).are_right());
    }
}
