//! What the spin-wait laboratory finds, as text.
