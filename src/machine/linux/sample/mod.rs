//! Samples of where a program's CPU time goes.

use super::LinuxMachine;
use crate::machine::{MachineError, SampleOrder, Sampled};

impl LinuxMachine {
    /// See [`Machine::sample`](crate::machine::Machine::sample).
    pub(in crate::machine::linux) fn sample_order(
        &mut self,
        _order: &SampleOrder<'_>,
    ) -> Result<Sampled, MachineError> {
        Err(MachineError::Interrupted)
    }
}
