//! The sieve of Eratosthenes: strided stores over an array, then a count.
//!
//! One byte for each odd number, all in one array: `--size` decides which cache holds it. The count
//! is compared with Legendre's formula, which needs no sieve. It is deliberately not segmented.

use super::fold_digest;
use crate::work::isa::{Version, versions};
use crate::work::{Group, Job, Kernel, KernelError, Setup, Size, Worker, Wrong};

pub(in crate::work) const ERATOSTHENES: Kernel = Kernel {
    name: "eratosthenes",
    group: Group::Integer,
    about: "primes by the sieve: strided stores over an array of bytes",
    source: "Eratosthenes, 3rd century BC; odd numbers only, checked by Legendre's formula of 1808",
    operation: "numbers",
    size: Some(Size {
        of: "numbers sieved",
        default: 16_000_000,
        least: 1000,
        most: 1 << 33,
    }),
    has_versions: true,
    footprint_bytes: |size, threads| threads as u64 * (size / 2) + 16 * (size.isqrt() + 1),
    prepare: |setup: &Setup| {
        Ok(Box::new(Eratosthenes {
            version: setup.isa.version(),
            numbers: setup.size,
            primes: count_primes_below(setup.size),
        }))
    },
};

struct Eratosthenes {
    version: Version,
    /// Primes are searched below this.
    numbers: u64,
    /// Their number.
    primes: u64,
}

impl Job for Eratosthenes {
    fn operations_per_unit(&self) -> u64 {
        self.numbers
    }

    fn working_set_bytes(&self) -> u64 {
        self.numbers / 2
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        let odd = usize::try_from(self.numbers / 2).unwrap_or(usize::MAX);
        Ok(Box::new(Sieve {
            job: self,
            is_prime: vec![1; odd],
        }))
    }
}

struct Sieve<'a> {
    job: &'a Eratosthenes,
    /// Whether 2i + 1 is prime; index 0 represents 2.
    is_prime: Vec<u8>,
}

impl Worker for Sieve<'_> {
    fn run_unit(&mut self, _unit: u64) -> Result<u64, Wrong> {
        sieve(self.job.version, &mut self.is_prime);
        let (primes, sum) = count_marked(self.job.version, &self.is_prime);
        if primes != self.job.primes {
            return Err("there are not so many primes");
        }
        Ok(fold_digest(fold_digest(0, primes), sum))
    }
}

versions! { fn sieve(is_prime: &mut [u8]) = sieve_body; }

#[inline(always)]
fn sieve_body(is_prime: &mut [u8]) {
    is_prime.fill(1);
    for root in 1.. {
        // The square of 2·root + 1 is odd number 2·root·(root + 1).
        let square = 2 * root * (root + 1);
        if square >= is_prime.len() {
            return;
        }
        if is_prime[root] == 1 {
            for multiple in is_prime[square..].iter_mut().step_by(2 * root + 1) {
                *multiple = 0;
            }
        }
    }
}

versions! { fn count_marked(is_prime: &[u8]) -> (u64, u64) = count_body; }

/// The number of marked ones, and the sum of their places.
#[inline(always)]
fn count_body(is_prime: &[u8]) -> (u64, u64) {
    // Few enough for the sum of their places to fit 16 bits.
    const RUN: usize = 256;
    let (mut marked, mut sum) = (0, 0);
    for (run, marks) in is_prime.chunks(RUN).enumerate() {
        let (mut here, mut places) = (0u16, 0u16);
        for (place, &mark) in (0u16..).zip(marks) {
            here += u16::from(mark);
            places += u16::from(mark) * place;
        }
        marked += u64::from(here);
        sum += u64::from(places) + u64::from(here) * (run * RUN) as u64;
    }
    (marked, sum)
}

/// Counts the primes below `limit` by Legendre's formula: it counts the numbers that no prime so far
/// divides, for all quotients limit/k at once.
#[expect(
    clippy::cast_possible_truncation,
    reason = "places are below twice the square root"
)]
fn count_primes_below(limit: u64) -> u64 {
    let most = limit - 1;
    let root = most.isqrt();
    // Places 0..root are the counts up to 1, 2, …; then those up to most/k.
    let mut small: Vec<u64> = (0..=root).map(|value| value.saturating_sub(1)).collect();
    let mut large: Vec<u64> = (0..=root)
        .map(|quotient| (most / quotient.max(1)) - 1)
        .collect();
    for prime in 2..=root {
        let below = small[prime as usize - 1];
        if small[prime as usize] == below {
            continue;
        }
        let square = prime * prime;
        for quotient in 1..=root.min(most / square) {
            let product = quotient * prime;
            let rest = if product <= root {
                large[product as usize]
            } else {
                small[(most / product) as usize]
            };
            large[quotient as usize] -= rest - below;
        }
        for value in (square..=root).rev() {
            small[value as usize] -= small[(value / prime) as usize] - below;
        }
    }
    large[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_gives_the_known_counts() {
        let known = [
            (1000, 168),
            (10_000, 1229),
            (100_000, 9592),
            (1_000_000, 78_498),
            (10_000_000, 664_579),
            (100_000_000, 5_761_455),
        ];
        for (limit, primes) in known {
            assert_eq!(count_primes_below(limit), primes, "{limit}");
        }
        // A limit is not below itself.
        assert_eq!(
            (count_primes_below(1009), count_primes_below(1010)),
            (168, 169)
        );
    }

    #[test]
    fn a_damaged_sieve_is_noticed_and_odd_sizes_work() {
        for numbers in 1000..1300 {
            let job = Eratosthenes {
                version: Version::V1,
                numbers,
                primes: count_primes_below(numbers),
            };
            assert!(job.worker(0).unwrap().run_unit(0).is_ok(), "{numbers}");
            let wrong = Eratosthenes {
                primes: job.primes + 1,
                ..job
            };
            assert!(wrong.worker(0).unwrap().run_unit(0).is_err(), "{numbers}");
        }
    }
}
