//! Recognition of formats.
