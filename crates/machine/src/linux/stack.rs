//! Examines other processes: their mapped files, the callers on a thread's stack, and where in the
//! program a blocked thread waits. It stops no thread, and does not trust the content of programs'
//! files.

pub(super) mod callers;
pub(super) mod files;
pub(super) mod maps;
pub(super) mod wait_places;

/// Stands for the path of the code that the kernel maps into every process.
pub(super) const VDSO: &str = "[vdso]";
