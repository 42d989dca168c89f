//! Experiments: plans driven over a machine into records.
//!
//! A plan says what is run where, a machine runs it, the statistics judge, and the
//! record says it all: sentences, findings, and the commands that apply the answer.
//! Nothing is printed here, no file opened, and no clock read but the machine's: a
//! simulated machine is measured by the same code as a real one.

#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        reason = "unit tests arrange the files they need"
    )
)]

pub mod bench;
mod causes;
pub mod change;
pub mod compare;
pub mod doctor;
pub mod fleet;
pub mod gate;
mod host;
pub mod jitter;
mod launchers;
pub mod live;
pub mod noise;
pub mod probe;
pub mod profile;
pub mod reproduce;
pub mod rules;
pub mod search;
pub mod spin;
pub mod trace;

use pinwise_machine::MachineError;

/// Did the user interrupt?
#[must_use]
pub fn is_interrupt(error: &anyhow::Error) -> bool {
    let machine = error.downcast_ref::<MachineError>();
    matches!(machine, Some(MachineError::Interrupted))
}
