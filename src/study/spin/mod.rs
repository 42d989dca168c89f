//! Experiments of the spin-wait laboratory.

pub mod advise;
pub mod attach;
mod chips;
pub mod pause;
pub mod predict;
pub mod replay;
pub mod scan;
