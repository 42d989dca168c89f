//! Which CPUs are online, if the list is not the kernel's.
//!
//! A container may show a file of its own (lxcfs lists the first ones of as many CPUs as the
//! container may use), while masks are the kernel's: a process can only be allowed online CPUs.

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

/// The same with the known restrictions of this process, and a warning if the list is wrong.
pub(super) fn check_list(
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
    // A cpuset may name CPUs that are switched off, of which nothing is described.
    let is_impossible = |r: &&Restriction| {
        let beyond = r.leaves.difference(&listed);
        !beyond.is_empty() && (!r.leaves.intersects(&listed) || beyond.is_subset(&described))
    };
    let sure = mask.or_else(|| restrictions.iter().find(is_impossible));
    let Some(Restriction { leaves: sure, .. }) = sure.filter(|r| !r.leaves.is_subset(&listed))
    else {
        return listed;
    };
    warnings.push(format!(
        "/sys/devices/system/cpu/online says {listed}, but this process may use {} {sure}: a \
         file of the container, not the kernel's; it is ignored.",
        if sure.len() == 1 { "CPU" } else { "CPUs" }
    ));
    online_cpus(listed, sure, || described)
}
