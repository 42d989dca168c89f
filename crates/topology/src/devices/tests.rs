//! Devices and their CPUs, from files of sysfs.

use super::*;

/// Two nodes of two CPUs, with these files of a device.
fn machine(files: &[(&str, &str)]) -> (Topology, Vec<Warning>) {
    let mut capture = Capture::new();
    capture.insert("sys/devices/system/cpu/online", "0-3");
    for cpu in 0..4 {
        let dir = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        capture.insert(format!("{dir}/core_cpus_list"), cpu.to_string());
    }
    for (node, cpus) in [(0, "0-1"), (1, "2-3")] {
        capture.insert(format!("sys/devices/system/node/node{node}/cpulist"), cpus);
    }
    for (path, content) in files {
        capture.insert(*path, *content);
    }
    Topology::from_capture(&capture)
}

const GPU: &str = "sys/bus/pci/devices/0000:41:00.0";

#[test]
fn devices_are_read_once_when_they_are_needed() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let reads = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&reads);
    let mut topology = Topology::from_synthetic("numa:2 core:2 pu:1").unwrap();
    topology.devices = Devices::read_later(&topology, move || {
        count.fetch_add(1, Ordering::Relaxed);
        let mut capture = Capture::new();
        capture.insert(format!("{GPU}/class"), "0x030200");
        capture.insert(format!("{GPU}/vendor"), "0x10de");
        capture
    });
    let copy = topology.clone();
    assert_eq!(reads.load(Ordering::Relaxed), 0);
    assert_eq!(topology.devices[0].name(), "gpu0");
    assert_eq!(copy.devices, topology.devices);
    assert_eq!(copy.devices.warnings().len(), 1);
    topology.devices.update(Vec::clear);
    assert_eq!((copy.devices.len(), topology.devices.len()), (1, 0));
    assert_eq!(topology.devices.warnings(), copy.devices.warnings());
    assert_eq!(reads.load(Ordering::Relaxed), 1);
}

fn gpu(node: &'static str, cpus: &'static str) -> Vec<(String, &'static str)> {
    vec![
        (
            GPU.to_owned(),
            "../../../devices/pci0000:40/0000:40:01.0/0000:41:00.0",
        ),
        (format!("{GPU}/class"), "0x030200"),
        (format!("{GPU}/vendor"), "0x10de"),
        (format!("{GPU}/device"), "0x20b0"),
        (format!("{GPU}/numa_node"), node),
        (format!("{GPU}/local_cpulist"), cpus),
    ]
}

fn read_devices(files: &[(String, &str)]) -> (Topology, Vec<Warning>) {
    let files: Vec<(&str, &str)> = files.iter().map(|(p, c)| (p.as_str(), *c)).collect();
    machine(&files)
}

#[test]
fn a_gpu_has_the_names_of_all_drivers() {
    let mut files = gpu("1", "2-3");
    let below = "../../devices/pci0000:40/0000:40:01.0/0000:41:00.0/drm";
    let card = format!("{below}/card1");
    files.push(("sys/class/drm/card1".to_owned(), &card));
    files.push((
        format!("{NVIDIA_DIR}/0000:41:00.0/information"),
        "Model: \t NVIDIA A100-SXM4-40GB\nDevice Minor: \t 3\n",
    ));
    let (topology, warnings) = read_devices(&files);
    assert_eq!(warnings, [""; 0]);
    let device = &topology.devices[0];
    assert_eq!(device.names, ["gpu0", "card1", "nvidia3"]);
    assert_eq!(device.model.as_deref(), Some("NVIDIA A100-SXM4-40GB"));
    assert_eq!(device.numa_node, Some(1));
    assert_eq!(device.cpus, CpuSet::parse_list("2-3").ok());
    assert_eq!(device.root.as_deref(), Some("pci0000:40"));
    assert_eq!(device.bridges, ["0000:40:01.0"]);
    for name in ["gpu0", "card1", "pci:0000:41:00.0", "41:00.0"] {
        assert!(topology.device(name).is_some(), "{name}");
    }
    assert!(topology.device("gpu1").is_none());
}

#[test]
fn unknown_to_the_firmware_is_unknown_here() {
    let (topology, warnings) = read_devices(&gpu("-1", "0-3"));
    assert_eq!(topology.devices[0].cpus, None);
    assert_eq!(
        warnings,
        [
            "The firmware does not say at which NUMA node gpu0 is: which CPUs are nearest is unknown."
        ]
    );
}

#[test]
fn a_contradiction_is_reported_and_the_cpus_take_precedence() {
    let (topology, warnings) = read_devices(&gpu("0", "2-3"));
    assert_eq!(topology.devices[0].cpus, CpuSet::parse_list("2-3").ok());
    assert!(warnings[0].contains("yet near CPUs 2-3"), "{warnings:?}");
    let (topology, warnings) = read_devices(&gpu("7", "0-1"));
    assert_eq!(topology.devices[0].numa_node, Some(0));
    assert!(warnings[0].contains("does not exist"), "{warnings:?}");
}

#[test]
fn a_disk_of_several_paths_is_at_its_controller() {
    let dir = "sys/bus/pci/devices/0000:01:00.0";
    let files = [
        (format!("{dir}/class"), "0x010802"),
        (format!("{dir}/numa_node"), "0"),
        (
            "sys/class/nvme/nvme0".to_owned(),
            "../../devices/pci0000:00/0000:01:00.0/nvme/nvme0",
        ),
        (
            "sys/block/nvme0n1".to_owned(),
            "../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1",
        ),
        (
            "sys/block/loop0".to_owned(),
            "../devices/virtual/block/loop0",
        ),
    ];
    let (topology, _) = read_devices(&files);
    assert_eq!(topology.devices[0].names, ["nvme0", "nvme0n1"]);
}

#[test]
fn a_console_is_not_a_gpu() {
    assert_eq!(
        DeviceKind::from_class(0x0300, Some(0x1a03), Some(0x2000)),
        Some(DeviceKind::Display)
    );
    assert_eq!(
        DeviceKind::from_class(0x0300, Some(NVIDIA), None),
        Some(DeviceKind::Gpu)
    );
    assert_eq!(
        DeviceKind::from_class(0x1200, Some(AMD), None),
        Some(DeviceKind::Gpu)
    );
    assert_eq!(DeviceKind::from_class(0x0604, Some(INTEL), None), None);
}

#[test]
fn addresses_are_read_with_and_without_a_domain() {
    assert_eq!(parse_address("41:00.0"), Some((0, 0x41, 0, 0)));
    assert_eq!(
        parse_address("10000:e1:1f.7"),
        Some((0x10000, 0xe1, 0x1f, 7))
    );
    for text in [
        "",
        "virtio0",
        "pci0000:40",
        "0:0.0",
        "41:00.00",
        "a:41:00:0.0",
    ] {
        assert_eq!(parse_address(text), None, "{text}");
    }
}
