//! Pictures: decode, turn or blur, encode, all in memory.
//!
//! The codecs are the `tiff` and `png` crates; they allocate and free while
//! they work, as every program does that uses them. What is done with the
//! pixels is our own, in whole numbers, and the same for every instruction set.

mod blur;
mod codec;
mod edit;
mod picture;
mod rotate;

pub(super) use edit::{PNG_BLUR, PNG_ROTATE, PNG_ROTATE90, TIFF_BLUR, TIFF_ROTATE, TIFF_ROTATE90};
