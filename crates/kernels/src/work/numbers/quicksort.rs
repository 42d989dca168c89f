//! Quicksort of random numbers: unpredictable comparisons.
//!
//! Hoare's partition around the median of three, the shorter part first, and
//! insertion for the last few. Before and after, sums of the numbers and of
//! their squares are taken: sorted and of the same sums is the same numbers.
//! It does not use the standard library's sort, which is another algorithm.

use super::fold_digest;
use crate::work::isa::{Version, versions};
use crate::work::{Group, Job, Kernel, KernelError, Random, Setup, Size, Worker, Wrong};

pub(in crate::work) const QUICKSORT: Kernel = Kernel {
    name: "quicksort",
    group: Group::Integer,
    about: "random 32-bit numbers sorted: unpredictable branches",
    source: "Hoare 1962, Quicksort, Computer Journal 5(1); median of three, insertion below 16",
    operation: "numbers",
    size: Some(Size {
        of: "numbers sorted",
        default: 160_000,
        least: 16,
        most: 1 << 32,
    }),
    has_versions: true,
    footprint_bytes: |size, threads| threads as u64 * 4 * size,
    prepare: |setup: &Setup| {
        Ok(Box::new(Quicksort {
            version: setup.isa.version(),
            numbers: setup.size,
        }))
    },
};

struct Quicksort {
    version: Version,
    numbers: u64,
}

impl Job for Quicksort {
    fn operations_per_unit(&self) -> u64 {
        self.numbers
    }

    fn working_set_bytes(&self) -> u64 {
        4 * self.numbers
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        let numbers = usize::try_from(self.numbers).unwrap_or(usize::MAX);
        Ok(Box::new(Sorter {
            version: self.version,
            // Ones, so that the pages exist before the first unit.
            numbers: vec![1; numbers],
        }))
    }
}

struct Sorter {
    version: Version,
    numbers: Vec<u32>,
}

impl Worker for Sorter {
    #[expect(clippy::cast_possible_truncation, reason = "the low half is wanted")]
    fn run_unit(&mut self, unit: u64) -> Result<u64, Wrong> {
        let mut random = Random::for_unit(unit);
        for number in &mut self.numbers {
            *number = random.next() as u32;
        }
        let before = sum_numbers(&self.numbers);
        sort(self.version, &mut self.numbers);
        if !self.numbers.is_sorted() {
            return Err("the numbers are not in order");
        }
        if sum_numbers(&self.numbers) != before {
            return Err("the numbers in order are not those that were given");
        }
        // Every place counts, weighted by its distance from the end.
        let mut running = 0u64;
        let weighted = self.numbers.iter().fold(0u64, |sum, &number| {
            running = running.wrapping_add(u64::from(number));
            sum.wrapping_add(running)
        });
        Ok(fold_digest(weighted, before.1))
    }
}

/// Sums independent of the order.
fn sum_numbers(numbers: &[u32]) -> (u64, u64) {
    numbers.iter().fold((0, 0), |(sum, squares), &number| {
        let number = u64::from(number);
        (sum + number, squares.wrapping_add(number * number))
    })
}

versions! { fn sort(numbers: &mut [u32]) = sort_body; }

/// Parts shorter than this are sorted by insertion.
const SHORT: usize = 16;

/// Each pending part is longer than all later ones together: their number is at most that of the
/// bits in a length.
#[inline(always)]
fn sort_body(numbers: &mut [u32]) {
    let mut waiting = [(0, 0); usize::BITS as usize];
    let mut count = 0;
    let (mut start, mut end) = (0, numbers.len());
    loop {
        if end - start < SHORT {
            insert(&mut numbers[start..end]);
            if count == 0 {
                return;
            }
            count -= 1;
            (start, end) = waiting[count];
            continue;
        }
        let cut = start + partition(&mut numbers[start..end]);
        let (shorter, longer) = if cut - start < end - cut {
            ((start, cut), (cut, end))
        } else {
            ((cut, end), (start, cut))
        };
        waiting[count] = longer;
        count += 1;
        (start, end) = shorter;
    }
}

/// Divides into two nonempty parts: nothing in the first is larger than anything in the second.
/// Returns the start of the second.
#[inline(always)]
fn partition(part: &mut [u32]) -> usize {
    let last = part.len() - 1;
    let middle = last / 2;
    for (low, high) in [(0, middle), (middle, last), (0, middle)] {
        if part[low] > part[high] {
            part.swap(low, high);
        }
    }
    let pivot = part[middle];
    let (mut low, mut high) = (1, last - 1);
    loop {
        while part[low] < pivot {
            low += 1;
        }
        while part[high] > pivot {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        part.swap(low, high);
        low += 1;
        high -= 1;
    }
}

#[inline(always)]
fn insert(part: &mut [u32]) {
    for end in 1..part.len() {
        let number = part[end];
        let mut hole = end;
        while hole > 0 && part[hole - 1] > number {
            part[hole] = part[hole - 1];
            hole -= 1;
        }
        part[hole] = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorts_as_the_standard_library_does(
            mut numbers in prop::collection::vec(0u32..40, 0..300),
            wide in prop::collection::vec(any::<u32>(), 0..300),
        ) {
            numbers.extend(wide);
            let mut expected = numbers.clone();
            expected.sort_unstable();
            sort(Version::V1, &mut numbers);
            prop_assert_eq!(numbers, expected);
        }
    }

    #[test]
    fn adversarial_orders_are_sorted_quickly() {
        for length in [100u32, 1000, 5000] {
            let up: Vec<u32> = (0..length).collect();
            let down: Vec<u32> = (0..length).rev().collect();
            let organ: Vec<u32> = (0..length).map(|i| i.min(length - i)).collect();
            for mut numbers in [up, down, organ, vec![7; length as usize]] {
                sort(Version::V1, &mut numbers);
                assert!(numbers.is_sorted());
            }
        }
    }
}
