//! The nodes of a fleet beside each other: which are equals, which of them differ from their peers,
//! what those have in common; and one group against another. And simulated fleets to test all that
//! on.
//!
//! Reads records, measures and stores nothing. The statistics are those of
//! [`pinwise_stats::outliers`] and [`pinwise_stats::discovery`].

mod attributes;
mod attribution;
mod diff;
mod findings;
mod groups;
mod in_common;
mod judgement;
mod nodes;
mod population;
mod report;
mod side;
pub mod simulate;
mod words;

pub use diff::{DiffError, diff};
pub use groups::{Group, groups};
pub use nodes::{Nodes, Skipped};
pub use report::{ReportContext, report};
pub use side::Side;

#[cfg(test)]
mod tests;
