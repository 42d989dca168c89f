//! Writes devices as hwloc nests them: root complex, bridges, device, and the drivers' names.
//!
//! Of a bridge only the address is known: its ids are written as zero.

use pinwise_topology::{Device, DeviceKind};

use crate::markup::escape;

/// hwloc's numbers for the kinds of OS devices (`hwloc_obj_osdev_type_e`).
const BLOCK: u32 = 0;
const GPU: u32 = 1;
const NETWORK: u32 = 2;
const OPENFABRICS: u32 = 3;
const COPROCESSOR: u32 = 5;

/// Formats the devices below one object of the tree; `indexes` counts all objects of the file.
pub(super) fn write_objects(devices: &[&Device], indent: &str, indexes: &mut usize) -> String {
    let mut text = String::new();
    for complex in devices.chunk_by(|a, b| a.root == b.root) {
        let Some(root) = complex[0].root.as_deref() else {
            text.push_str(&write_devices_below(complex, 0, indent, indexes));
            continue;
        };
        *indexes += 1;
        let (domain, first) = root
            .trim_start_matches("pci")
            .split_once(':')
            .unwrap_or(("0000", "00"));
        text.push_str(&format!(
            "{indent}<object type=\"Bridge\" gp_index=\"{indexes}\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"{}:[{}-{}]\">\n",
            escape(domain),
            escape(first),
            find_last_bus(complex, first),
        ));
        text.push_str(&write_devices_below(
            complex,
            0,
            &format!("{indent}  "),
            indexes,
        ));
        text.push_str(&format!("{indent}</object>\n"));
    }
    text
}

/// Formats devices that share the first `depth` bridges.
fn write_devices_below(
    devices: &[&Device],
    depth: usize,
    indent: &str,
    indexes: &mut usize,
) -> String {
    let mut text = String::new();
    for group in devices.chunk_by(|a, b| a.bridges.get(depth) == b.bridges.get(depth)) {
        let Some(bridge) = group[0].bridges.get(depth) else {
            for device in group {
                text.push_str(&format_device(device, indent, indexes));
            }
            continue;
        };
        *indexes += 1;
        let buses = group
            .iter()
            .map(|device| match device.bridges.get(depth + 1) {
                Some(next) => parse_bus(next),
                None => parse_bus(&device.address),
            });
        let first = buses.min().unwrap_or("00");
        let domain = bridge.split(':').next().unwrap_or("0000");
        text.push_str(&format!(
            "{indent}<object type=\"Bridge\" gp_index=\"{indexes}\" bridge_type=\"1-1\" depth=\"{}\" bridge_pci=\"{}:[{}-{}]\" pci_busid=\"{}\" pci_type=\"0604 [0000:0000] [0000:0000] 00\" pci_link_speed=\"0.000000\">\n",
            depth + 1,
            escape(domain),
            escape(first),
            find_last_bus(group, first),
            escape(bridge),
        ));
        text.push_str(&write_devices_below(
            group,
            depth + 1,
            &format!("{indent}  "),
            indexes,
        ));
        text.push_str(&format!("{indent}</object>\n"));
    }
    text
}

fn format_device(device: &Device, indent: &str, indexes: &mut usize) -> String {
    *indexes += 1;
    let mut text = format!(
        "{indent}<object type=\"PCIDev\" gp_index=\"{indexes}\" pci_busid=\"{}\" pci_type=\"{:04x} [{:04x}:{:04x}] [0000:0000] 00\" pci_link_speed=\"0.000000\">\n",
        escape(&device.address),
        device.class,
        device.vendor.unwrap_or(0),
        device.device.unwrap_or(0),
    );
    if let Some(model) = &device.model {
        text.push_str(&format!(
            "{indent}  <info name=\"PCIDevice\" value=\"{}\"/>\n",
            escape(model)
        ));
    }
    // Near CPUs have an object only if they nest with all other objects.
    if let Some(cpus) = &device.cpus {
        text.push_str(&format!(
            "{indent}  <info name=\"PinwiseNearCPUs\" value=\"{cpus}\"/>\n"
        ));
    }
    for name in &device.names {
        if let Some(kind) = to_driver_kind(device.kind, name) {
            *indexes += 1;
            text.push_str(&format!(
                "{indent}  <object type=\"OSDev\" gp_index=\"{indexes}\" name=\"{}\" osdev_type=\"{kind}\"/>\n",
                escape(name)
            ));
        }
    }
    text.push_str(&format!("{indent}</object>\n"));
    text
}

/// hwloc's number for an OS device; `None` for names that pinwise made up
/// or that hwloc does not list.
fn to_driver_kind(kind: DeviceKind, name: &str) -> Option<u32> {
    match kind {
        // pinwise numbers GPUs itself; only NVIDIA's driver uses its name.
        _ if name.starts_with("gpu") || name.starts_with("nvidia") => None,
        DeviceKind::Gpu | DeviceKind::Display => {
            let computes = name.starts_with("cuda") || name.starts_with("opencl");
            Some(if computes { COPROCESSOR } else { GPU })
        }
        // InfiniBand devices are named by driver and number, such as `mlx5_0`.
        DeviceKind::Network => match name.rsplit_once('_') {
            Some((_, number)) if number.parse::<u32>().is_ok() => Some(OPENFABRICS),
            _ => Some(NETWORK),
        },
        DeviceKind::Storage => {
            let is_controller = name
                .strip_prefix("nvme")
                .is_some_and(|n| n.parse::<u32>().is_ok());
            (!is_controller).then_some(BLOCK)
        }
        DeviceKind::Accelerator => Some(COPROCESSOR),
    }
}

/// The bus of an address, two hexadecimal digits.
fn parse_bus(address: &str) -> &str {
    address.rsplit(':').nth(1).unwrap_or("00")
}

/// The last bus of any device, but at least `first`.
fn find_last_bus<'a>(devices: &[&'a Device], first: &'a str) -> &'a str {
    let buses = devices.iter().map(|device| parse_bus(&device.address));
    buses.chain([first]).max().unwrap_or(first)
}
