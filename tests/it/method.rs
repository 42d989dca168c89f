//! Known truth.
