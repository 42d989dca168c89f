//! Compares the nodes of a fleet: groups nodes that should be alike, finds nodes that differ from
//! their peers and what these have in common, and compares one group with another. Simulated fleets
//! test all of that.
//!
//! It only reads records: it neither measures nor stores anything. The statistics are those of
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

pub use diff::{DiffError, compare_groups};
pub use groups::{Group, group_nodes};
pub use nodes::{Nodes, Skipped};
pub use report::{ReportContext, compare_nodes};
pub use side::Side;

#[cfg(test)]
mod tests;
