//! pinwise finds out how a machine's CPUs are really wired, where a program's
//! threads should run, and proves it with statistics that hold on a noisy
//! machine.
//!
//! The modules stand in four rings; each may use only rings further in, and a
//! test reads the source to make sure:
//!
//! ```text
//! Core   format topology workload stats placement trace code spin profile
//!        record                                           no I/O, no clock
//! Edge   machine   store   fleet   threads                the host, the disk
//! Study  study                                            experiments
//! Faces  report    web   cli                              what people see
//! ```
//!
//! As a library, start at [`threads::Host`]: programs that place their own
//! threads need it, [`topology`] and [`placement`], and get them alone, with
//! three dependencies, without the feature `tool`. With it, `study::compare`
//! runs experiments.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests arrange the files they need"
    )
)]

#[cfg(feature = "tool")]
pub mod cli;
#[cfg(feature = "tool")]
pub mod code;
#[cfg(feature = "tool")]
pub mod fleet;
pub mod format;
#[cfg(feature = "tool")]
pub mod kernels;
#[cfg(feature = "tool")]
pub mod machine;
pub mod placement;
#[cfg(feature = "tool")]
pub mod profile;
#[cfg(feature = "tool")]
pub mod record;
#[cfg(feature = "tool")]
pub mod report;
#[cfg(feature = "tool")]
pub mod spin;
#[cfg(feature = "tool")]
pub mod stats;
#[cfg(feature = "tool")]
pub mod store;
#[cfg(feature = "tool")]
pub mod study;
pub mod threads;
pub mod topology;
#[cfg(feature = "tool")]
pub mod trace;
#[cfg(feature = "tool")]
pub mod web;
#[cfg(feature = "tool")]
pub mod workload;

/// The examples of `docs/library.md` are run with those of the code.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
mod library_guide {}
