//! Real host.
