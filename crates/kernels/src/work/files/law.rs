//! The size distribution of a tree's files: log-normal, as found on disks and in source trees, in
//! integers so that it is the same on every machine.

use crate::work::Random;

/// Half of the files are smaller: 4 KiB. With [`SPREAD`] the mean is about
/// 11 KiB, as in large source trees.
const MEDIAN_BYTES: u64 = 4 << 10;
/// Standard deviation of the size's logarithm, 1.4, in octaves times 2^16.
const SPREAD: i64 = 132_368;
/// Uniform numbers per approximately normal one (Irwin and Hall 1927).
const UNIFORMS: i64 = 12;

/// Sizes of the files of a tree of `bytes`, the last one cut.
pub(super) fn draw_sizes(bytes: u64, seed: u64) -> Vec<u64> {
    let mut random = Random::for_unit(seed);
    let (mut sizes, mut left) = (Vec::new(), bytes);
    while left > 0 {
        let size = draw_size(&mut random).min(left);
        sizes.push(size);
        left -= size;
    }
    sizes
}

/// One size, from 1 byte.
fn draw_size(random: &mut Random) -> u64 {
    let uniform = |random: &mut Random| i64::from(u16::try_from(random.next() >> 48).unwrap_or(0));
    let sum: i64 = (0..UNIFORMS).map(|_| uniform(random)).sum();
    // Mean 0 and standard deviation 2^16.
    let normal = sum - UNIFORMS * 0x7fff - UNIFORMS / 2;
    let octaves = (normal * SPREAD) >> 16;
    // 2^octaves, linear within an octave.
    let (whole, part) = (octaves >> 16, u64::try_from(octaves & 0xffff).unwrap_or(0));
    let scaled = MEDIAN_BYTES * (0x1_0000 + part);
    let shift = u32::try_from(16 - whole).unwrap_or(0);
    scaled.checked_shr(shift).unwrap_or(0).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_those_of_a_source_tree() {
        let mut sizes = draw_sizes(340_000_000, 1);
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2];
        let mean = 340_000_000 / sizes.len() as u64;
        assert!((3_700..4_500).contains(&median), "{median}");
        assert!((9_000..13_000).contains(&mean), "{mean}");
        assert!(sizes[sizes.len() - 1] > 300_000 && sizes[0] < 100);
    }

    proptest! {
        #[test]
        fn sizes_sum_to_the_requested_bytes(bytes in 1u64..10_000_000, seed: u64) {
            let found = draw_sizes(bytes, seed);
            prop_assert_eq!(found.iter().sum::<u64>(), bytes);
            prop_assert!(found.iter().all(|&size| size > 0));
            prop_assert_eq!(found, draw_sizes(bytes, seed));
        }
    }
}
