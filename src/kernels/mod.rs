//! Probe loops and built-in workloads: code that is timed, and nothing that
//! judges what it took.
//!
//! Hand-written assembly lives here. Nothing here knows topologies, machines
//! or statistics: a loop is given CPU numbers and sizes and returns figures.
