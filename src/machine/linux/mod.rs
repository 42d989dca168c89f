//! The Linux host.
