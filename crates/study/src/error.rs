//! Why an experiment has no record.

use pinwise_machine::MachineError;
use pinwise_workload::Position;

/// Why an experiment has no record. Failed and interrupted ones are not errors: their records say
/// so.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The plan is not valid, for this reason.
    #[error("{0}")]
    Plan(String),
    /// The baseline fails, so that nothing can be compared.
    #[error("{0}")]
    Failed(String),
    /// A program cannot be measured beside the others.
    #[error("{position}: {name}: {reason}")]
    Program {
        /// Where its command is in the file.
        position: Position,
        /// The program's name.
        name: String,
        /// Why it cannot be measured.
        reason: String,
    },
    /// A run could not be started.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

impl StudyError {
    /// Did the user stop it?
    pub(crate) const fn is_interrupt(&self) -> bool {
        matches!(self, Self::Machine(MachineError::Interrupted))
    }
}
