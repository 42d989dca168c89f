//! Probe loops: code that is timed, and nothing that judges what it took.
//!
//! Hand-written assembly lives here. Nothing here knows topologies, machines
//! or statistics, starts threads or allocates memory: a loop is given what it
//! works on and returns what the clock said.

pub mod chase;
pub mod clock;
pub mod gaps;
mod hint;
pub mod laps;
pub mod line;
pub mod spin;
pub mod stream;
pub mod wait;
