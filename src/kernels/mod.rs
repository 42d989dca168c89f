//! Code that is timed: the loops of probes, and the built-in workloads.
//!
//! Nothing here knows topologies, machines or statistics.

pub mod loops;
pub mod work;
