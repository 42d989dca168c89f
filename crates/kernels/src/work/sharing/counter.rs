//! One counter that all threads add to: a cache line that every CPU wants to own.
//!
//! The returned values are summed: a duplicate or lost addition would change the sum.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::work::{Group, Job, Kernel, KernelError, Setup, Worker, Wrong, bind_digest};

pub(in crate::work) const SHARED_COUNTER: Kernel = Kernel {
    name: "shared-counter",
    group: Group::Sharing,
    about: "all threads add 1 to one counter, atomically",
    source: "fetch-and-add, Gottlieb and Kruskal 1981",
    operation: "increments",
    size: None,
    has_versions: false,
    footprint_bytes: |_, _| 0,
    prepare: |_: &Setup| Ok(Box::new(Counter::default())),
};

/// Increments of a unit: about 10 ms for a single thread.
const INCREMENTS: u64 = 4 << 20;

/// Alone on two lines, because some CPUs fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU64);

#[derive(Debug, Default)]
struct Counter {
    count: Line,
    /// Sum of all values that additions returned, modulo 2^64.
    returned: Line,
}

impl Job for Counter {
    fn operations_per_unit(&self) -> u64 {
        INCREMENTS
    }

    fn working_set_bytes(&self) -> u64 {
        size_of::<Line>() as u64
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        Ok(Box::new(Adder {
            counter: self,
            returned: 0,
        }))
    }

    fn check(&self, units: u64, _checksum: u64) -> Result<(), Wrong> {
        let count = u128::from(units) * u128::from(INCREMENTS);
        if u128::from(self.count.0.load(Ordering::Relaxed)) != count {
            return Err("the counter is not what was added to it");
        }
        // 0 + 1 + … + (count - 1), as each number was returned once.
        let expected = count * count.saturating_sub(1) / 2;
        let returned = u128::from(self.returned.0.load(Ordering::Relaxed));
        if returned != expected & u128::from(u64::MAX) {
            return Err("additions returned a number twice");
        }
        Ok(())
    }
}

struct Adder<'a> {
    counter: &'a Counter,
    returned: u64,
}

impl Worker for Adder<'_> {
    fn run_unit(&mut self, _unit: u64) -> Result<u64, Wrong> {
        let mut returned = self.returned;
        for _ in 0..INCREMENTS {
            let before = self.counter.count.0.fetch_add(1, Ordering::Relaxed);
            returned = returned.wrapping_add(before);
        }
        self.returned = returned;
        Ok(INCREMENTS)
    }

    fn work(&mut self, units: &mut dyn Iterator<Item = u64>) -> Result<u64, Wrong> {
        let mut sum = 0u64;
        for unit in units {
            sum = sum.wrapping_add(bind_digest(unit, self.run_unit(unit)?));
        }
        let returned = &self.counter.returned.0;
        returned.fetch_add(self.returned, Ordering::Relaxed);
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter after the units 0 and 1 on two threads.
    fn count_two_units() -> Counter {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            for unit in 0..2 {
                let counter = &counter;
                scope.spawn(move || {
                    let mut worker = counter.worker(0).unwrap();
                    worker.work(&mut std::iter::once(unit)).unwrap()
                });
            }
        });
        counter
    }

    #[test]
    fn all_additions_are_counted() {
        count_two_units().check(2, 0).unwrap();
    }

    #[test]
    fn lost_and_duplicate_additions_are_found() {
        let counter = count_two_units();
        assert!(counter.check(3, 0).is_err());
        counter.returned.0.fetch_sub(1, Ordering::Relaxed);
        assert!(counter.check(2, 0).unwrap_err().contains("twice"));
    }
}
