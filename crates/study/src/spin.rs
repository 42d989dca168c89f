//! Experiments of the spin-wait laboratory.

pub mod advise;
pub mod attach;
mod chips;
pub mod pause;
pub mod predict;
pub mod replay;
pub mod scan;

use std::time::Duration;

use pinwise_machine::{MachineError, Probe, Prober};
use pinwise_stats::describe::median;

/// The median of a probe; `None` if all batches had to be discarded or it is unavailable.
///
/// # Errors
/// [`MachineError`], see [`Prober::probe`].
pub fn probe_median(
    machine: &mut (impl Prober + ?Sized),
    probe: Probe,
    batches: usize,
    limit: Duration,
) -> Result<Option<f64>, MachineError> {
    let batches = machine.probe(&[probe], batches, limit)?;
    Ok(batches.first().and_then(|batches| median(&batches.values)))
}
