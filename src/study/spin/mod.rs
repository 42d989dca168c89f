//! Experiments of the spin-wait laboratory.

mod attach;

pub use attach::{About as AttachAbout, Plan as AttachPlan, attach, judge};
