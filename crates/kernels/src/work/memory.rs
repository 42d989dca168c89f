//! Bandwidth and latency of memory and caches.
//!
//! Arrays hold whole numbers, so sums are exact in any order and the checksum does not depend on
//! the chosen loop. Bytes are counted as in STREAM: those named by the program, without the reads
//! that a store may cause.

mod area;
mod chase;
mod stream;

pub(super) use chase::CHASE;
pub(super) use stream::{CACHE_L1, CACHE_L2, CACHE_L3, COPY, READ, READ_WRITE, TRIAD, WRITE};
