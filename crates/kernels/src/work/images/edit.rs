//! The kernels: a stored picture is decoded, changed and stored again.
//!
//! Each unit's pixels are compared with the result of the baseline's loop when the job was prepared,
//! and stored pictures with their original.

use super::blur::{blur, padded_row};
use super::codec::{Format, decode, encode};
use super::picture::{Extent, MAX_BYTES, MIN_BYTES, draw_picture};
use super::rotate::{rotate_by_angle, rotate_quarter};
use crate::work::digest::Digest;
use crate::work::isa::Version;
use crate::work::{Group, Isa, Job, Kernel, KernelError, Setup, Size, Worker, Wrong, bind_digest};

const TURNS: &str = "the definition; a synthetic 4:3 photo";
const BLURS: &str = "the definition of the Gaussian filter, as two passes; a synthetic photo";

const fn kernel(
    name: &'static str,
    about: &'static str,
    source: &'static str,
    default: u64,
    prepare: fn(&Setup) -> Result<Box<dyn Job>, KernelError>,
) -> Kernel {
    Kernel {
        name,
        group: Group::Images,
        about,
        source,
        operation: "pixels",
        size: Some(Size {
            of: "bytes of the picture's pixels, three each",
            default,
            least: MIN_BYTES,
            most: MAX_BYTES,
        }),
        has_versions: true,
        // Stored before and after, decoded, changed, half-way, in the codecs.
        footprint_bytes: |size, threads| size.saturating_mul(7 * (threads as u64 + 1)),
        prepare,
    }
}

pub(in crate::work) const TIFF_ROTATE90: Kernel = kernel(
    "tiff-rotate90",
    "decodes a TIFF, turns it by 90°, encodes it, in memory that the codec takes and frees",
    TURNS,
    8_000_000,
    |setup| prepare(setup, "tiff-rotate90", Format::Tiff, Change::Quarter),
);
pub(in crate::work) const TIFF_ROTATE: Kernel = kernel(
    "tiff-rotate",
    "decodes a TIFF, turns it by 37° (bilinear), encodes it, in memory that the codec takes and frees",
    TURNS,
    3_000_000,
    |setup| prepare(setup, "tiff-rotate", Format::Tiff, Change::Angle),
);
pub(in crate::work) const TIFF_BLUR: Kernel = kernel(
    "tiff-blur",
    "decodes a TIFF, blurs it (Gaussian, radius 10), encodes it, in memory that the codec takes and frees",
    BLURS,
    5_000_000,
    |setup| prepare(setup, "tiff-blur", Format::Tiff, Change::Blur),
);
pub(in crate::work) const PNG_ROTATE90: Kernel = kernel(
    "png-rotate90",
    "decodes a PNG, turns it by 90°, encodes it fast, in memory that the codec takes and frees",
    TURNS,
    2_000_000,
    |setup| prepare(setup, "png-rotate90", Format::Png, Change::Quarter),
);
pub(in crate::work) const PNG_ROTATE: Kernel = kernel(
    "png-rotate",
    "decodes a PNG, turns it by 37° (bilinear), encodes it fast, in memory that the codec takes and frees",
    TURNS,
    1_500_000,
    |setup| prepare(setup, "png-rotate", Format::Png, Change::Angle),
);
pub(in crate::work) const PNG_BLUR: Kernel = kernel(
    "png-blur",
    "decodes a PNG, blurs it (Gaussian, radius 10), encodes it fast, in memory that the codec takes and frees",
    BLURS,
    2_000_000,
    |setup| prepare(setup, "png-blur", Format::Png, Change::Blur),
);

/// The change of the pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Quarter,
    Angle,
    Blur,
}

impl Change {
    const fn extent(self, extent: Extent) -> Extent {
        match self {
            Self::Quarter => extent.swap_sides(),
            Self::Angle | Self::Blur => extent,
        }
    }
}

struct Edit {
    format: Format,
    change: Change,
    extent: Extent,
    version: Version,
    /// The encoded input picture.
    stored: Vec<u8>,
    /// Expected digest of the changed pixels.
    expected: u64,
}

fn prepare(
    setup: &Setup,
    kernel: &'static str,
    format: Format,
    change: Change,
) -> Result<Box<dyn Job>, KernelError> {
    keep_memory();
    let extent = Extent::for_size(setup.size);
    let mut edit = Edit {
        format,
        change,
        extent,
        version: Isa::V1.version(),
        stored: Vec::new(),
        expected: 0,
    };
    edit.compute_expected()
        .map_err(|what| KernelError::Wrong { kernel, what })?;
    edit.version = setup.isa.version();
    Ok(Box::new(edit))
}

impl Edit {
    /// Stores the picture and computes the expected result, with the baseline's loop.
    fn compute_expected(&mut self) -> Result<(), Wrong> {
        let pixels = draw_picture(self.extent);
        encode(self.format, &pixels, self.extent, &mut self.stored)?;
        let mut editor = Editor::new(self);
        editor.edit()?;
        if editor.before != pixels {
            return Err("a picture came back changed from being stored");
        }
        let mut after = vec![0; editor.after.len()];
        decode(self.format, &editor.stored, &mut after)?;
        if editor.after != after {
            return Err("a picture came back changed from being stored");
        }
        self.expected = Digest::from_bytes(&after);
        Ok(())
    }
}

/// Keeps freed memory in the process: otherwise every unit returns large pieces to the system and
/// takes them again, and threads wait for each other while the system changes the address space.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "std has no say in the C library's memory")]
fn keep_memory() {
    const LARGEST_BYTES: libc::c_int = 32 << 20;
    // SAFETY: both change thresholds only; a refusal does no harm.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
    }
}

#[cfg(not(target_env = "gnu"))]
fn keep_memory() {}

impl Job for Edit {
    fn operations_per_unit(&self) -> u64 {
        self.extent.pixels() as u64
    }

    fn working_set_bytes(&self) -> u64 {
        let pixels = self.extent.bytes() * if self.change == Change::Blur { 3 } else { 2 };
        (pixels + 2 * self.stored.len()) as u64
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        Ok(Box::new(Editor::new(self)))
    }
}

/// A worker's memory.
struct Editor<'a> {
    edit: &'a Edit,
    before: Vec<u8>,
    row: Vec<u8>,
    middle: Vec<u8>,
    after: Vec<u8>,
    stored: Vec<u8>,
}

impl<'a> Editor<'a> {
    fn new(edit: &'a Edit) -> Self {
        let bytes = edit.extent.bytes();
        // Written to, so that the pages exist.
        let touched_buffer = |bytes: usize| vec![1; bytes];
        let (row, middle) = match edit.change {
            Change::Blur => (
                touched_buffer(padded_row(edit.extent)),
                touched_buffer(bytes),
            ),
            Change::Quarter | Change::Angle => (Vec::new(), Vec::new()),
        };
        Self {
            edit,
            before: touched_buffer(bytes),
            row,
            middle,
            after: touched_buffer(bytes),
            // Incompressible data grows a little.
            stored: touched_buffer(bytes + bytes / 8 + 4096),
        }
    }

    fn edit(&mut self) -> Result<(), Wrong> {
        let Edit {
            format,
            change,
            extent,
            version,
            ref stored,
            ..
        } = *self.edit;
        decode(format, stored, &mut self.before)?;
        match change {
            Change::Quarter => rotate_quarter(version, &self.before, extent, &mut self.after),
            Change::Angle => rotate_by_angle(version, &self.before, extent, &mut self.after),
            Change::Blur => blur(
                version,
                &self.before,
                extent,
                &mut self.row,
                &mut self.middle,
                &mut self.after,
            ),
        }
        encode(format, &self.after, change.extent(extent), &mut self.stored)
    }
}

impl Worker for Editor<'_> {
    fn run_unit(&mut self, _unit: u64) -> Result<u64, Wrong> {
        self.edit()?;
        let pixels = Digest::from_bytes(&self.after);
        if pixels != self.edit.expected {
            return Err("the pixels are not those of the baseline's loop");
        }
        Ok(bind_digest(pixels, Digest::from_bytes(&self.stored)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_that_are_not_as_expected_are_reported() {
        let mut edit = Edit {
            format: Format::Png,
            change: Change::Blur,
            extent: Extent::for_size(MIN_BYTES),
            version: Isa::V1.version(),
            stored: Vec::new(),
            expected: 0,
        };
        edit.compute_expected().unwrap();
        assert!(Editor::new(&edit).run_unit(0).is_ok());
        edit.expected ^= 1;
        assert!(Editor::new(&edit).run_unit(0).is_err());
        edit.stored.truncate(100);
        assert!(
            Editor::new(&edit)
                .run_unit(0)
                .unwrap_err()
                .contains("decoded")
        );
    }
}
