//! Fibonacci numbers by the doubly recursive definition: calls, returns and additions, no memory.
//!
//! As in the test of that name in `CrystalMark` and many older suites, the number of calls counts,
//! not the result (F(27) takes 635,621 calls).

use crate::work::{Group, Job, Kernel, KernelError, Setup, Worker, Wrong};

pub(in crate::work) const FIBONACCI: Kernel = Kernel {
    name: "fibonacci",
    group: Group::Integer,
    about: "Fibonacci numbers by double recursion: calls and additions",
    source: "Leonardo of Pisa 1202, F(n) = F(n-1) + F(n-2), evaluated as written",
    operation: "calls",
    size: None,
    has_versions: false,
    footprint_bytes: |_, _| 0,
    prepare: |_: &Setup| Ok(Box::new(Fibonacci)),
};

/// F(`INDEX`) makes 2·F(`INDEX`+1) − 1 calls: about 10 ms.
const INDEX: u32 = 31;
const VALUE: u64 = 1_346_269;
const CALLS: u64 = 4_356_617;

struct Fibonacci;

impl Job for Fibonacci {
    fn operations_per_unit(&self) -> u64 {
        CALLS
    }

    fn working_set_bytes(&self) -> u64 {
        // About the stack of 31 nested calls.
        1024
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        Ok(Box::new(Self))
    }
}

impl Worker for Fibonacci {
    fn run_unit(&mut self, _unit: u64) -> Result<u64, Wrong> {
        let value = fibonacci(std::hint::black_box(INDEX));
        if value == VALUE {
            return Ok(value);
        }
        Err("F(31) is 1,346,269")
    }
}

#[inline(never)]
fn fibonacci(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    // The first call must stay a call: compilers turn the second into a loop.
    std::hint::black_box(fibonacci(n - 1)) + fibonacci(n - 2)
}
