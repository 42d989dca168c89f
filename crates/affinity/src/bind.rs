//! Binding the calling thread, and restoring its old mask.

use std::marker::PhantomData;

use super::host::Host;
use super::mask;
use pinwise_topology::{CpuSet, Restriction};

/// A guard of the calling thread's new mask. Dropping it restores the old mask, unless someone has
/// changed the mask since.
///
/// It cannot move to another thread, whose mask would then be changed.
#[derive(Debug)]
#[must_use = "the old mask is restored at once unless this is kept"]
pub struct Bound {
    before: CpuSet,
    now: CpuSet,
    is_kept: bool,
    /// Neither `Send` nor `Sync`.
    not_send: PhantomData<*const ()>,
}

/// Why a thread could not be bound. Its mask is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The requested set is empty.
    #[error("no CPU to bind the thread to; name at least one")]
    Empty,
    /// The mask cannot be read.
    #[error("the affinity mask of this thread cannot be read: {0}")]
    Unknown(std::io::Error),
    /// The kernel refuses the mask.
    #[error("this thread cannot be bound to CPUs {cpus}: {reason}{why}")]
    Refused {
        /// The requested CPUs.
        cpus: CpuSet,
        /// The kernel's error.
        reason: std::io::Error,
        /// What forbids it, if known, after a semicolon.
        why: String,
    },
    /// The kernel silently reduced the mask.
    #[error("this thread gets only {granted} of CPUs {cpus}{why}")]
    Cut {
        /// The requested CPUs.
        cpus: CpuSet,
        /// The CPUs that the kernel would have granted.
        granted: CpuSet,
        /// What forbids it, if known, after a semicolon.
        why: String,
    },
}

/// Binds the calling thread to these CPUs, until the returned guard is dropped. The mask is read
/// back: the kernel silently drops CPUs that are offline or outside the cpuset.
///
/// A thread may leave its own affinity mask, so one set by `taskset` does not matter here;
/// [`Host::place`] and [`Host::place_as`] stay within it.
///
/// # Errors
/// [`BindError`] if the kernel refuses a CPU, and why: it is offline, or the cpuset excludes it.
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
            why: explain_refusal(cpus),
            cpus: cpus.clone(),
            reason,
        });
    }
    let granted = mask::affinity().map_err(BindError::Unknown)?;
    if granted != *cpus {
        // The old mask was granted before and will be again.
        let _ = mask::set_affinity(&before);
        return Err(BindError::Cut {
            why: explain_refusal(&cpus.difference(&granted)),
            cpus: cpus.clone(),
            granted,
        });
    }
    Ok(Bound {
        before,
        now: granted,
        is_kept: false,
        not_send: PhantomData,
    })
}

impl Bound {
    /// The CPUs that the thread is bound to.
    #[must_use]
    pub const fn cpus(&self) -> &CpuSet {
        &self.now
    }

    /// The mask before.
    #[must_use]
    pub const fn before(&self) -> &CpuSet {
        &self.before
    }

    /// Leaves the thread bound: the old mask is not restored.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // If someone else has set another mask meanwhile, that one stays.
        if !self.is_kept && mask::affinity().is_ok_and(|mask| mask == self.now) {
            let _ = mask::set_affinity(&self.before);
        }
    }
}

/// What keeps this thread from these CPUs, after a semicolon; empty if unknown.
fn explain_refusal(cpus: &CpuSet) -> String {
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
    // The other restriction is the thread's own mask, which it may leave.
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
