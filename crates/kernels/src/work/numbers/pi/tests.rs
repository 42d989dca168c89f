use super::*;
use crate::work::Isa;

fn job(digits: u64, isa: Isa) -> Pi {
    let setup = Setup {
        size: digits,
        threads: 1,
        isa,
        folder: std::path::PathBuf::new(),
    };
    Pi {
        digits,
        transforms: Transforms::new(&setup, count_limbs(digits)),
    }
}

/// Limbs of a formula that shares no code with the kernel: Machin 1706, π = 16 arctan(1/5) − 4
/// arctan(1/239).
fn compute_by_machin(limbs: usize) -> Vec<u32> {
    let spare = limbs + 4;
    let mut sum = vec![0i64; spare];
    for (factor, x) in [(16i64, 5u64), (-4, 239)] {
        let mut power = vec![0u64; spare];
        power[0] = factor.unsigned_abs();
        divide_by(&mut power, x);
        for odd in (1u64..).step_by(2) {
            let mut term = power.clone();
            divide_by(&mut term, odd);
            let sign = factor.signum() * if odd % 4 == 1 { 1 } else { -1 };
            for (sum, term) in sum.iter_mut().zip(&term) {
                *sum += sign * *term as i64;
            }
            divide_by(&mut power, x * x);
            if power.iter().all(|&limb| limb == 0) {
                break;
            }
        }
    }
    for at in (1..spare).rev() {
        sum[at - 1] += sum[at].div_euclid(10_000);
        sum[at] = sum[at].rem_euclid(10_000);
    }
    sum.truncate(limbs);
    sum.into_iter().map(|limb| limb as u32).collect()
}

fn divide_by(number: &mut [u64], divisor: u64) {
    let mut rest = 0;
    for limb in number {
        let value = rest * 10_000 + *limb;
        *limb = value / divisor;
        rest = value % divisor;
    }
}

#[test]
fn digits_are_those_of_machin() {
    let expected = compute_by_machin(801);
    for digits in [100, 101, 102, 103, 104, 109, 255, 256, 257, 999, 1000, 3196] {
        let job = job(digits, Isa::Native);
        let mut variables = job.create_variables();
        variables.run_unit(0).unwrap();
        let limbs = (digits / 4) as usize + 1;
        assert_eq!(variables.mean[..limbs], expected[..limbs], "{digits}");
    }
}

/// Many sizes: schedules of precision and lengths of transforms differ.
#[test]
fn every_size_gives_the_same_first_digits() {
    let expected = compute_by_machin(320);
    for digits in (100..1270).step_by(13) {
        let job = job(digits, Isa::Native);
        let mut variables = job.create_variables();
        variables.run_unit(0).unwrap();
        // Including the limb after the last requested digit.
        let limbs = digits as usize / 4 + 2;
        assert_eq!(variables.mean[..limbs], expected[..limbs], "{digits}");
    }
}

#[test]
fn every_instruction_set_gives_the_same_digest() {
    let digests: Vec<_> = Isa::list_supported()
        .into_iter()
        .map(|isa| job(1500, isa).create_variables().run_unit(0))
        .collect();
    assert!(digests[0].is_ok());
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_wrong_digit_is_noticed() {
    let job = job(1000, Isa::V1);
    let mut variables = job.create_variables();
    let right = variables.run_unit(0).unwrap();
    variables.mean[150] ^= 1;
    assert_ne!(variables.verify_digest().unwrap(), right);
    variables.mean[250] ^= 1;
    assert!(variables.verify_digest().is_err());
}

#[test]
fn a_unit_leaves_no_trace_in_the_next() {
    let job = job(1000, Isa::Native);
    let mut variables = job.create_variables();
    assert_eq!(variables.run_unit(0), variables.run_unit(1));
    assert!(variables.multiplier.worst_error < 1e-3);
}
