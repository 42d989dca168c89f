//! All built-in workloads, by name.

use super::Kernel;
use super::fibonacci::FIBONACCI;
use super::memory::{CACHE_L1, CACHE_L2, CACHE_L3, CHASE, COPY, READ, READ_WRITE, TRIAD, WRITE};

/// All of them, in the order in which they are listed.
pub const KERNELS: &[Kernel] = &[
    FIBONACCI, READ, WRITE, COPY, TRIAD, READ_WRITE, CHASE, CACHE_L1, CACHE_L2, CACHE_L3,
];

/// The one of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}
