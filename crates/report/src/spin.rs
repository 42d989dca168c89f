//! Records of `pinwise spin` as text.

mod advice;
mod attach;
mod pause;
mod predict;
mod replay;
mod scan;

pub use advice::render_spin_advice;
pub use attach::render_spin_attach;
pub use pause::{render_spin_check, render_spin_pause};
pub use predict::render_spin_prediction;
pub use replay::render_spin_replay;
pub use scan::render_spin_scan;
