//! Experiments of the spin-wait laboratory.
