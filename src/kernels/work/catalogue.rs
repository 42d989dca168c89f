//! All built-in workloads, by name.

use super::Kernel;
use super::fibonacci::FIBONACCI;

/// All of them, in the order in which they are listed.
pub const KERNELS: &[Kernel] = &[FIBONACCI];

/// The one of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}
