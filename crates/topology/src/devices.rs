//! Devices on the PCI bus: their kind, their Linux names, and the nearest CPUs.
//!
//! Firmware reports the NUMA node of a root complex; the kernel passes it on as `numa_node` and
//! `local_cpus` of every device below. Without that the kernel lists all CPUs, which on a machine
//! of several nodes means unknown: [`Device::cpus`] is then `None`, not all of them.

mod models;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

pub(super) use models::name_models;

use super::interrupts::{Interrupt, Queue};
use super::{Capture, CpuSet, NumaNode, Topology, Warning};

/// The folder of PCI devices; each is a link to its own folder.
pub const PCI_DIR: &str = "sys/bus/pci/devices";
/// The folder of NVIDIA's driver with its GPUs, by PCI address.
pub const NVIDIA_DIR: &str = "proc/driver/nvidia/gpus";

/// Folders of links to devices of one class, by the names that users know.
pub const CLASS_DIRS: [&str; 7] = [
    "sys/class/net",
    "sys/class/nvme",
    "sys/block",
    "sys/class/drm",
    "sys/class/infiniband",
    "sys/class/accel",
    "sys/class/ve",
];

/// Vendors whose display controllers are GPUs; others only draw a console.
pub(super) const NVIDIA: u16 = 0x10de;
const AMD: u16 = 0x1002;
const INTEL: u16 = 0x8086;
/// Device ids of AMD's chips that only draw a server's console: Rage XL, ES1000.
const AMD_CONSOLES: [u16; 3] = [0x4752, 0x515e, 0x5969];

/// Limits the devices named in a warning.
const MAX_NAMED: usize = 4;

/// The purpose of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceKind {
    /// A graphics processor that computes.
    Gpu,
    /// A display controller that is not a GPU, such as a server's console.
    Display,
    /// Ethernet, InfiniBand and other networks.
    Network,
    /// Disks and their controllers.
    Storage,
    /// Another processor for special work.
    Accelerator,
}

impl DeviceKind {
    /// The kind by PCI class (base class and subclass, `0x0302`), as the PCI Code and ID Assignment
    /// Specification lists them, and by vendor and device id; `None` for bridges and others that do
    /// not matter for placement.
    #[must_use]
    pub fn from_class(class: u16, vendor: Option<u16>, device: Option<u16>) -> Option<Self> {
        let is_console = vendor == Some(AMD) && device.is_some_and(|id| AMD_CONSOLES.contains(&id));
        let is_gpu_vendor = matches!(vendor, Some(NVIDIA | AMD | INTEL)) && !is_console;
        match (class >> 8, class & 0xff) {
            (0x01, _) => Some(Self::Storage),
            (0x02, _) | (0x0c, 0x06) => Some(Self::Network),
            (0x03, _) if is_gpu_vendor => Some(Self::Gpu),
            (0x03, _) => Some(Self::Display),
            // AMD's Instinct MI300 calls itself a processing accelerator.
            (0x12, _) if matches!(vendor, Some(AMD)) => Some(Self::Gpu),
            (0x12, _) | (0x0b, 0x40) => Some(Self::Accelerator),
            _ => None,
        }
    }

    /// The word for one device of this kind.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Display => "display",
            Self::Network => "network",
            Self::Storage => "storage",
            Self::Accelerator => "accelerator",
        }
    }
}

/// A device on the PCI bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its PCI address as Linux writes it: `0000:41:00.0`.
    pub address: String,
    /// Its purpose.
    pub kind: DeviceKind,
    /// PCI base class and subclass: `0x0302` is a 3D controller.
    pub class: u16,
    /// PCI vendor; `None` if unknown.
    pub vendor: Option<u16>,
    /// PCI device id of that vendor; `None` if unknown.
    pub device: Option<u16>,
    /// Its product name; `None` if unknown.
    pub model: Option<String>,
    /// Names of users and drivers: `gpu0` (GPUs counted by address, as
    /// `nvidia-smi` does), then `card0`, `eth0`, `mlx5_0`, `nvme0n1` …
    pub names: Vec<String>,
    /// Its NUMA node: as reported by the system, else the one with all CPUs near it.
    pub numa_node: Option<usize>,
    /// The nearest online CPUs; `None` if not reported.
    pub cpus: Option<CpuSet>,
    /// The root complex as Linux names its folder, `pci0000:40`.
    pub root: Option<String>,
    /// Addresses of the bridges and switches between the root complex and the
    /// device, outermost first.
    pub bridges: Vec<String>,
    /// Its interrupts, by number; empty if not read.
    pub interrupts: Vec<Interrupt>,
    /// The queues of a network card with configurable CPUs, and those CPUs, empty if none are set;
    /// empty if not read.
    pub queues: BTreeMap<Queue, CpuSet>,
}

impl Device {
    /// A device with only its address, class, vendor and device id; `None` for ignored classes.
    #[must_use]
    pub fn new(
        address: &str,
        class: u16,
        vendor: Option<u16>,
        device: Option<u16>,
    ) -> Option<Self> {
        parse_address(address)?;
        Some(Self {
            address: address.to_owned(),
            kind: DeviceKind::from_class(class, vendor, device)?,
            class,
            vendor,
            device,
            model: None,
            names: Vec::new(),
            numa_node: None,
            cpus: None,
            root: None,
            bridges: Vec::new(),
            interrupts: Vec::new(),
            queues: BTreeMap::new(),
        })
    }

    /// Its first name, or its address.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.first().unwrap_or(&self.address)
    }

    /// Does the device have this name: one of its names, or its address with or without `pci:` and
    /// the domain 0000?
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let address = name.strip_prefix("pci:").unwrap_or(name);
        match parse_address(address) {
            Some(place) => parse_address(&self.address) == Some(place),
            None => self.names.iter().any(|own| own == name),
        }
    }
}

/// Domain, bus, device and function of `0000:41:00.0` or `41:00.0`.
pub(super) fn parse_address(text: &str) -> Option<(u32, u8, u8, u8)> {
    let (front, function) = text.rsplit_once('.')?;
    let mut parts = front.rsplit(':');
    let (device, bus, domain) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() || bus.len() != 2 || device.len() != 2 || function.len() != 1 {
        return None;
    }
    let byte = |text| u8::from_str_radix(text, 16).ok();
    Some((
        u32::from_str_radix(domain.unwrap_or("0"), 16).ok()?,
        byte(bus)?,
        byte(device)?,
        byte(function)?,
    ))
}

/// The files of a PCI device, besides its `class`, that are read if the device [`is_wanted`].
pub const DEVICE_FILES: [&str; 5] = [
    "vendor",
    "device",
    "numa_node",
    "local_cpus",
    "local_cpulist",
];

/// Does a device's captured class make the rest of its files worth reading? A server has hundreds
/// of irrelevant bridges and controllers.
#[must_use]
pub fn is_wanted(capture: &Capture, address: &str) -> bool {
    parse_class(capture, address)
        .is_some_and(|class| DeviceKind::from_class(class, None, None).is_some())
}

/// Base class and subclass; the last byte of the file is the programming
/// interface.
fn parse_class(capture: &Capture, address: &str) -> Option<u16> {
    let text = capture.text(&format!("{PCI_DIR}/{address}/class"))?;
    u16::try_from(parse_hex(text)? >> 8).ok()
}

fn parse_hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// The devices of a machine, by address. A server has hundreds, whose files take long to read: a
/// running system's are read on first use, so that only their users wait.
#[derive(Clone)]
pub struct Devices(Arc<LazyLock<FoundDevices, Box<dyn FnOnce() -> FoundDevices + Send>>>);

/// Devices, and warnings about them.
#[derive(Debug, Clone, Default)]
struct FoundDevices {
    devices: Vec<Device>,
    warnings: Vec<Warning>,
}

impl Devices {
    /// The devices of this machine, read by `capture` on first use.
    pub fn read_later(
        topology: &Topology,
        capture: impl FnOnce() -> Capture + Send + 'static,
    ) -> Self {
        let (online, nodes) = (topology.online.clone(), topology.numa_nodes.clone());
        Self::from_search(move || {
            let mut warnings = Vec::new();
            let devices = complete(parse_devices(&capture()), &online, &nodes, &mut warnings);
            FoundDevices { devices, warnings }
        })
    }

    /// Warnings about devices that were read later than their machine.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.0.warnings
    }

    /// Changes the list.
    pub fn update(&mut self, change: impl FnOnce(&mut Vec<Device>)) {
        let mut found = FoundDevices::clone(&self.0);
        change(&mut found.devices);
        *self = Self::from_search(move || found);
    }

    fn from_search(find: impl FnOnce() -> FoundDevices + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(find))))
    }
}

impl Deref for Devices {
    type Target = [Device];

    fn deref(&self) -> &[Device] {
        &self.0.devices
    }
}

impl From<Vec<Device>> for Devices {
    fn from(devices: Vec<Device>) -> Self {
        let warnings = Vec::new();
        Self::from_search(move || FoundDevices { devices, warnings })
    }
}

impl FromIterator<Device> for Devices {
    fn from_iter<I: IntoIterator<Item = Device>>(devices: I) -> Self {
        Vec::from_iter(devices).into()
    }
}

impl<'a> IntoIterator for &'a Devices {
    type Item = &'a Device;
    type IntoIter = std::slice::Iter<'a, Device>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Default for Devices {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl PartialEq for Devices {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// The devices of a capture.
pub(super) fn parse_devices(capture: &Capture) -> Vec<Device> {
    let mut devices: Vec<Device> = capture
        .children(PCI_DIR)
        .filter_map(|address| parse_device(capture, address))
        .collect();
    for dir in CLASS_DIRS {
        for name in capture.children(dir) {
            let target = capture.text(&format!("{dir}/{name}")).unwrap_or_default();
            let address = target
                .rsplit('/')
                .find(|part| parse_address(part).is_some());
            let owner = address.map_or_else(|| find_namespace_owner(name), ToOwned::to_owned);
            if let Some(device) = devices.iter_mut().find(|d| d.is_called(&owner)) {
                device.names.push(name.to_owned());
            }
        }
    }
    devices
}

/// With multipath the link of a disk `nvme0n1` names no device; the controller of the same
/// number, `nvme0`, is taken as its owner.
fn find_namespace_owner(name: &str) -> String {
    let digits = name.strip_prefix("nvme").unwrap_or_default();
    let controller = digits.split('n').next().unwrap_or_default();
    format!("nvme{controller}")
}

fn parse_device(capture: &Capture, address: &str) -> Option<Device> {
    let dir = format!("{PCI_DIR}/{address}");
    let text = |file: &str| capture.text(&format!("{dir}/{file}"));
    let id = |file: &str| u16::try_from(parse_hex(text(file)?)?).ok();
    let nvidia_dir = format!("{NVIDIA_DIR}/{address}");
    let is_nvidia = capture.children(&nvidia_dir).next().is_some();
    let vendor = id("vendor").or(is_nvidia.then_some(NVIDIA));
    let mut device = Device::new(
        address,
        parse_class(capture, address)?,
        vendor,
        id("device"),
    )?;
    device.numa_node = text("numa_node").and_then(|node| node.parse().ok());
    device.cpus = text("local_cpus")
        .and_then(|mask| CpuSet::parse_mask(mask).ok())
        .or_else(|| CpuSet::parse_list(text("local_cpulist")?).ok());
    let link = capture.text(&dir).unwrap_or_default();
    for part in link.split('/') {
        if part.starts_with("pci") && part.contains(':') {
            device.root = Some(part.to_owned());
        } else if parse_address(part).is_some() && part != address {
            device.bridges.push(part.to_owned());
        }
    }
    let information = capture
        .text(&format!("{nvidia_dir}/information"))
        .unwrap_or_default();
    for line in information.lines() {
        match line.split_once(':').map(|(key, value)| (key, value.trim())) {
            Some(("Model", model)) => device.model = Some(model.to_owned()),
            Some(("Device Minor", minor)) => device.names.push(format!("nvidia{minor}")),
            _ => {}
        }
    }
    Some(device)
}

/// Makes the devices consistent with the existing CPUs and nodes, sorts them by address and counts
/// the GPUs.
pub(super) fn complete(
    mut devices: Vec<Device>,
    online: &CpuSet,
    nodes: &[NumaNode],
    warnings: &mut Vec<Warning>,
) -> Vec<Device> {
    devices.sort_by_key(|device| parse_address(&device.address));
    devices.dedup_by(|next, first| next.address == first.address);
    let has_several = nodes.iter().filter(|node| !node.cpus.is_empty()).count() > 1;
    let mut gpus = 0;
    for device in &mut devices {
        device.names.sort();
        device.names.dedup();
        if device.kind == DeviceKind::Gpu {
            device.names.insert(0, format!("gpu{gpus}"));
            gpus += 1;
        }
        locate(device, online, nodes, has_several, warnings);
    }
    let unlocated: Vec<&str> = devices
        .iter()
        .filter(|device| device.cpus.is_none())
        .map(Device::name)
        .collect();
    if !unlocated.is_empty() {
        let named = unlocated[..unlocated.len().min(MAX_NAMED)].join(", ");
        let more = match unlocated.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        warnings.push(format!(
            "The firmware does not say at which NUMA node {named}{more} is: which CPUs are nearest is unknown."
        ));
    }
    devices
}

fn locate(
    device: &mut Device,
    online: &CpuSet,
    nodes: &[NumaNode],
    has_several: bool,
    warnings: &mut Vec<Warning>,
) {
    let node = device.numa_node.and_then(|number| {
        let node = nodes.iter().find(|node| node.node == number);
        if node.is_none() {
            warnings.push(format!(
                "{} is reported at NUMA node {number}, which does not exist; ignored.",
                device.name()
            ));
        }
        node
    });
    device.numa_node = node.map(|node| node.node);
    let near = device.cpus.take().unwrap_or_default().intersection(online);
    device.cpus = match node.map(|node| &node.cpus).filter(|cpus| !cpus.is_empty()) {
        // If a node is given, a list of all CPUs adds nothing.
        Some(cpus) if near.is_empty() || near == *online => Some(cpus.clone()),
        Some(cpus) if !near.intersects(cpus) => {
            warnings.push(format!(
                "{} is reported at a node of CPUs {cpus}, yet near CPUs {near}; the CPUs count.",
                device.name()
            ));
            Some(near)
        }
        None if near.is_empty() || near == *online => (!has_several).then(|| online.clone()),
        _ => Some(near),
    };
    if let (None, Some(near)) = (node, &device.cpus) {
        let around = nodes.iter().filter(|node| near.is_subset(&node.cpus));
        let smallest = around.min_by_key(|node| node.cpus.len());
        device.numa_node = smallest.map(|node| node.node);
    }
}

#[cfg(test)]
mod tests;
