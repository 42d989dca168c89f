//! All built-in workloads, by name.

use super::Kernel;
use super::files::TREE;
use super::images::{PNG_BLUR, PNG_ROTATE, PNG_ROTATE90, TIFF_BLUR, TIFF_ROTATE, TIFF_ROTATE90};
use super::memory::{CACHE_L1, CACHE_L2, CACHE_L3, CHASE, COPY, READ, READ_WRITE, TRIAD, WRITE};
use super::numbers::eratosthenes::ERATOSTHENES;
use super::numbers::fft::FFT;
use super::numbers::fibonacci::FIBONACCI;
use super::numbers::integer::INTEGER;
use super::numbers::mandelbrot::MANDELBROT;
use super::numbers::mean_sd::MEAN_SD;
use super::numbers::napierian::NAPIERIAN;
use super::numbers::pi::PI;
use super::numbers::quicksort::QUICKSORT;
use super::numbers::whetstone::WHETSTONE;
use super::sharing::{PRODUCER_CONSUMER, SHARED_COUNTER};

/// All of them, in the listed order.
pub const KERNELS: &[Kernel] = &[
    INTEGER,
    FIBONACCI,
    NAPIERIAN,
    ERATOSTHENES,
    QUICKSORT,
    MEAN_SD,
    WHETSTONE,
    FFT,
    MANDELBROT,
    PI,
    READ,
    WRITE,
    COPY,
    TRIAD,
    READ_WRITE,
    CHASE,
    CACHE_L1,
    CACHE_L2,
    CACHE_L3,
    SHARED_COUNTER,
    PRODUCER_CONSUMER,
    TREE,
    TIFF_ROTATE90,
    TIFF_ROTATE,
    TIFF_BLUR,
    PNG_ROTATE90,
    PNG_ROTATE,
    PNG_BLUR,
];

/// The one with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}
