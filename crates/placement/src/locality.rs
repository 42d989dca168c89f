//! Placements relative to a device: the CPUs near it, or all others.

use std::fmt;

use super::{Placement, RealiseError};
use pinwise_topology::Topology;

/// The CPUs near a device, or all others as a control: shows what nearness gains.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Locality {
    /// Near, or far?
    pub is_near: bool,
    /// A device name of the topology: `gpu0`, `eth0`, `pci:0000:41:00.0`.
    pub device: String,
}

impl fmt::Display for Locality {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_near { "near" } else { "far" };
        write!(out, "{word}:{}", self.device)
    }
}

impl Locality {
    /// The machine where only the CPUs near a device, or only those far from it, are allowed.
    pub(super) fn restrict(
        &self,
        topology: &Topology,
        placement: &Placement,
    ) -> Result<Topology, RealiseError> {
        let placement = placement.to_string();
        let device = topology.device(&self.device);
        let device = device.ok_or_else(|| RealiseError::NoDevice {
            placement: placement.clone(),
            device: self.device.clone(),
            hint: suggest_device(topology, &self.device),
        })?;
        let near = device
            .cpus
            .as_ref()
            .ok_or_else(|| RealiseError::NotLocated {
                placement: placement.clone(),
                device: self.device.clone(),
            })?;
        let allowed = match self.is_near {
            true => topology.allowed.intersection(near),
            false => topology.allowed.difference(near),
        };
        let device = self.device.clone();
        match (allowed.is_empty(), self.is_near) {
            (false, _) => Ok(Topology {
                allowed,
                ..topology.clone()
            }),
            (true, true) => Err(RealiseError::NoneNear {
                placement,
                device,
                allowed: topology.allowed.clone(),
                near: near.clone(),
            }),
            (true, false) => Err(RealiseError::NoneFar {
                placement,
                device,
                allowed: topology.allowed.clone(),
            }),
        }
    }
}

/// Suggests alternatives to a device that does not exist.
fn suggest_device(topology: &Topology, wanted: &str) -> String {
    const MAX_LISTED: usize = 8;
    let named = topology
        .devices
        .iter()
        .filter_map(|device| device.names.first());
    let names: Vec<&str> = named.map(String::as_str).collect();
    let all = topology.devices.iter().flat_map(|device| &device.names);
    let wanted = wanted.to_lowercase();
    let similarity = |name: &&String| strsim::jaro_winkler(&name.to_lowercase(), &wanted);
    let nearest = all.max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    if let Some(name) = nearest.filter(|name| similarity(name) > 0.8) {
        return format!("; did you mean '{name}'?");
    }
    match names.len() {
        0 => " (it reports none on the PCI bus)".to_owned(),
        count if count <= MAX_LISTED => format!(" (it has {})", names.join(", ")),
        count => format!(" (`pinwise topology` lists {count})"),
    }
}
