//! Digits of e by the spigot: divisions that wait for each other.
//!
//! e − 2 = 1/2! + 1/3! + … is the number 0.1111… in a base whose i-th place is
//! worth 1/i!; to multiply it by 10,000 and carry gives four digits. The first
//! digits and those at known places are verified. It is not the fast way to
//! many digits, and is not meant to be.

use super::fold_digest;
use crate::work::{Group, Job, Kernel, KernelError, Setup, Size, Worker, Wrong};

pub(in crate::work) const NAPIERIAN: Kernel = Kernel {
    name: "napierian",
    group: Group::Integer,
    about: "digits of e by the spigot: dependent divisions",
    source: "Sale 1968, The calculation of e to many significant digits, Computer Journal 11(2)",
    operation: "digits",
    size: Some(Size {
        of: "digits",
        default: 6000,
        least: 40,
        // Up to here a place times 10,000 and a carry fit 32 bits.
        most: 1_000_000,
    }),
    has_versions: false,
    footprint_bytes: |size, threads| {
        threads as u64 * (4 * count_places(size) as u64 + 2 * size.div_ceil(DIGITS_OF_GROUP))
    },
    prepare: |setup: &Setup| Ok(Box::new(Napierian { digits: setup.size })),
};

/// Digits come in groups of four.
const GROUP: u32 = 10_000;
const DIGITS_OF_GROUP: u64 = 4;

/// The first digits after 2., in groups of four.
const FIRST: [u16; 10] = [7182, 8182, 8459, 452, 3536, 287, 4713, 5266, 2497, 7572];

/// Groups ending at this digit after the point, from the series summed with big integers.
const KNOWN: [(u64, u16); 5] = [
    (100, 4274),
    (1000, 354),
    (4000, 9997),
    (10_000, 6788),
    (100_000, 1658),
];

/// Terms after which the remainder is below 10^−(digits + 20).
fn count_places(digits: u64) -> usize {
    let (mut place, mut decimals) = (2u32, 0.0);
    while decimals < digits as f64 + 20.0 {
        place += 1;
        decimals += f64::from(place).log10();
    }
    place as usize
}

struct Napierian {
    digits: u64,
}

impl Job for Napierian {
    fn operations_per_unit(&self) -> u64 {
        self.digits
    }

    fn working_set_bytes(&self) -> u64 {
        4 * count_places(self.digits) as u64
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        let groups = usize::try_from(self.digits.div_ceil(DIGITS_OF_GROUP)).unwrap_or(usize::MAX);
        Ok(Box::new(Spigot {
            places: vec![1; count_places(self.digits)],
            groups: vec![0; groups],
        }))
    }
}

struct Spigot {
    /// The i-th has the weight 1/(i + 2)!.
    places: Vec<u32>,
    groups: Vec<u16>,
}

impl Worker for Spigot {
    fn run_unit(&mut self, _unit: u64) -> Result<u64, Wrong> {
        self.places.fill(1);
        for group in &mut self.groups {
            *group = next_group(&mut self.places);
        }
        if self.groups[..FIRST.len()] != FIRST {
            return Err("e begins 2.7182818284590452353602874713526624977572");
        }
        let is_known = |&(digit, group): &(u64, u16)| {
            let at = usize::try_from(digit / DIGITS_OF_GROUP).unwrap_or(usize::MAX);
            self.groups.get(at - 1).is_none_or(|&found| found == group)
        };
        if !KNOWN.iter().all(is_known) {
            return Err("four digits of e at a known place are wrong");
        }
        let groups = self.groups.iter();
        Ok(groups.fold(0, |digest, &group| fold_digest(digest, u64::from(group))))
    }
}

/// Takes the next four digits off the number.
#[expect(
    clippy::cast_possible_truncation,
    reason = "what is carried out of the first place is below 10,000"
)]
fn next_group(places: &mut [u32]) -> u16 {
    let mut carry = 0;
    let mut worth = places.len() as u32 + 1;
    for place in places.iter_mut().rev() {
        let value = *place * GROUP + carry;
        carry = value / worth;
        *place = value % worth;
        worth -= 1;
    }
    carry as u16
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]
mod tests {
    use super::*;

    fn compute_digits(count: u64) -> String {
        let job = Napierian { digits: count };
        let mut spigot = Spigot {
            places: vec![1; count_places(job.digits)],
            groups: vec![0; (count / 4) as usize],
        };
        spigot.run_unit(0).unwrap();
        let groups = spigot.groups.iter();
        groups.map(|group| format!("{group:04}")).collect()
    }

    /// The series in fixed point with 32-bit limbs, sharing no code with the spigot: sum of 1/i!,
    /// then digits by multiplication.
    fn sum_series(count: usize) -> String {
        let limbs = count * 10 / 96 + 8;
        let (mut term, mut sum) = (vec![0u64; limbs], vec![0u64; limbs]);
        term[0] = 1;
        for divisor in 1u64.. {
            for (sum, term) in sum.iter_mut().zip(&term) {
                *sum += term;
            }
            let mut rest = 0;
            for limb in &mut term {
                let value = (rest << 32) | *limb;
                *limb = value / divisor;
                rest = value % divisor;
            }
            if term.iter().all(|&limb| limb == 0) {
                break;
            }
        }
        let mut text = String::new();
        let multiply = |sum: &mut Vec<u64>, factor: u64| {
            let mut carry = 0;
            for limb in sum.iter_mut().skip(1).rev() {
                let value = *limb * factor + carry;
                *limb = value & 0xffff_ffff;
                carry = value >> 32;
            }
            carry
        };
        multiply(&mut sum, 1);
        for _ in 0..count {
            text += &multiply(&mut sum, 10).to_string();
        }
        text
    }

    #[test]
    fn digits_are_those_of_the_series() {
        for count in [40, 100, 1000, 4000] {
            assert_eq!(compute_digits(count), sum_series(count as usize), "{count}");
        }
    }
}
