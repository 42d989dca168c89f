//! For programs that place their own threads: what is there, how many workers
//! make sense, where each goes, and binding the calling thread.
//!
//! ```
//! use pinwise_affinity::Host;
//!
//! let host = Host::shared()?;
//! // 0: as many as make sense here, by allowed CPUs and the cgroup's quota.
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
//! The hardware is read from `/sys`; what of it this process may use, from its affinity
//! mask, its cpuset, and the CPU quotas of its cgroup and of those above. Nothing is
//! guessed, nothing is written but the mask of the calling
//! thread, and a mask that was set is given back when [`Bound`] is dropped. Where
//! threads run best is not known here: that is measured by `pinwise compare`,
//! whose answer is a name that [`Host::place_as`] takes.

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

/// The calling thread's affinity mask, as the kernel has it now.
///
/// # Errors
/// [`std::io::Error`] where the kernel refuses to report it.
///
/// ```
/// assert!(!pinwise_affinity::current_mask()?.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn current_mask() -> std::io::Result<CpuSet> {
    mask::affinity()
}

/// The CPU that the calling thread is on. Unless the thread is bound to it, it
/// may be on another by the time that the answer is read. `None` where the
/// kernel does not report it.
#[must_use]
pub fn current_cpu() -> Option<usize> {
    mask::current_cpu()
}

#[cfg(test)]
mod tests;
