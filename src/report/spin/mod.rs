//! What the spin-wait laboratory finds, as text.

mod attach;

pub use attach::spin_attach;
mod advice;
mod pause;
mod predict;

pub use advice::spin_advice;
pub use pause::{spin_check, spin_pause};
pub use predict::spin_prediction;
mod replay;

pub use replay::spin_replay;
