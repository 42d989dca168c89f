//! Experiments: plans driven over a machine into records.

pub mod bench;
pub mod compare;
pub mod doctor;
pub mod noise;
pub mod probe;
pub mod profile;
pub mod reproduce;
pub mod spin;
pub mod trace;
