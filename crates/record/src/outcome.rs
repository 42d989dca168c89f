//! The outcome of a question with a limit: a benchmark of a gate, an arm of a comparison.

use super::named::open_enum;

open_enum! {
    /// The outcome of a benchmark.
    GateOutcome {
        /// Surely slower by more than the smallest effect: the gate fails.
        Slower = "slower",
        /// Surely faster.
        Faster = "faster",
        /// Not slower by the smallest effect: it passes.
        Passed = "passed",
        /// Neither is sure.
        Undecided = "undecided",
        /// A run failed or had no figure: it cannot be judged.
        Failed = "failed",
        /// Only the base has it.
        Missing = "missing",
        /// Only the head has it: there is nothing to compare with.
        New = "new",
    }
}
