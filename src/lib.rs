//! The command line of pinwise. The crates below it do the work; ARCHITECTURE.md describes them.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

pub mod cli;

/// Runs the examples of `docs/library.md` as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
mod library_guide {}
