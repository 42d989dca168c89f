//! The paths between devices of a machine.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::device::DeviceRecord;
use super::named::open_enum;
use pinwise_topology::links::{DevicePath, Link, LinkKind};
use pinwise_topology::{Device, DeviceKind, Topology};

open_enum! {
    /// The path between two devices, in the classes of `nvidia-smi topo -m`.
    PathClass {
        /// Bonded NVLinks.
        Nvlink = "NV",
        /// Infinity Fabric between GPUs.
        Xgmi = "XGMI",
        /// One PCIe switch at most.
        Switch = "PIX",
        /// Several PCIe switches, but no host bridge.
        Switches = "PXB",
        /// A PCIe host bridge.
        HostBridge = "PHB",
        /// The path between host bridges of one NUMA node.
        Node = "NODE",
        /// The path between NUMA nodes.
        System = "SYS",
    }
}

/// The nearest path between two devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DevicePathRecord {
    /// PCI address of the one.
    pub from: String,
    /// PCI address of the other.
    pub to: String,
    /// The path between them.
    pub path: PathClass,
    /// Number of NVLinks; `null` for other paths.
    pub nvlinks: Option<u32>,
}

impl DevicePathRecord {
    /// The paths from each GPU and other accelerator to the others and to the network cards, by
    /// address; functions that no driver has taken are left out.
    fn list_all<'a>(topology: &'a Topology) -> Vec<Self> {
        let is_end = |d: &&Device| matches!(d.kind, DeviceKind::Gpu | DeviceKind::Accelerator);
        let is_named = |d: &&Device| !d.names.is_empty();
        let ends = || topology.devices.iter().filter(is_named);
        let from = ends().filter(is_end);
        let to = || ends().filter(|d| is_end(d) || d.kind == DeviceKind::Network);
        let record_pair = |from: &Device, to: &Device| {
            let path = topology
                .path(from, to)
                .filter(|_| from.address != to.address)?;
            let (path, nvlinks) = match path {
                DevicePath::Link(LinkKind::Nvlink(count)) => (PathClass::Nvlink, Some(count)),
                DevicePath::Link(LinkKind::Xgmi) => (PathClass::Xgmi, None),
                DevicePath::Switch => (PathClass::Switch, None),
                DevicePath::Switches => (PathClass::Switches, None),
                DevicePath::HostBridge => (PathClass::HostBridge, None),
                DevicePath::Node => (PathClass::Node, None),
                DevicePath::System => (PathClass::System, None),
            };
            Some(Self {
                from: from.address.clone(),
                to: to.address.clone(),
                path,
                nvlinks,
            })
        };
        let others = |from: &'a Device| to().filter_map(move |to| record_pair(from, to));
        from.flat_map(others).collect()
    }

    /// Converts a path that is a link; `None` for paths over the bus.
    pub(super) fn to_link(&self) -> Option<Link> {
        let kind = match (&self.path, self.nvlinks) {
            (PathClass::Nvlink, Some(count)) => LinkKind::Nvlink(count),
            (PathClass::Xgmi, _) => LinkKind::Xgmi,
            _ => return None,
        };
        Some(Link {
            from: self.from.clone(),
            to: self.to.clone(),
            kind,
        })
    }

    /// As `nvidia-smi` abbreviates it: `NV12`, `PIX`, `SYS`.
    #[must_use]
    pub fn abbreviation(&self) -> String {
        let count = self.nvlinks.map(|count| count.to_string());
        format!("{}{}", self.path, count.unwrap_or_default())
    }
}

/// The devices of a machine and the paths between them.
pub(super) fn list_devices(topology: &Topology) -> (Vec<DeviceRecord>, Vec<DevicePathRecord>) {
    let mut devices: Vec<DeviceRecord> = topology.devices.iter().map(DeviceRecord::new).collect();
    let paths = DevicePathRecord::list_all(topology);
    add_paths(&mut devices, &paths);
    (devices, paths)
}

/// Fills in each device's paths to the others.
fn add_paths(devices: &mut [DeviceRecord], paths: &[DevicePathRecord]) {
    let names: Vec<(String, String)> = devices
        .iter()
        .map(|device| (device.address.clone(), device.names.first()))
        .filter_map(|(address, name)| Some((address, name?.clone())))
        .collect();
    let find_name = |address: &String| {
        let found = names.iter().find(|(own, _)| own == address);
        found.map_or(address, |(_, name)| name).clone()
    };
    for device in devices {
        let own = paths.iter().filter(|path| path.from == device.address);
        let mut own: Vec<&DevicePathRecord> = own.collect();
        own.sort_by_key(|path| (path.path.clone(), Reverse(path.nvlinks)));
        let alike = own.chunk_by(|a, b| a.abbreviation() == b.abbreviation());
        let ways = alike.map(|paths| {
            let names: Vec<String> = paths.iter().map(|path| find_name(&path.to)).collect();
            format!(
                "{} {}",
                paths[0].abbreviation(),
                fold_names(&names).join(" ")
            )
        });
        let ways: Vec<String> = ways.collect();
        device.ways = (!ways.is_empty()).then(|| ways.join(", "));
    }
}

/// Joins names with consecutive numbers: `gpu4-7`.
fn fold_names(names: &[String]) -> Vec<String> {
    let split_number = |name: &String| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        Some((stem.to_owned(), name[stem.len()..].parse::<u64>().ok()?))
    };
    let follows = |a: &String, b: &String| match (split_number(a), split_number(b)) {
        (Some((stem, number)), Some((other, next))) => stem == other && number + 1 == next,
        _ => false,
    };
    let fold = |names: &[String]| match names {
        [first, _, .., last] => {
            let number = split_number(last).map_or(0, |(_, number)| number);
            vec![format!("{first}-{number}")]
        }
        few => few.to_vec(),
    };
    names.chunk_by(follows).flat_map(fold).collect()
}
