//! Pictures with three bytes per pixel (red, green, blue), and a synthetic one: soft areas with
//! edges and a little noise, which compresses about as well as a photograph.

use crate::work::Random;

/// Bytes of a pixel.
pub(super) const CHANNELS: usize = 3;
/// Limits of a picture's bytes, for `--size`.
pub(super) const MIN_BYTES: u64 = (CHANNELS * 64 * 64) as u64;
pub(super) const MAX_BYTES: u64 = 192 << 20;

/// Width and height, pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Extent {
    /// For a 4:3 picture of nearly this many bytes.
    pub(super) fn for_size(bytes: u64) -> Self {
        let pixels = usize::try_from(bytes).unwrap_or(usize::MAX) / CHANNELS;
        let height = (pixels / 4 * 3).isqrt().max(1);
        Self {
            width: (pixels / height).max(1),
            height,
        }
    }

    pub(super) const fn swap_sides(self) -> Self {
        Self {
            width: self.height,
            height: self.width,
        }
    }

    pub(super) const fn pixels(self) -> usize {
        self.width * self.height
    }

    pub(super) const fn bytes(self) -> usize {
        self.pixels() * CHANNELS
    }

    /// Bytes of a row.
    pub(super) const fn row(self) -> usize {
        self.width * CHANNELS
    }
}

/// Draws the picture, which is the same for the same extent.
pub(super) fn draw_picture(extent: Extent) -> Vec<u8> {
    let mut random = Random::for_unit(extent.pixels() as u64);
    let mut pixels = Vec::with_capacity(extent.bytes());
    for y in 0..extent.height {
        for x in 0..extent.width {
            let noise = random.next();
            let is_inside = wave(x + 2 * y, 173) > 96;
            let shade = [
                wave(x, 211) + wave(y, 157),
                wave(x + y, 307) + 40,
                wave(3 * y + x, 509) + if is_inside { 70 } else { 0 },
            ];
            for (channel, shade) in shade.into_iter().enumerate() {
                let grain = (noise >> (8 * channel) & 7) as usize;
                pixels.push(u8::try_from((shade + grain).min(255)).unwrap_or(255));
            }
        }
    }
    pixels
}

/// A triangle wave between 0 and 127 with this period.
const fn wave(at: usize, period: usize) -> usize {
    let place = at % period * 256 / period;
    if place < 128 { place } else { 255 - place }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_picture_is_as_large_as_asked_for(bytes in MIN_BYTES..MAX_BYTES) {
            let extent = Extent::for_size(bytes);
            let made = extent.bytes() as u64;
            prop_assert!(made <= bytes && made > bytes - bytes / 20, "{made}");
            let ratio = extent.width as f64 / extent.height as f64;
            prop_assert!((1.25..1.45).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn a_picture_is_the_same_again_and_not_flat() {
        let extent = Extent {
            width: 80,
            height: 60,
        };
        let picture = draw_picture(extent);
        assert_eq!(picture.len(), extent.bytes());
        assert_eq!(picture, draw_picture(extent));
        let mut values = picture;
        values.sort_unstable();
        values.dedup();
        assert!(values.len() > 100);
    }
}
