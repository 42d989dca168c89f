//! Latency: loads whose addresses come from the load before, along one random cycle through all
//! lines of a memory area.
//!
//! Every line also holds its place in the cycle, which proves afterwards that no line was left out.

#![expect(unsafe_code, reason = "lines that hold the addresses of lines")]

use std::ptr::NonNull;

use super::area::{Area, BEYOND_BYTES};
use crate::loops::chase::{Chain, UNROLLED, line_bytes};
use crate::work::{Group, Job, Kernel, KernelError, Setup, Size, Worker, Wrong};

/// A size that few last-level caches hold, and that is linked in half a second.
const LARGE: u64 = 128 << 20;

pub(in crate::work) const CHASE: Kernel = Kernel {
    name: "chase",
    group: Group::Memory,
    about: "loads of which each gives the next one's address, along a random cycle over all lines, in huge pages where the system gives them",
    source: "McVoy and Staelin 1996, lmbench's lat_mem_rd, with Sattolo's 1986 random cycle",
    operation: "loads",
    size: Some(Size {
        of: "bytes of the lines of all threads together; take four times the last-level caches",
        default: LARGE,
        least: 1 << 14,
        most: 1 << 37,
    }),
    has_versions: false,
    // Linking needs four more bytes per line.
    footprint_bytes: |size, threads| {
        let all = size.saturating_add(size / 16);
        all.saturating_add((threads as u64).saturating_mul(3 * BEYOND_BYTES))
    },
    prepare,
};

/// Loads of a unit: 10 ms if one takes 150 ns.
const LOADS: usize = 65_536;
const _: () = assert!(LOADS.is_multiple_of(UNROLLED), "whole rounds of the loop");
/// The order of lines: the same for all.
const SEED: u64 = 0x7069_6e77_6973_6531;

fn prepare(setup: &Setup) -> Result<Box<dyn Job>, KernelError> {
    let stride = line_bytes();
    let share = usize::try_from(setup.size).unwrap_or(usize::MAX) / setup.threads.max(1);
    let lines = share / stride;
    if lines < 2 || u32::try_from(lines).is_err() {
        return Err(KernelError::Size(format!(
            "--size {}: {} threads have {lines} lines of {stride} bytes each; from 2 to 2^32 can be linked",
            setup.size, setup.threads
        )));
    }
    Ok(Box::new(Cycles { lines, stride }))
}

struct Cycles {
    lines: usize,
    stride: usize,
}

impl Job for Cycles {
    fn operations_per_unit(&self) -> u64 {
        LOADS as u64
    }

    fn working_set_bytes(&self) -> u64 {
        (self.lines * self.stride) as u64
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        Ok(Box::new(Walk::new(self.lines, self.stride)?))
    }
}

/// A worker on its cycle.
struct Walk {
    chain: Chain,
    lines: usize,
    /// Owns the memory of the chain.
    _area: Area,
}

impl Walk {
    fn new(lines: usize, stride: usize) -> Result<Self, KernelError> {
        let area = Area::new(lines * stride)?;
        // In huge pages, too: the order is accessed at random.
        let numbers = Area::new(lines * size_of::<u32>())?;
        // SAFETY: as many bytes, zero, which is a valid number, not shared.
        let order =
            unsafe { std::slice::from_raw_parts_mut(numbers.start().cast().as_ptr(), lines) };
        // SAFETY: the area has as many bytes, is aligned, and is this value's.
        let chain = unsafe { Chain::link(area.start(), stride, order, SEED, || true) };
        let chain = chain.ok_or_else(|| KernelError::Size("too few lines".to_owned()))?;
        let mut line = 0usize;
        for place in 0..lines {
            // SAFETY: a line of the area; the address that starts it is kept.
            unsafe { place_in(area.start().add(line * stride)).write(place) };
            line = order[line] as usize;
        }
        Ok(Self {
            chain,
            lines,
            _area: area,
        })
    }

    /// The chain's place in its cycle.
    fn place(&self) -> usize {
        // SAFETY: the chain is at a line of the area, and all have a place.
        unsafe { place_in(self.chain.at()).read() }
    }
}

/// The word after a line's address holds its place in the cycle.
unsafe fn place_in(line: NonNull<u8>) -> NonNull<usize> {
    // SAFETY: lines have 64 bytes at least, as the caller vouches.
    unsafe { line.add(size_of::<NonNull<u8>>()) }.cast()
}

impl Worker for Walk {
    fn run_unit(&mut self, _unit: u64) -> Result<u64, Wrong> {
        let before = self.place();
        // SAFETY: the area is as it was when the chain was linked.
        unsafe { self.chain.follow(LOADS) };
        let walked = (self.place() + self.lines - before) % self.lines;
        if walked == LOADS % self.lines {
            return Ok(LOADS as u64);
        }
        Err("the loads did not go along the cycle")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_follows_the_cycle() {
        for lines in [2, 3, 1000, LOADS + 1] {
            let mut walk = Walk::new(lines, line_bytes()).unwrap();
            for unit in 0..3 {
                assert_eq!(walk.run_unit(unit), Ok(LOADS as u64), "{lines} lines");
            }
        }
    }

    #[test]
    fn a_wrong_link_is_detected() {
        let mut walk = Walk::new(1000, line_bytes()).unwrap();
        let start = walk.chain.at();
        // SAFETY: the first line now leads to itself, which is a line.
        unsafe { start.cast::<NonNull<u8>>().write(start) };
        assert!(walk.run_unit(0).is_err());
    }
}
