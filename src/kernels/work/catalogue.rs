//! All built-in workloads, by name.

use super::Kernel;
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

/// All of them, in the order in which they are listed.
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
];

/// The one of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}
