//! Gaussian blur of radius 10: a standard deviation of 10/3 pixels, cut off after 10 pixels to each
//! side; rows first, then columns. Edge pixels are repeated beyond the edge.

use super::picture::{CHANNELS, Extent};
use crate::work::isa::versions;

versions! {
    /// Blurs `source` into `target`; `middle` has the same length, `row` that of [`padded_row`].
    pub(super) fn blur(source: &[u8], extent: Extent, row: &mut [u8], middle: &mut [u8], target: &mut [u8]) = blur_body;
}

/// Pixels to each side.
const RADIUS: usize = 10;
/// The bell, times 2^16, from its middle outwards; with both sides 2^16.
const WEIGHTS: [u32; RADIUS + 1] = [7856, 7510, 6562, 5240, 3824, 2550, 1555, 866, 441, 205, 87];
/// Bytes summed in parallel.
const LANES: usize = 64;

/// Bytes of a row with its repeated edges, and room for whole lanes.
pub(super) const fn padded_row(extent: Extent) -> usize {
    extent.row() + 2 * RADIUS * CHANNELS + LANES
}

#[inline(always)]
fn blur_body(source: &[u8], extent: Extent, row: &mut [u8], middle: &mut [u8], target: &mut [u8]) {
    let rows = source.chunks_exact(extent.row());
    for (from, to) in rows.zip(middle.chunks_exact_mut(extent.row())) {
        pad(from, row);
        for left in (0..to.len()).step_by(LANES) {
            let sums = weighted_sums(|distance, is_before| {
                let offset = distance * CHANNELS;
                let middle = left + RADIUS * CHANNELS;
                let at = if is_before {
                    middle - offset
                } else {
                    middle + offset
                };
                &row[at..at + LANES]
            });
            write_bytes(&sums, &mut to[left..]);
        }
    }
    let last = extent.height - 1;
    for (y, to) in target.chunks_exact_mut(extent.row()).enumerate() {
        for left in (0..to.len()).step_by(LANES) {
            let lanes = LANES.min(to.len() - left);
            let row = |distance: usize, is_before: bool| {
                let y = if is_before {
                    y.saturating_sub(distance)
                } else {
                    (y + distance).min(last)
                };
                &middle[y * extent.row() + left..][..lanes]
            };
            let sums = if lanes == LANES {
                weighted_sums(|distance, is_before| &row(distance, is_before)[..LANES])
            } else {
                weighted_sums(row)
            };
            write_bytes(&sums, &mut to[left..]);
        }
    }
}

/// Copies a row and repeats its first and last pixel beyond the edges.
#[inline(always)]
fn pad(from: &[u8], row: &mut [u8]) {
    let (before, rest) = row.split_at_mut(RADIUS * CHANNELS);
    let (middle, after) = rest.split_at_mut(from.len());
    for pixel in before.chunks_exact_mut(CHANNELS) {
        pixel.copy_from_slice(&from[..CHANNELS]);
    }
    middle.copy_from_slice(from);
    for pixel in after.chunks_exact_mut(CHANNELS) {
        pixel.copy_from_slice(&from[from.len() - CHANNELS..]);
    }
}

/// Weighted sums of the pixels at equal distances before and behind: below 2^24.
#[inline(always)]
fn weighted_sums<'a>(at: impl Fn(usize, bool) -> &'a [u8]) -> [u32; LANES] {
    let mut sums = [1 << 15; LANES];
    for (sum, value) in sums.iter_mut().zip(at(0, true)) {
        *sum += WEIGHTS[0] * u32::from(*value);
    }
    for (distance, weight) in WEIGHTS.into_iter().enumerate().skip(1) {
        let both = at(distance, true).iter().zip(at(distance, false));
        for (sum, (before, after)) in sums.iter_mut().zip(both) {
            *sum += weight * (u32::from(*before) + u32::from(*after));
        }
    }
    sums
}

/// Writes sums as bytes, as many as there is room for.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the weights are 2^16 together, so that a byte is left"
)]
fn write_bytes(sums: &[u32; LANES], to: &mut [u8]) {
    for (to, sum) in to.iter_mut().zip(sums) {
        *to = (sum >> 16) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Isa;
    use crate::work::images::picture::draw_picture;
    use image::RgbImage;

    fn run_blur(isa: Isa, source: &[u8], extent: Extent) -> Vec<u8> {
        let mut row = vec![0; padded_row(extent)];
        let mut middle = vec![0; extent.bytes()];
        let mut target = vec![0; extent.bytes()];
        blur(
            isa.version(),
            source,
            extent,
            &mut row,
            &mut middle,
            &mut target,
        );
        target
    }

    #[test]
    fn weights_add_up_to_one_and_fall_from_the_centre() {
        let sides: u32 = WEIGHTS[1..].iter().sum();
        assert_eq!(WEIGHTS[0] + 2 * sides, 1 << 16);
        let sd = RADIUS as f64 / 3.0;
        for (distance, weight) in WEIGHTS.into_iter().enumerate() {
            let bell = (-0.5 * (distance as f64 / sd).powi(2)).exp();
            let ratio = f64::from(weight) / f64::from(WEIGHTS[0]);
            assert!((ratio - bell).abs() < 2e-4, "at {distance}");
        }
    }

    #[test]
    fn a_blur_is_that_of_the_image_crate() {
        for (width, height) in [(64, 48), (75, 61), (201, 30)] {
            let extent = Extent { width, height };
            let source = draw_picture(extent);
            let sides = [width, height].map(|side| u32::try_from(side).unwrap());
            let image = RgbImage::from_raw(sides[0], sides[1], source.clone()).unwrap();
            let expected = image::imageops::blur(&image, 10.0 / 3.0).into_raw();
            let found = run_blur(Isa::V1, &source, extent);
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(
                    found.abs_diff(*expected) <= 2,
                    "{at}: {found} for {expected}"
                );
            }
            for isa in Isa::list_supported() {
                assert!(run_blur(isa, &source, extent) == found, "{isa}");
            }
        }
    }

    #[test]
    fn flat_areas_are_unchanged() {
        for value in [0, 1, 128, 255] {
            let extent = Extent {
                width: 33,
                height: 3,
            };
            let source = vec![value; extent.bytes()];
            assert_eq!(run_blur(Isa::Native, &source, extent), source);
        }
    }
}
