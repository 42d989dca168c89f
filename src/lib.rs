//! pinwise finds out how a machine's CPUs are really wired, where a program's
//! threads should run, and proves it with statistics that hold on a noisy
//! machine.
//!
//! The modules stand in four rings; each may use only rings further in, and a
//! test reads the source to make sure:
//!
//! ```text
//! Core   topology workload stats placement trace code spin profile record
//!                                                          no I/O, no clock
//! Edge   machine   store                                  the host, the disk
//! Study  study                                            experiments
//! Faces  report    web   cli                              what people see
//! ```
//!
//! As a library, start at [`topology::Topology`], [`placement::Placement`] and
//! [`study::compare::run`].

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests arrange the files they need"
    )
)]

pub mod cli;
pub mod code;
pub mod kernels;
pub mod machine;
pub mod placement;
pub mod profile;
pub mod record;
pub mod report;
pub mod spin;
pub mod stats;
pub mod store;
pub mod study;
pub mod topology;
pub mod trace;
pub mod web;
pub mod workload;
