//! A chain of dependent loads, each line of a memory area once in random
//! order: no load can start before the one before has ended, and no prefetcher
//! knows the next.

#![expect(unsafe_code, reason = "lines hold the addresses of lines")]

use std::ptr::NonNull;

/// Unrolled loads in [`Chain::follow`], which makes multiples of it.
pub const UNROLLED: usize = 16;
/// Lines between two checks whether to continue.
const STRIDE: usize = 1 << 15;

/// Bytes from one line to the next, as this CPU reports, at least 64.
#[must_use]
pub fn line_bytes() -> usize {
    #[cfg(target_arch = "aarch64")]
    {
        let word: u64;
        // SAFETY: Linux lets user space read CTR_EL0, or reads it for us.
        unsafe {
            std::arch::asm!("mrs {word}, ctr_el0", word = out(reg) word, options(nomem, nostack));
        }
        // DminLine: log2 of the words of the smallest data line.
        let smallest = 4usize << ((word >> 16) & 0xf);
        smallest.max(64)
    }
    #[cfg(not(target_arch = "aarch64"))]
    64
}

/// A place in a chain.
#[derive(Debug, Clone, Copy)]
pub struct Chain(NonNull<u8>);

impl Chain {
    /// Links the `order.len()` lines that start every `stride` bytes into one cycle, in an order
    /// drawn from `seed` (Sattolo's algorithm: every cycle is equally likely). Polls `goes_on`;
    /// `None` if it says no, or there are no lines.
    ///
    /// # Safety
    /// From `start`, `order.len() * stride` bytes must be writable, aligned for an address, and not
    /// used otherwise while the chain exists.
    pub unsafe fn link(
        start: NonNull<u8>,
        stride: usize,
        order: &mut [u32],
        seed: u64,
        mut goes_on: impl FnMut() -> bool,
    ) -> Option<Self> {
        let mut random = seed;
        for (at, place) in order.iter_mut().enumerate() {
            *place = u32::try_from(at).ok()?;
        }
        for last in (1..order.len()).rev() {
            let other = draw_below(&mut random, last);
            order.swap(last, other);
            if last % STRIDE == 0 && !goes_on() {
                return None;
            }
        }
        for (at, &next) in order.iter().enumerate() {
            // SAFETY: both lines are within the memory that the caller vouches
            // for, at multiples of the stride.
            unsafe {
                let next = start.add(next as usize * stride);
                start.add(at * stride).cast::<NonNull<u8>>().write(next);
            }
            if at % STRIDE == STRIDE - 1 && !goes_on() {
                return None;
            }
        }
        (!order.is_empty()).then_some(Self(start))
    }

    /// The present line.
    #[must_use]
    pub const fn at(&self) -> NonNull<u8> {
        self.0
    }

    /// Makes about this many loads (the next multiple of [`UNROLLED`]), each of
    /// the address that the one before gave.
    ///
    /// # Safety
    /// The memory given to [`Chain::link`] must still be as it was.
    #[inline(always)]
    pub unsafe fn follow(&mut self, loads: usize) {
        for _ in 0..loads.div_ceil(UNROLLED) {
            // SAFETY: every line of the cycle holds the address of a line.
            unsafe { self.follow_some() };
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn follow_some(&mut self) {
        let mut at = self.0.as_ptr();
        // SAFETY: as the caller promises; no line holds a null address.
        self.0 = unsafe {
            std::arch::asm!(
                ".rept 16",
                "mov {at}, [{at}]",
                ".endr",
                at = inout(reg) at,
                options(readonly, nostack, preserves_flags)
            );
            NonNull::new_unchecked(at)
        };
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    unsafe fn follow_some(&mut self) {
        for _ in 0..UNROLLED {
            // SAFETY: as the caller promises.
            self.0 = unsafe { self.0.cast::<NonNull<u8>>().read_volatile() };
        }
    }
}

/// A number below `bound`: `SplitMix64` (Steele et al. 2014) and Lemire's multiplication, whose
/// bias of `bound` in 2^64 does not matter here.
fn draw_below(random: &mut u64, bound: usize) -> usize {
    *random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *random;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let product = u128::from(mixed) * bound as u128;
    usize::try_from(product >> 64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lines in the order of the chain, once around.
    fn list_visited_lines(lines: usize, stride: usize, seed: u64) -> Vec<usize> {
        let mut memory = vec![0u64; lines * stride / 8];
        let start = NonNull::new(memory.as_mut_ptr()).unwrap().cast::<u8>();
        let mut order = vec![0; lines];
        // SAFETY: the memory has as many bytes and outlives the chain.
        let chain = unsafe { Chain::link(start, stride, &mut order, seed, || true) };
        let mut at = chain.unwrap().0;
        (0..lines)
            .map(|_| {
                // SAFETY: every line holds the address of a line.
                at = unsafe { at.cast::<NonNull<u8>>().read() };
                (at.addr().get() - start.addr().get()) / stride
            })
            .collect()
    }

    proptest! {
        #[test]
        fn every_line_is_visited_once(lines in 1usize..600, stride in 1usize..3, seed: u64) {
            let mut seen = list_visited_lines(lines, 64 * stride, seed);
            prop_assert_eq!(*seen.last().unwrap(), 0, "back where it started");
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..lines).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_order_is_the_seed_s_and_looks_random() {
        assert_eq!(
            list_visited_lines(500, 64, 7),
            list_visited_lines(500, 64, 7)
        );
        assert_ne!(
            list_visited_lines(500, 64, 7),
            list_visited_lines(500, 64, 8)
        );
        let order = list_visited_lines(500, 64, 7);
        let neighbours = order.windows(2).filter(|w| w[0].abs_diff(w[1]) <= 2);
        assert!(neighbours.count() < 20);
    }

    #[test]
    fn following_visits_the_cycle_and_linking_can_be_stopped() {
        let mut memory = [0u64; 8 * UNROLLED];
        let start = NonNull::new(memory.as_mut_ptr()).unwrap().cast::<u8>();
        let mut order = [0; UNROLLED];
        // SAFETY: the memory has as many bytes and outlives the chain.
        unsafe {
            let mut chain = Chain::link(start, 64, &mut order, 1, || true).unwrap();
            chain.follow(UNROLLED);
            assert_eq!(chain.0, start);
            chain.follow(1);
            assert_eq!(chain.0, start);
            assert!(Chain::link(start, 64, &mut [], 1, || true).is_none());
        }
        let mut memory = vec![0u64; STRIDE + 1];
        let start = NonNull::new(memory.as_mut_ptr()).unwrap().cast::<u8>();
        let mut order = vec![0; STRIDE + 1];
        // SAFETY: as above, with lines of eight bytes.
        assert!(unsafe { Chain::link(start, 8, &mut order, 1, || false) }.is_none());
        assert!(line_bytes().is_power_of_two());
    }
}
