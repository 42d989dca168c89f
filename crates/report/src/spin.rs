//! Records of `pinwise spin` as text.

mod advice;
mod attach;
mod pause;
mod predict;
mod replay;
mod scan;

pub use advice::spin_advice;
pub use attach::spin_attach;
pub use pause::{spin_check, spin_pause};
pub use predict::spin_prediction;
pub use replay::spin_replay;
pub use scan::spin_scan;
