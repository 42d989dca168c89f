//! The command line of pinwise. What it shows and does is in the crates below
//! it; ARCHITECTURE.md says which does what.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

pub mod cli;

/// The examples of `docs/library.md` are run with those of the code.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
mod library_guide {}
