//! Probe loops: timed code without judgement.
//!
//! Hand-written assembly lives here. Nothing here knows topologies, machines or statistics, starts
//! threads or allocates memory: a loop gets its data and returns the clock's readings.

pub mod chase;
pub mod clock;
pub mod gaps;
mod hint;
pub mod laps;
pub mod line;
pub mod spin;
pub mod stream;
pub mod wait;
