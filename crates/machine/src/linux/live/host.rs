//! Settings of the host that go with a placement: which CPUs take interrupts.

use super::LiveError;
use super::service::Service;
use crate::RunSetting;
use crate::linux::{Entry, UndoOutcome};

impl Service {
    /// Changes settings of the host.
    ///
    /// # Errors
    /// [`LiveError::Ledger`]; the host is then unchanged.
    pub fn set_host(&mut self, settings: &[RunSetting]) -> Result<(), LiveError> {
        self.pins.set_host(settings).map_err(LiveError::Ledger)
    }

    /// The host's changed settings.
    pub fn host_changes(&self) -> impl Iterator<Item = &Entry> {
        self.pins.host_changes()
    }

    /// Restores the host's settings; returns each outcome, the latest change first.
    pub fn restore_host(&mut self) -> Vec<(Entry, UndoOutcome)> {
        self.pins.restore_host()
    }
}
