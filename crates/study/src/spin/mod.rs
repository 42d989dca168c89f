//! Experiments of the spin-wait laboratory.

pub mod advise;
pub mod attach;
mod chips;
pub mod pause;
pub mod predict;
pub mod replay;
pub mod scan;

use std::time::Duration;

use pinwise_machine::{Machine, MachineError, Probe};
use pinwise_stats::describe::median;

/// The median of a probe; `None` where all batches had to be thrown away or it
/// cannot be made.
///
/// # Errors
/// [`MachineError`], see [`Machine::probe`].
pub fn probed(
    machine: &mut dyn Machine,
    probe: Probe,
    batches: usize,
    limit: Duration,
) -> Result<Option<f64>, MachineError> {
    let batches = machine.probe(&[probe], batches, limit)?;
    Ok(batches.first().and_then(|batches| median(&batches.values)))
}
