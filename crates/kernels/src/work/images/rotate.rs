//! Rotated pictures: by 90° clockwise, and by 37° clockwise about the middle, bilinear, in the same
//! extent with black where the source has no pixel.

use super::picture::{CHANNELS, Extent};
use crate::work::isa::versions;

versions! {
    /// Rotates by 90°; the target has the rotated extent.
    pub(super) fn rotate_quarter(source: &[u8], extent: Extent, target: &mut [u8]) = rotate_quarter_body;
}

versions! {
    /// Rotates by 37°.
    pub(super) fn rotate_by_angle(source: &[u8], extent: Extent, target: &mut [u8]) = rotate_by_angle_body;
}

/// Rows and columns of a tile, whose lines stay in the first-level cache.
const TILE: usize = 16;

#[inline(always)]
fn rotate_quarter_body(source: &[u8], extent: Extent, target: &mut [u8]) {
    let Extent { width, height } = extent;
    for top in (0..height).step_by(TILE) {
        for left in (0..width).step_by(TILE) {
            let bottom = (top + TILE).min(height);
            for x in left..(left + TILE).min(width) {
                // Row x of the target takes column x from bottom to top.
                let row = &mut target[x * height * CHANNELS..][..height * CHANNELS];
                let piece = &mut row[(height - bottom) * CHANNELS..][..(bottom - top) * CHANNELS];
                for (pixel, y) in piece.chunks_exact_mut(CHANNELS).zip((top..bottom).rev()) {
                    let from = (y * width + x) * CHANNELS;
                    pixel.copy_from_slice(&source[from..from + CHANNELS]);
                }
            }
        }
    }
}

/// cos 37° and sin 37°, times 2^32.
const COS: i64 = 3_430_113_397;
const SIN: i64 = 2_584_775_843;

#[inline(always)]
fn rotate_by_angle_body(source: &[u8], extent: Extent, target: &mut [u8]) {
    let Extent { width, height } = extent;
    let (center_x, center_y) = (double_middle(width), double_middle(height));
    for (y, row) in target.chunks_exact_mut(extent.row()).enumerate() {
        // Doubled, so that the middle of an even extent is whole.
        let up = 2 * to_signed(y) - center_y;
        let mut at_x = (up * SIN - center_x * COS + (center_x << 32)) >> 1;
        let mut at_y = (up * COS + center_x * SIN + (center_y << 32)) >> 1;
        for pixel in row.chunks_exact_mut(CHANNELS) {
            interpolate(source, extent, (at_x, at_y), pixel);
            at_x += COS;
            at_y -= SIN;
        }
    }
}

/// Twice the middle of pixels 0 to `count` - 1.
#[inline(always)]
fn double_middle(count: usize) -> i64 {
    to_signed(count) - 1
}

#[inline(always)]
fn to_signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Interpolates between four pixels; places are in pixels times 2^32.
#[inline(always)]
fn interpolate(source: &[u8], extent: Extent, at: (i64, i64), pixel: &mut [u8]) {
    let inside = |at: i64, count: usize| {
        let whole = usize::try_from(at >> 32).ok()?;
        (whole + 1 < count).then_some(whole)
    };
    let (Some(x), Some(y)) = (inside(at.0, extent.width), inside(at.1, extent.height)) else {
        pixel.fill(0);
        return;
    };
    let part = |at: i64| u32::try_from(at >> 24 & 0xff).unwrap_or(0);
    let (right, down) = (part(at.0), part(at.1));
    let start = (y * extent.width + x) * CHANNELS;
    let above = &source[start..start + 2 * CHANNELS];
    let below = &source[start + extent.row()..][..2 * CHANNELS];
    for (channel, value) in pixel.iter_mut().enumerate() {
        let row = |row: &[u8]| {
            u32::from(row[channel]) * (256 - right) + u32::from(row[channel + CHANNELS]) * right
        };
        let sum = row(above) * (256 - down) + row(below) * down;
        // At most 255, as the weights are 2^16 together.
        *value = u8::try_from((sum + (1 << 15)) >> 16).unwrap_or(u8::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Isa;
    use crate::work::images::picture::draw_picture;
    use image::RgbImage;

    const EXTENTS: [Extent; 4] = [
        Extent {
            width: 64,
            height: 48,
        },
        Extent {
            width: 47,
            height: 61,
        },
        Extent {
            width: 16,
            height: 1,
        },
        Extent {
            width: 131,
            height: 100,
        },
    ];

    #[test]
    fn a_quarter_turn_is_that_of_the_image_crate() {
        for extent in EXTENTS {
            let source = draw_picture(extent);
            let sides = [extent.width, extent.height].map(|side| u32::try_from(side).unwrap());
            let image = RgbImage::from_raw(sides[0], sides[1], source.clone()).unwrap();
            let expected = image::imageops::rotate90(&image).into_raw();
            for isa in Isa::list_supported() {
                let mut target = vec![9; extent.bytes()];
                rotate_quarter(isa.version(), &source, extent, &mut target);
                assert_eq!(target, expected, "{extent:?} {isa}");
            }
        }
    }

    /// The definition, in floating point: `None` if a place is outside or within rounding of the
    /// edge.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "places inside a picture"
    )]
    fn interpolate_by_definition(
        source: &[u8],
        extent: Extent,
        x: usize,
        y: usize,
    ) -> Option<[f64; 3]> {
        let (sin, cos) = 37f64.to_radians().sin_cos();
        let (width, height) = (extent.width as f64, extent.height as f64);
        let (cx, cy) = ((width - 1.0) / 2.0, (height - 1.0) / 2.0);
        let (dx, dy) = (x as f64 - cx, y as f64 - cy);
        let (from_x, from_y) = (dx * cos + dy * sin + cx, dy * cos - dx * sin + cy);
        let (left, top) = (from_x.floor(), from_y.floor());
        if left < 0.0 || top < 0.0 || left + 1.0 >= width || top + 1.0 >= height {
            return None;
        }
        let (right, down) = (from_x - left, from_y - top);
        let value = |x: f64, y: f64, channel: usize| {
            f64::from(source[(y as usize * extent.width + x as usize) * CHANNELS + channel])
        };
        Some([0, 1, 2].map(|c| {
            let above = value(left, top, c) * (1.0 - right) + value(left + 1.0, top, c) * right;
            let below =
                value(left, top + 1.0, c) * (1.0 - right) + value(left + 1.0, top + 1.0, c) * right;
            above * (1.0 - down) + below * down
        }))
    }

    #[test]
    fn an_angle_is_turned_as_defined() {
        for extent in EXTENTS {
            let source = draw_picture(extent);
            let mut target = vec![9; extent.bytes()];
            rotate_by_angle(Isa::V1.version(), &source, extent, &mut target);
            let mut inside = 0;
            for (at, pixel) in target.chunks_exact(CHANNELS).enumerate() {
                let (x, y) = (at % extent.width, at / extent.width);
                let Some(expected) = interpolate_by_definition(&source, extent, x, y) else {
                    assert_eq!(pixel, [0; 3], "{x}, {y} of {extent:?}");
                    continue;
                };
                inside += 1;
                for (found, expected) in pixel.iter().zip(expected) {
                    let apart = (f64::from(*found) - expected).abs();
                    assert!(apart < 2.0, "{x}, {y}: {found} for {expected}");
                }
            }
            assert!(inside > extent.pixels() / 3 || extent.height == 1);
            for isa in Isa::list_supported() {
                let mut other = vec![9; extent.bytes()];
                rotate_by_angle(isa.version(), &source, extent, &mut other);
                assert!(other == target, "{isa}");
            }
        }
    }
}
