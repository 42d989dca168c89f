//! For programs that place their own threads: the machine, how many workers make sense, a CPU for
//! each, and binding the calling thread.
//!
//! ```
//! use pinwise_affinity::Host;
//!
//! let host = Host::shared()?;
//! // 0 means as many threads as the allowed CPUs and the cgroup's quota suggest.
//! let places = host.place(0);
//! std::thread::scope(|scope| {
//!     for worker in 0..places.threads() {
//!         let places = &places;
//!         scope.spawn(move || {
//!             let _bound = places.bind(worker);
//!             // … the work …
//!         });
//!     }
//! });
//! # Ok::<(), pinwise_affinity::DiscoverError>(())
//! ```
//!
//! ```text
//! Host::discover ──► Host ──► place(n), place_as(name, n) ──► Places ──► bind(i)
//!                      └────► workers(), locate(cpu)                 └──► confine()
//! ```
//!
//! The hardware is read from `/sys`. The affinity mask, the cpuset and the CPU quotas of the cgroup
//! and those above it say how much of it this process may use. Nothing is guessed. Only the mask of
//! the calling thread is changed, and the old one is restored when [`Bound`] is dropped. Where
//! threads run best must be measured: `pinwise compare` answers with a name for [`Host::place_as`].

mod bind;
mod choose;
mod files;
mod host;
pub mod mask;
mod places;

pub use bind::{BindError, Bound, bind};
pub use host::{DiscoverError, Host, Location, Workers};
pub use places::Places;

use pinwise_topology::CpuSet;

/// The calling thread's present affinity mask.
///
/// # Errors
/// [`std::io::Error`] if the kernel refuses to report it.
///
/// ```
/// assert!(!pinwise_affinity::current_mask()?.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn current_mask() -> std::io::Result<CpuSet> {
    mask::affinity()
}

/// The CPU that the calling thread is on. An unbound thread may be on another one by the time the
/// answer is read. `None` if the kernel does not report it.
#[must_use]
pub fn current_cpu() -> Option<usize> {
    mask::current_cpu()
}

#[cfg(test)]
mod tests;
