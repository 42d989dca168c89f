//! pinwise.
pub mod machine;
pub mod placement;
pub mod stats;
pub mod topology;
pub mod workload;
