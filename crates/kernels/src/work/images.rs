//! Pictures: decode, rotate or blur, encode, all in memory.
//!
//! The codecs are the `tiff` and `png` crates; they allocate and free while they work, like every
//! program that uses them. Our own pixel operations use integers and are the same for every
//! instruction set.

mod blur;
mod codec;
mod edit;
mod picture;
mod rotate;

pub(super) use edit::{PNG_BLUR, PNG_ROTATE, PNG_ROTATE90, TIFF_BLUR, TIFF_ROTATE, TIFF_ROTATE90};
