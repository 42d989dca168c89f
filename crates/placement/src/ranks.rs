//! One rank per device: the device of each of several processes, and its own CPUs near it.

use pinwise_topology::{CpuSet, DeviceKind, Level, Topology};

/// A process that drives a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rank {
    /// Index of the device among [`Topology::devices`].
    pub device: usize,
    /// Its CPUs, which no other rank has unless there are more ranks than cores.
    pub cpus: CpuSet,
}

/// Why ranks cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RanksError {
    /// There is no such device.
    #[error("this machine reports no device of type {0}")]
    NoDevice(&'static str),
    /// None of the CPUs near a device may be used.
    #[error("near {device} are CPUs {near}; this process may use only {allowed}")]
    NoneNear {
        /// The device.
        device: String,
        /// CPUs near it.
        near: CpuSet,
        /// The allowed CPUs.
        allowed: CpuSet,
    },
}

/// Deals the devices of a kind to `count` ranks in turn, by address; with `only` just the devices
/// at these positions, from 0. Ranks near the same CPUs split them by whole cores, neighbours
/// together. A device of unknown location counts as near all CPUs.
///
/// # Errors
/// [`RanksError`] if there is no device, or no usable CPU near one.
pub fn place_per_device(
    topology: &Topology,
    kind: DeviceKind,
    only: Option<&[usize]>,
    count: usize,
) -> Result<Vec<Rank>, RanksError> {
    let all: Vec<usize> = (0..topology.devices.len())
        .filter(|&index| topology.devices[index].kind == kind)
        .collect();
    let chosen: Vec<usize> = match only {
        None => all,
        Some(only) => only.iter().filter_map(|&n| all.get(n).copied()).collect(),
    };
    if chosen.is_empty() {
        return Err(RanksError::NoDevice(kind.noun()));
    }
    let mut ranks = Vec::new();
    for rank in 0..count {
        let index = chosen[rank % chosen.len()];
        let device = &topology.devices[index];
        let near = device.cpus.as_ref().unwrap_or(&topology.online);
        let cpus = near.intersection(&topology.allowed);
        if cpus.is_empty() {
            return Err(RanksError::NoneNear {
                device: device.name().to_owned(),
                near: near.clone(),
                allowed: topology.allowed.clone(),
            });
        }
        ranks.push(Rank {
            device: index,
            cpus,
        });
    }
    split_shared_cores(topology, &mut ranks);
    Ok(ranks)
}

/// Splits the cores of each set of CPUs among its ranks.
fn split_shared_cores(topology: &Topology, ranks: &mut [Rank]) {
    let cores = topology.allowed_units(Level::Core);
    let sets: Vec<CpuSet> = ranks.iter().map(|rank| rank.cpus.clone()).collect();
    for (index, set) in sets.iter().enumerate() {
        let ranks_here = sets.iter().filter(|other| *other == set).count();
        let earlier = sets[..index].iter().filter(|other| *other == set).count();
        let here: Vec<CpuSet> = cores
            .iter()
            .map(|core| core.intersection(set))
            .filter(|core| !core.is_empty())
            .collect();
        let own = match here.len() < ranks_here {
            true => &here[earlier % here.len()..=earlier % here.len()],
            false => {
                &here[earlier * here.len() / ranks_here..(earlier + 1) * here.len() / ranks_here]
            }
        };
        ranks[index].cpus = CpuSet::union_of(own);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Device;

    fn machine(gpus: &[Option<&str>]) -> Topology {
        let mut topology = Topology::from_synthetic("package:2 core:4 pu:2").unwrap();
        for (number, cpus) in (1..).zip(gpus) {
            let address = format!("0000:{number:02x}:00.0");
            let mut device = Device::new(&address, 0x0302, Some(0x10de), None).unwrap();
            device.cpus = cpus.map(|list| CpuSet::parse_list(list).unwrap());
            topology.devices.update(|all| all.push(device));
        }
        topology
    }

    fn place_ranks(topology: &Topology, only: Option<&[usize]>, count: usize) -> Vec<String> {
        let ranks = place_per_device(topology, DeviceKind::Gpu, only, count).unwrap();
        let words = ranks.iter().map(|r| format!("{} {}", r.device, r.cpus));
        words.collect()
    }

    #[test]
    fn ranks_share_the_cores_near_their_devices() {
        let topology = machine(&[Some("0-7"), Some("0-7"), Some("8-15"), None]);
        assert_eq!(place_ranks(&topology, None, 2), ["0 0-3", "1 4-7"]);
        assert_eq!(
            place_ranks(&topology, None, 4),
            ["0 0-3", "1 4-7", "2 8-15", "3 0-15"]
        );
        assert_eq!(
            place_ranks(&topology, Some(&[2]), 3),
            ["2 8-9", "2 10-11", "2 12-15"]
        );
    }

    #[test]
    fn ranks_share_cores_if_there_are_too_few() {
        let topology = machine(&[Some("0-3")]);
        assert_eq!(place_ranks(&topology, None, 3), ["0 0-1", "0 2-3", "0 0-1"]);
    }

    #[test]
    fn machines_without_a_usable_device_are_refused() {
        let error = |topology: &Topology| {
            let ranks = place_per_device(topology, DeviceKind::Gpu, None, 1);
            ranks.unwrap_err().to_string()
        };
        assert_eq!(
            error(&machine(&[])),
            "this machine reports no device of type GPU"
        );
        let mut confined = machine(&[Some("8-15")]);
        confined.allowed = CpuSet::parse_list("0-7").unwrap();
        assert_eq!(
            error(&confined),
            "near 0000:01:00.0 are CPUs 8-15; this process may use only 0-7"
        );
    }
}
