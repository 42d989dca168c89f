//! Where CPU time went, and what changed.
