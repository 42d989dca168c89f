//! What the spin-wait laboratory finds, as text.

mod attach;

pub use attach::spin_attach;
