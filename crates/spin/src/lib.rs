//! Spin-waits as data, and their cost: how long a waiter spins before it parks, and how long it
//! spins without a look at the lock.
//!
//! Two numbers describe a waiter's algorithm: the total of PAUSEs before it parks, and the longest
//! run of them without a look at the lock (the *blind gap*). The latency of PAUSE turns both into
//! times. Nothing here executes anything.
//!
//! ```
//! use pinwise_spin::prediction::{Prediction, PauseCost};
//!
//! // The same lock where PAUSE takes 10 cycles, and where it takes 140.
//! let lock = pinwise_spin::table::find_algorithm("netfx_awarelock")?;
//! let spins = |cycles| {
//!     let processor = PauseCost::from_cycles(cycles, 3.0);
//!     Prediction::new(lock, &processor, 8).longest_ns()
//! };
//! let (older, newer) = (spins(10.0).unwrap(), spins(140.0).unwrap());
//! assert!((newer / older - 14.0).abs() < 1e-6);
//! # Ok::<(), pinwise_spin::table::UnknownAlgorithm>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

pub mod advice;
pub mod algorithm;
pub mod chips;
pub mod identify;
pub mod lateness;
pub mod loops;
pub mod prediction;
pub mod scan;
pub mod table;
mod wait;

pub use lateness::ProducerConsumer;

/// The most similar known name, if any is similar.
pub(crate) fn nearest_name<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .map(|known| (strsim::jaro_winkler(name, known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.7)
        .map(|(_, known)| known)
}
