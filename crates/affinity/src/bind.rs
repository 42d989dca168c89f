//! Binding the calling thread, and giving its old mask back.

use std::marker::PhantomData;

use super::host::Host;
use super::mask;
use pinwise_topology::{CpuSet, Restriction};

/// The calling thread's mask was set; the one from before comes back when this
/// is dropped, unless someone has changed the mask since.
///
/// It stays on its thread: the mask is that thread's.
#[derive(Debug)]
#[must_use = "the old mask is restored at once unless this is kept"]
pub struct Bound {
    before: CpuSet,
    now: CpuSet,
    is_kept: bool,
    /// Neither sent nor shared.
    stays: PhantomData<*const ()>,
}

/// Why a thread could not be bound. Its mask is what it was.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// No CPU was asked for.
    #[error("no CPU to bind the thread to; name at least one")]
    Empty,
    /// The mask cannot be read.
    #[error("the affinity mask of this thread cannot be read: {0}")]
    Unknown(std::io::Error),
    /// The kernel refuses the mask.
    #[error("this thread cannot be bound to CPUs {cpus}: {reason}{why}")]
    Refused {
        /// CPUs asked for.
        cpus: CpuSet,
        /// What the kernel says.
        reason: std::io::Error,
        /// Who forbids it, where that is known, after a semicolon.
        why: String,
    },
    /// The kernel cut the mask without a word.
    #[error("this thread gets only {granted} of CPUs {cpus}{why}")]
    Cut {
        /// CPUs asked for.
        cpus: CpuSet,
        /// CPUs that the kernel would have left.
        granted: CpuSet,
        /// Who forbids it, where that is known, after a semicolon.
        why: String,
    },
}

/// Binds the calling thread to these CPUs, until what is returned is dropped.
/// The mask is read back: the kernel drops CPUs that are offline or outside the
/// cpuset without saying so.
///
/// A thread may leave its own affinity mask, so that one set by `taskset` is no
/// obstacle here; [`Host::place`] and [`Host::place_as`] stay within it.
///
/// # Errors
/// [`BindError`] where the kernel refuses a CPU, and who forbids it: it is
/// offline, or the cpuset leaves it out.
///
/// ```
/// use pinwise_affinity::{bind, current_mask};
/// use pinwise_topology::CpuSet;
///
/// let before = current_mask()?;
/// let cpu = CpuSet::single(before.first().unwrap());
/// {
///     let _bound = bind(&cpu)?;
///     assert_eq!(current_mask()?, cpu);
/// }
/// assert_eq!(current_mask()?, before);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn bind(cpus: &CpuSet) -> Result<Bound, BindError> {
    if cpus.is_empty() {
        return Err(BindError::Empty);
    }
    let before = mask::affinity().map_err(BindError::Unknown)?;
    if let Err(reason) = mask::set_affinity(cpus) {
        return Err(BindError::Refused {
            why: why_not(cpus),
            cpus: cpus.clone(),
            reason,
        });
    }
    let granted = mask::affinity().map_err(BindError::Unknown)?;
    if granted != *cpus {
        // A mask that was granted before is granted again.
        let _ = mask::set_affinity(&before);
        return Err(BindError::Cut {
            why: why_not(&cpus.difference(&granted)),
            cpus: cpus.clone(),
            granted,
        });
    }
    Ok(Bound {
        before,
        now: granted,
        is_kept: false,
        stays: PhantomData,
    })
}

impl Bound {
    /// The CPUs that the thread is bound to.
    #[must_use]
    pub const fn cpus(&self) -> &CpuSet {
        &self.now
    }

    /// The mask from before.
    #[must_use]
    pub const fn before(&self) -> &CpuSet {
        &self.before
    }

    /// Leaves the thread bound: the old mask does not come back.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // Where someone else has set another mask meanwhile, theirs stands.
        if !self.is_kept && mask::affinity().is_ok_and(|mask| mask == self.now) {
            let _ = mask::set_affinity(&self.before);
        }
    }
}

/// Who keeps this thread from these CPUs, after a semicolon; empty where nobody
/// is known to.
fn why_not(cpus: &CpuSet) -> String {
    let Ok(host) = Host::discover() else {
        return String::new();
    };
    let topology = host.topology();
    let present: CpuSet = topology.cpus.iter().map(|cpu| cpu.id).collect();
    let absent = cpus.difference(&present);
    let offline = cpus.intersection(&present).difference(&topology.online);
    let mut reasons = Vec::new();
    if !absent.is_empty() {
        reasons.push(format!(
            "there is no CPU {absent} on this machine (it has {present})"
        ));
    }
    if !offline.is_empty() {
        reasons.push(format!("CPU {offline} is offline"));
    }
    // The thread's own mask, which is the other restriction, hinders nobody.
    for cpuset in topology.restrictions.iter().filter(|r| !r.is_mask) {
        let left_out = cpus
            .intersection(&topology.online)
            .difference(&cpuset.leaves);
        if !left_out.is_empty() {
            let Restriction { by, leaves, .. } = cpuset;
            reasons.push(format!(
                "CPU {left_out} is forbidden: the {by} allows only {leaves}"
            ));
        }
    }
    if reasons.is_empty() {
        return String::new();
    }
    format!("; {}", reasons.join("; "))
}
