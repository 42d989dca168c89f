//! Limits the machine to the CPUs that a target may use.

use super::target::Target;
use super::{LiveError, cgroup};
use crate::linux::thread_settings;
use pinwise_topology::{CpuSet, Restriction, Topology};

/// The machine as a target may use it: limited by the masks of its threads and the cpusets of its
/// processes instead of by pinwise's own.
///
/// # Errors
/// [`LiveError::Empty`] if nothing of it can be placed.
pub(super) fn limit_topology(target: &Target, host: &Topology) -> Result<Topology, LiveError> {
    let masks = target
        .threads()
        .into_iter()
        .filter_map(|thread| thread_settings(thread.id));
    let masks = CpuSet::union_of(masks.map(|(mask, _)| mask));
    if masks.is_empty() {
        return Err(LiveError::Empty(target.name().to_owned()));
    }
    let mut restrictions: Vec<Restriction> = Vec::new();
    for process in target.processes() {
        for restriction in cgroup::read_cpusets(process) {
            if !restrictions.contains(&restriction) {
                restrictions.push(restriction);
            }
        }
    }
    // If processes are in different cpusets, each may use its own CPUs.
    let leaves = CpuSet::union_of(restrictions.iter().map(|own| &own.leaves));
    let restrictions: Vec<Restriction> = match restrictions.len() {
        0 => Vec::new(),
        1 => restrictions,
        _ => {
            let names = restrictions.iter().map(|limit| limit.by.as_str());
            let by = names.collect::<Vec<&str>>().join(" or ");
            vec![Restriction::limit(by, leaves)]
        }
    };
    // The mask comes first, as among the machine's own restrictions.
    let affinity = Restriction::mask(format!("affinity mask of {}", target.name()), masks);
    Ok(replace_restrictions(
        host,
        std::iter::once(affinity).chain(restrictions).collect(),
    ))
}

/// Replaces the restrictions of a machine.
fn replace_restrictions(host: &Topology, restrictions: Vec<Restriction>) -> Topology {
    let mut topology = host.clone();
    let allowed = topology.online.clone();
    topology.allowed = restrictions.iter().fold(allowed, |allowed, restriction| {
        allowed.intersection(&restriction.leaves)
    });
    for cpu in &mut topology.cpus {
        cpu.allowed = topology.allowed.contains(cpu.id);
    }
    topology.restrictions = restrictions;
    topology.quota = None;
    topology
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_placement::Placement;

    #[test]
    fn the_reason_why_a_cpu_is_forbidden_is_reported() {
        let host = Topology::from_synthetic("package:1 core:4 pu:2").unwrap();
        let set = |list: &str| CpuSet::parse_list(list).unwrap();
        let restrictions = vec![
            Restriction::mask("affinity mask of a (1)", set("0-3")),
            Restriction::limit("cpuset /sys/fs/cgroup/a", set("0-5")),
        ];
        let narrowed = replace_restrictions(&host, restrictions);
        assert_eq!(narrowed.allowed, set("0-3"));
        let refused = |place: &str| {
            let place: Placement = place.parse().unwrap();
            place.realise(&narrowed).unwrap_err().to_string()
        };
        assert!(refused("cpu:6").contains("the cpuset /sys/fs/cgroup/a leaves only 0-5"));
        let cpus = |place: &str| {
            let place: Placement = place.parse().unwrap();
            place.realise(&narrowed).unwrap().cpus
        };
        assert_eq!(cpus("cpu:4"), set("4"), "a mask is not a limit");
        assert_eq!(cpus("one-per-core"), set("0,2"));
    }
}
