//! Which CPUs are online, even if the list was replaced by a container.
//!
//! A container may show a file of its own: if a container may use N CPUs, lxcfs lists the first N.
//! Masks are the kernel's, so they tell more: a process can only be allowed online CPUs.

use super::{CpuSet, Restriction, Warning};

/// The online CPUs: the listed ones, unless this process may use others. Then the list is not the
/// kernel's, and `described` gives the CPUs that have a `topology` folder, which the kernel removes
/// from offline CPUs.
#[must_use]
pub fn online_cpus(listed: CpuSet, allowed: &CpuSet, described: impl FnOnce() -> CpuSet) -> CpuSet {
    match allowed.is_subset(&listed) {
        true => listed,
        false => described().union(allowed),
    }
}

/// [`online_cpus`] for the known restrictions of this process, with a warning if the list is wrong.
pub(super) fn check_online_list(
    listed: CpuSet,
    restrictions: &[Restriction],
    warnings: &mut Vec<Warning>,
    described: impl FnOnce() -> CpuSet,
) -> CpuSet {
    if restrictions.iter().all(|r| r.leaves.is_subset(&listed)) {
        return listed;
    }
    let described = described();
    let mask = restrictions.iter().find(|r| r.is_mask);
    // A cpuset may name offline CPUs, which have no `topology` folder.
    let is_impossible = |r: &&Restriction| {
        let beyond = r.leaves.difference(&listed);
        !beyond.is_empty() && (!r.leaves.intersects(&listed) || beyond.is_subset(&described))
    };
    let certain = mask.or_else(|| restrictions.iter().find(is_impossible));
    let Some(Restriction { leaves: usable, .. }) = certain.filter(|r| !r.leaves.is_subset(&listed))
    else {
        return listed;
    };
    warnings.push(format!(
        "/sys/devices/system/cpu/online says {listed}, but this process may use {} {usable}: a \
         file of the container, not the kernel's; it is ignored.",
        if usable.len() == 1 { "CPU" } else { "CPUs" }
    ));
    online_cpus(listed, usable, || described)
}
