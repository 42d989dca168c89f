//! Work on files that stay in the page cache.
//!
//! The files are removed on every way out: at the end of the job, after an error or a panic, and
//! before SIGINT, SIGTERM or SIGHUP are let through; what SIGKILL left behind is removed by the
//! next run in the same folder.

mod folder;
mod held_signals;
mod law;
mod tree;

pub(super) use tree::TREE;
