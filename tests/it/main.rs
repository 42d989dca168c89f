//! All integration tests, in one binary.
//!
//! `PINWISE_CORPUS` names a folder of captured machines and recorded runs that does not belong to
//! the project; tests that need it say so if it is not set. `INSTA_UPDATE=always` (`cargo xtask
//! bless`) accepts new snapshots.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests arrange files, start commands, and fail by panicking"
)]

mod anytime;
mod architecture;
mod binding;
mod change;
mod cli;
mod damaged;
mod devices_vm;
mod docs;
mod emit;
mod fleet;
mod fleet_delivery;
mod fleet_report;
mod fleet_slurm;
mod fleet_trust;
mod gate;
mod kernels;
mod ladder;
mod library;
mod limits_vm;
mod linux;
mod live;
mod machines;
mod measure;
mod memory_vm;
mod method;
mod outputs;
mod profile;
mod records;
mod replay;
mod restore;
mod restore_vm;
mod rivals;
mod rivals_tests;
mod rules;
mod sched_ext_vm;
mod search;
mod search_worlds;
mod serve;
mod sessions;
mod simulated;
mod spin_advice;
mod spin_attach;
mod spin_replay;
mod spin_scan;
mod store;
mod support;
mod top;
mod trace_files;
mod trace_kernels;
mod trace_vm;
mod untrusted;
mod vm;
mod wiring;
