//! The user stacks of other processes: their mapped files, the callers of a thread, and where in
//! the program a blocked thread waits. Nothing is stopped; what a program's files say is not
//! trusted.

pub(super) mod callers;
pub(super) mod files;
pub(super) mod maps;
pub(super) mod wait_places;

/// Used instead of a path if the code is from the kernel.
pub(super) const VDSO: &str = "[vdso]";
