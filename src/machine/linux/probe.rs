//! Probes of the host: from a [`Probe`] to loops of `kernels` on pinned threads.

use std::time::Duration;

use crate::machine::{Batches, MachineError, Probe};

/// Makes probes side by side.
pub(super) fn make(
    probes: &[Probe],
    _batches: usize,
    _limit: Duration,
) -> Result<Vec<Batches>, MachineError> {
    let unavailable = || Batches::unavailable("Not built yet.");
    Ok(probes.iter().map(|_| unavailable()).collect())
}
