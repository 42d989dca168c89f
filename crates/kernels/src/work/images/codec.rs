//! Uncompressed TIFF, and PNG with the `png` crate's fast compression, in memory.
//!
//! Only pictures written by [`encode`] are read.

use std::io::Cursor;

use super::picture::Extent;
use crate::work::Wrong;

/// The format of a stored picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Uncompressed.
    Tiff,
    /// Deflate, the fast level.
    Png,
}

/// Decodes a stored picture; `into` has exactly the size of its pixels.
pub(super) fn decode(format: Format, stored: &[u8], into: &mut [u8]) -> Result<(), Wrong> {
    const WRONG: Wrong = "a picture could not be decoded";
    match format {
        Format::Tiff => {
            let mut decoder =
                tiff::decoder::Decoder::new(Cursor::new(stored)).map_err(|_| WRONG)?;
            decoder.read_image_bytes(into).map_err(|_| WRONG)
        }
        Format::Png => {
            let decoder = png::Decoder::new(Cursor::new(stored));
            let mut reader = decoder.read_info().map_err(|_| WRONG)?;
            reader.next_frame(into).map(drop).map_err(|_| WRONG)
        }
    }
}

/// Encodes a picture into `stored`, reusing its memory.
pub(super) fn encode(
    format: Format,
    pixels: &[u8],
    extent: Extent,
    stored: &mut Vec<u8>,
) -> Result<(), Wrong> {
    const WRONG: Wrong = "a picture could not be encoded";
    let side = |side: usize| u32::try_from(side).map_err(|_| WRONG);
    let (width, height) = (side(extent.width)?, side(extent.height)?);
    stored.clear();
    match format {
        Format::Tiff => {
            let mut encoder =
                tiff::encoder::TiffEncoder::new(Cursor::new(stored)).map_err(|_| WRONG)?;
            encoder
                .write_image::<tiff::encoder::colortype::RGB8>(width, height, pixels)
                .map_err(|_| WRONG)
        }
        Format::Png => {
            let mut encoder = png::Encoder::new(stored, width, height);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            encoder.set_compression(png::Compression::Fast);
            let mut writer = encoder.write_header().map_err(|_| WRONG)?;
            writer.write_image_data(pixels).map_err(|_| WRONG)?;
            writer.finish().map_err(|_| WRONG)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::images::picture::draw_picture;

    #[test]
    fn pictures_round_trip_and_damage_is_reported() {
        let extent = Extent {
            width: 130,
            height: 70,
        };
        let pixels = draw_picture(extent);
        for format in [Format::Tiff, Format::Png] {
            let mut stored = Vec::new();
            encode(format, &pixels, extent, &mut stored).unwrap();
            let mut found = vec![0; extent.bytes()];
            decode(format, &stored, &mut found).unwrap();
            assert!(found == pixels);
            stored.truncate(stored.len() / 2);
            assert!(decode(format, &stored, &mut found).is_err(), "{format:?}");
            assert!(decode(format, &[], &mut found).is_err(), "{format:?}");
        }
    }

    #[test]
    fn pictures_compress_about_as_photographs_do() {
        let extent = Extent {
            width: 400,
            height: 300,
        };
        let mut stored = Vec::new();
        encode(Format::Png, &draw_picture(extent), extent, &mut stored).unwrap();
        let share = stored.len() as f64 / extent.bytes() as f64;
        assert!((0.3..0.8).contains(&share), "{share}");
    }
}
