//! Timed code: the loops of probes, the built-in workloads, and a private folder for what they
//! write.
//!
//! Nothing here knows topologies, machines or statistics.
//!
//! ```
//! use pinwise_kernels::work::{Amount, Isa, Order, Setup, Split, find, run};
//!
//! let kernel = find("eratosthenes").unwrap();
//! let order = |threads| Order {
//!     kernel,
//!     setup: Setup {
//!         size: kernel.size_or_default(Some(10_000)).unwrap(),
//!         threads,
//!         isa: Isa::V1,
//!         folder: std::env::temp_dir(),
//!     },
//!     amount: Amount::Units(4),
//!     split: Split::Dynamic,
//!     cpus: Vec::new(),
//! };
//! // The same work, however it is split.
//! assert_eq!(run(&order(1), None)?.checksum, run(&order(2), None)?.checksum);
//! # Ok::<(), pinwise_kernels::work::KernelError>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

pub mod loops;
mod scratch;
pub mod work;

pub use scratch::Scratch;
