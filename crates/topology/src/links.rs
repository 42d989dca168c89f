//! The paths between devices: direct links, or bridges.
//!
//! GPUs may have links that `/sys/bus/pci` does not show. NVIDIA's are in what
//! `nvidia-smi topo -m` prints; those of AMD in the topology of the kernel's driver
//! (`/sys/class/kfd`, its values in `include/uapi/linux/kfd_sysfs.h`). All else
//! follows from the bridges above two devices.

use super::devices::{NVIDIA, parse_address};
use super::{Capture, Device, DeviceKind, Topology, Warning};

/// The key of `nvidia-smi topo -m`'s output in a capture.
pub const NVIDIA_MATRIX: &str = "pinwise/nvidia-smi-topo-m";
/// The folder of AMD's driver with processors and their links.
pub const KFD_DIR: &str = "sys/class/kfd/kfd/topology/nodes";
/// `KFD_IOLINKTYPE` of XGMI: Infinity Fabric between GPUs.
const XGMI: &str = "11";

/// A link between two GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkKind {
    /// NVLinks, bonded into one; their number.
    Nvlink(u32),
    /// Infinity Fabric (XGMI).
    Xgmi,
}

/// A link from one device to another, by PCI addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The device at one end.
    pub from: String,
    /// Its other end.
    pub to: String,
    /// Its kind.
    pub kind: LinkKind,
}

/// The path between two devices, nearest first, in the classes of `nvidia-smi topo -m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DevicePath {
    /// A direct link.
    Link(LinkKind),
    /// At most one PCIe switch (PIX).
    Switch,
    /// Several PCIe switches, but no host bridge (PXB).
    Switches,
    /// A PCIe host bridge (PHB).
    HostBridge,
    /// The path between host bridges of one NUMA node (NODE).
    Node,
    /// The path between NUMA nodes (SYS).
    System,
}

impl Topology {
    /// The shortest path between two devices; `None` if it depends on an unknown root complex or
    /// NUMA node.
    #[must_use]
    pub fn path(&self, a: &Device, b: &Device) -> Option<DevicePath> {
        let joins = |link: &&Link| link.from == a.address && link.to == b.address;
        if let Some(link) = self.links.iter().find(joins) {
            return Some(DevicePath::Link(link.kind));
        }
        let shared = a.bridges.iter().zip(&b.bridges);
        let shared = shared.take_while(|(a, b)| a == b).count();
        let below = (a.bridges.len() - shared).max(b.bridges.len() - shared);
        let is_one_root = a.root.as_ref()? == b.root.as_ref()?;
        Some(match (is_one_root, shared) {
            (true, 0) => DevicePath::HostBridge,
            // Below the shared switch each device has its own port.
            (true, _) if below <= 1 => DevicePath::Switch,
            (true, _) => DevicePath::Switches,
            (false, _) if a.numa_node? == b.numa_node? => DevicePath::Node,
            (false, _) => DevicePath::System,
        })
    }

    /// Adds the links of devices, if the capture has any. Warnings report what could not be
    /// understood.
    pub fn read_links(&mut self, capture: &Capture) -> Vec<Warning> {
        self.links = list_xgmi_links(capture, &self.devices);
        let matrix = capture.text(NVIDIA_MATRIX);
        match matrix.map_or(Ok(Vec::new()), |text| parse_nvlinks(text, &self.devices)) {
            Ok(links) => self.links.extend(links),
            Err(why) => return vec![format!("Links between GPUs are unknown: {why}.")],
        }
        Vec::new()
    }
}

/// Parses the NVLinks in the output of `nvidia-smi topo -m`: a row for each GPU, with cells in the
/// order of the columns. nvidia-smi numbers GPUs by PCI address.
fn parse_nvlinks(text: &str, devices: &[Device]) -> Result<Vec<Link>, String> {
    let is_gpu = |d: &&Device| d.kind == DeviceKind::Gpu && d.vendor == Some(NVIDIA);
    let gpus: Vec<&Device> = devices.iter().filter(is_gpu).collect();
    let text = strip_escapes(text);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    let mut lines = text
        .lines()
        .map(words)
        .filter(|l: &Vec<String>| !l.is_empty());
    let header = lines.find(|line| line[0] == "GPU0");
    let columns = header.ok_or("nvidia-smi topo -m printed no matrix")?;
    let columns = columns
        .iter()
        .take_while(|word| word.starts_with("GPU"))
        .count();
    if columns != gpus.len() {
        let expected = gpus.len();
        return Err(format!("nvidia-smi shows {columns} of {expected} GPUs"));
    }
    let mut found = Vec::new();
    for (row, gpu) in gpus.iter().enumerate() {
        let name = format!("GPU{row}");
        let cells = lines.next().filter(|line| line[0] == name);
        let cells = cells.ok_or(format!("nvidia-smi topo -m has no row {name}"))?;
        found.extend(cells[1..].iter().zip(&gpus).filter_map(|(cell, other)| {
            let count = cell.strip_prefix("NV")?.parse().ok()?;
            Some(Link {
                from: gpu.address.clone(),
                to: other.address.clone(),
                kind: LinkKind::Nvlink(count),
            })
        }));
    }
    Ok(found)
}

/// Removes terminal escape sequences, with which nvidia-smi underlines its heading.
fn strip_escapes(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic());
        plain.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    plain
}

/// The XGMI links of AMD's GPUs.
fn list_xgmi_links(capture: &Capture, devices: &[Device]) -> Vec<Link> {
    let property = |path: &str, key: &str| {
        let text = capture.text(&format!("{path}/properties"))?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value.trim().to_owned())
    };
    // The low byte of a processor's PCI location is device and function.
    let find_device = |node: &str| {
        let number = |key| {
            property(&format!("{KFD_DIR}/{node}"), key)?
                .parse::<u32>()
                .ok()
        };
        let (domain, location) = (number("domain").unwrap_or(0), number("location_id")?);
        let byte = |shift: u32| u8::try_from(location >> shift & 0xff).ok();
        let (bus, function) = (byte(8)?, byte(0)?);
        let place = (domain, bus, function >> 3, function & 7);
        devices
            .iter()
            .find(|device| parse_address(&device.address) == Some(place))
    };
    let mut found = Vec::new();
    for node in capture.children(KFD_DIR) {
        let Some(from) = find_device(node) else {
            continue;
        };
        let links = format!("{KFD_DIR}/{node}/io_links");
        for link in capture.children(&links) {
            let path = format!("{links}/{link}");
            let is_xgmi = property(&path, "type").is_some_and(|kind| kind == XGMI);
            let to = property(&path, "node_to").and_then(|node| find_device(&node));
            let to = to.filter(|to| is_xgmi && to.address != from.address);
            found.extend(to.map(|to| Link {
                from: from.address.clone(),
                to: to.address.clone(),
                kind: LinkKind::Xgmi,
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GPUs and network cards: address, PCI class, vendor, bridges, NUMA node.
    fn machine(devices: &[(&str, u16, u16, &str, usize)]) -> Topology {
        let device = |&(address, class, vendor, bridges, node): &(&str, _, _, &str, _)| {
            let mut device = Device::new(address, class, Some(vendor), Some(1)).unwrap();
            let mut bridges = bridges.split(' ').map(str::to_owned);
            device.root = bridges.next();
            device.bridges = bridges.collect();
            device.numa_node = Some(node);
            device
        };
        Topology {
            devices: devices.iter().map(device).collect(),
            ..Topology::default()
        }
    }

    fn list_paths_from_first(topology: &Topology) -> Vec<Option<DevicePath>> {
        let first = &topology.devices[0];
        let others = topology.devices[1..].iter();
        others.map(|other| topology.path(first, other)).collect()
    }

    const NV12: Option<DevicePath> = Some(DevicePath::Link(LinkKind::Nvlink(12)));

    #[test]
    fn bridges_tell_the_path_between_two_devices() {
        let mut topology = machine(&[
            ("0000:34:00.0", 0x0302, NVIDIA, "pci0000:2b up 33:00.0", 0),
            ("0000:36:00.0", 0x0302, NVIDIA, "pci0000:2b up 33:10.0", 0),
            (
                "0000:39:00.0",
                0x0302,
                NVIDIA,
                "pci0000:2b up 37:00.0 38:00.0",
                0,
            ),
            ("0000:3c:00.0", 0x0200, 0x15b3, "pci0000:2b 2b:01.0", 0),
            ("0000:57:00.0", 0x0302, NVIDIA, "pci0000:4e 4e:00.0", 0),
            ("0000:b7:00.0", 0x0302, NVIDIA, "pci0000:ae ae:00.0", 1),
        ]);
        assert_eq!(
            list_paths_from_first(&topology),
            [
                DevicePath::Switch,
                DevicePath::Switches,
                DevicePath::HostBridge,
                DevicePath::Node,
                DevicePath::System
            ]
            .map(Some)
        );
        topology.devices.update(|all| all[5].numa_node = None);
        assert_eq!(list_paths_from_first(&topology)[4], None);
    }

    /// Printed by `nvidia-smi` of driver 580, with its underlined heading.
    const FOUR_GPUS: &str = "\t\u{1b}[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n\
        GPU0\t X \tNV12\tNV12\tSYS\tSYS\t32-63,96-127\t1\t\tN/A\n\
        GPU1\tNV12\t X \tNV12\tNV12\tSYS\t32-63,96-127\t1\t\tN/A\n\
        GPU2\tNV12\tNV12\t X \tNV12\tSYS\t32-63,96-127\t1\t\tN/A\n\
        GPU3\tSYS\tNV12\tNV12\t X \tSYS\t32-63,96-127\t1\t\tN/A\n\
        NIC0\tSYS\tSYS\tSYS\tSYS\t X \t\t\t\t\n\nLegend:\n\n  X    = Self\n";

    fn machine_with_four_gpus() -> Topology {
        machine(&[
            ("0000:01:00.0", 0x0302, NVIDIA, "pci0000:00", 0),
            ("0000:02:00.0", 0x0200, 0x15b3, "pci0000:00", 0),
            ("0000:03:00.0", 0x0302, NVIDIA, "pci0000:00", 0),
            ("0000:04:00.0", 0x0302, NVIDIA, "pci0000:00", 0),
            ("0000:05:00.0", 0x0302, NVIDIA, "pci0000:05", 1),
        ])
    }

    #[test]
    fn nvlinks_are_parsed_from_nvidia_smi() {
        let mut capture = Capture::new();
        capture.insert(NVIDIA_MATRIX, FOUR_GPUS);
        let mut topology = machine_with_four_gpus();
        assert_eq!(topology.read_links(&capture), [""; 0]);
        let (bridge, far) = (Some(DevicePath::HostBridge), Some(DevicePath::System));
        assert_eq!(list_paths_from_first(&topology), [bridge, NV12, NV12, far]);
        assert_eq!(topology.links.len(), 10);
    }

    #[test]
    fn a_matrix_of_other_gpus_is_refused() {
        for (text, why) in [
            ("No devices were found", "no matrix"),
            (&FOUR_GPUS.replace("GPU3", "NIC9"), "shows 3 of 4 GPUs"),
            (&FOUR_GPUS.replace("\nGPU2", "\nGPU9"), "no row GPU2"),
        ] {
            let mut capture = Capture::new();
            capture.insert(NVIDIA_MATRIX, text);
            let mut topology = machine_with_four_gpus();
            let warnings = topology.read_links(&capture);
            assert!(warnings[0].contains(why), "{warnings:?}");
            assert_eq!(topology.links, []);
        }
    }

    #[test]
    fn xgmi_links_are_read_from_the_driver() {
        let mut capture = Capture::new();
        let mut put = |path: &str, text: &str| {
            capture.insert(format!("{KFD_DIR}/{path}/properties"), text);
        };
        // Node 0 stands for the CPUs.
        put(
            "0",
            "cpu_cores_count 64\nsimd_count 0\nlocation_id 0\ndomain 0",
        );
        put(
            "1",
            "cpu_cores_count 0\nsimd_count 440\nlocation_id 49408\ndomain 0",
        );
        put(
            "2",
            "cpu_cores_count 0\nsimd_count 440\nlocation_id 50688\ndomain 0",
        );
        put("1/io_links/0", "type 2\nnode_from 1\nnode_to 0\nweight 20");
        put("1/io_links/1", "type 11\nnode_from 1\nnode_to 2\nweight 15");
        put("2/io_links/0", "type 11\nnode_from 2\nnode_to 1\nweight 15");
        let mut topology = machine(&[
            ("0000:c1:00.0", 0x0380, 0x1002, "pci0000:c0", 0),
            ("0000:c6:00.0", 0x0380, 0x1002, "pci0000:c0", 0),
        ]);
        assert_eq!(topology.read_links(&capture), [""; 0]);
        assert_eq!(
            list_paths_from_first(&topology),
            [Some(DevicePath::Link(LinkKind::Xgmi))]
        );
        assert_eq!(topology.links.len(), 2);
    }
}
