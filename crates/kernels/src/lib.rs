//! Code that is timed: the loops of probes, and the built-in workloads.
//!
//! Nothing here knows topologies, machines or statistics.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests arrange the files they need"
    )
)]

pub mod loops;
pub mod work;
