//! What the spin-wait laboratory finds.
