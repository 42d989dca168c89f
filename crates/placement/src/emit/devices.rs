//! Devices in the tools' own syntax, without CPU numbers.
//!
//! Sources: numactl(8) of numactl 2.0, hwloc(7) of hwloc 2, srun(1) of Slurm 22, and "Control
//! Topology Management Policies on a node" of Kubernetes.

use super::{Request, Tool};
use crate::Wish;
use pinwise_format::shell;
use pinwise_topology::{Device, DeviceKind};

/// For a placement near a device: how the tool itself finds the CPUs, if it can.
pub(super) fn explain_device_syntax(tool: Tool, request: &Request<'_>) -> Option<String> {
    let placement = &request.realised.placement;
    let locality = placement.locality.as_ref().filter(|one| one.is_near)?;
    let device = request.topology.device(&locality.device)?;
    // For tools, a device means all CPUs near it.
    let is_whole = placement.wish == Wish::Compact && placement.count.is_none();
    let name = &locality.device;
    match tool {
        Tool::Numactl if is_whole => {
            let node = format_numactl_node(device)?;
            let memory = request.bound_nodes().map(|_| format!("--membind={node} "));
            Some(format!(
                "numactl --cpunodebind={node} {}{} finds the node of {name} on any machine.",
                memory.unwrap_or_default(),
                request.shell_line(&[])
            ))
        }
        Tool::HwlocBind if is_whole => Some(format!(
            "hwloc-bind {} -- {} finds the CPUs near {name} on any machine.",
            shell::word(&format_hwloc_location(device)),
            request.shell_line(&[])
        )),
        Tool::Slurm if device.kind == DeviceKind::Gpu => Some(
            "With one task per GPU, --gpus-per-task=1 --gpu-bind=closest has Slurm choose the GPU \
             near the CPUs of each."
                .to_owned(),
        ),
        Tool::Kubernetes => Some(format!(
            "The kubelet takes the CPUs from the node of {name} where the pod asks for the device, \
             too, its plugin knows its node, and topologyManagerPolicy is single-numa-node."
        )),
        _ => None,
    }
}

/// The node of a network card or a disk in numactl's syntax.
fn format_numactl_node(device: &Device) -> Option<String> {
    device.numa_node?;
    let name = device.names.first()?;
    match device.kind {
        DeviceKind::Network => Some(format!("netdev:{name}")),
        DeviceKind::Storage => Some(format!("file:/dev/{name}")),
        DeviceKind::Gpu | DeviceKind::Display | DeviceKind::Accelerator => None,
    }
}

/// The device in hwloc's syntax. A GPU's first name is pinwise's own and means nothing to hwloc.
fn format_hwloc_location(device: &Device) -> String {
    let is_named = matches!(device.kind, DeviceKind::Network | DeviceKind::Storage);
    match device.names.first().filter(|_| is_named) {
        Some(name) => format!("os={name}"),
        None => format!("pci={}", device.address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Placement;
    use crate::emit::{Context, Emission, Target, emit};
    use pinwise_topology::Topology;

    #[track_caller]
    fn emit_for(placement: &str, tool: Tool) -> Emission {
        let mut topology = Topology::from_synthetic("package:2 [numa] core:2 pu:2").unwrap();
        let device = |address: &str, class, name: &str| Device {
            cpus: Some(topology.numa_nodes[0].cpus.clone()),
            numa_node: Some(0),
            names: vec![name.to_owned()],
            ..Device::new(address, class, Some(0x10de), None).unwrap()
        };
        topology.devices = vec![
            device("0000:41:00.0", 0x0302, "gpu0"),
            device("0000:42:00.0", 0x0200, "eth0"),
            device("0000:43:00.0", 0x0108, "nvme0n1"),
        ]
        .into();
        let placement: Placement = placement.parse().unwrap();
        let place = placement.realise(&topology).unwrap();
        emit(&Target::new(tool), &place, &topology, &Context::default())
    }

    #[track_caller]
    fn check(placement: &str, tool: Tool, expected: Option<&str>) {
        let notes = emit_for(placement, tool).notes;
        let found = notes.iter().any(|note| Some(note.as_str()) == expected);
        let is_about_device = |note: &String| note.contains("near the") || note.contains("node of");
        match expected {
            Some(_) => assert!(found, "{notes:?}"),
            None => assert!(!notes.iter().any(is_about_device), "{notes:?}"),
        }
    }

    #[test]
    fn device_syntax_is_used_by_tools_that_have_it() {
        check(
            "near:eth0/mem=bind",
            Tool::Numactl,
            Some(
                "numactl --cpunodebind=netdev:eth0 --membind=netdev:eth0 COMMAND finds the node of \
                 eth0 on any machine.",
            ),
        );
        check(
            "near:nvme0n1",
            Tool::Numactl,
            Some(
                "numactl --cpunodebind=file:/dev/nvme0n1 COMMAND finds the node of nvme0n1 on any \
                 machine.",
            ),
        );
        check(
            "near:gpu0",
            Tool::HwlocBind,
            Some("hwloc-bind pci=0000:41:00.0 -- COMMAND finds the CPUs near gpu0 on any machine."),
        );
        check(
            "one-per-core/near:gpu0",
            Tool::Slurm,
            Some(
                "With one task per GPU, --gpus-per-task=1 --gpu-bind=closest has Slurm choose the \
                 GPU near the CPUs of each.",
            ),
        );
    }

    #[test]
    fn kubelet_cannot_place_far_from_a_device() {
        let list_unsupported =
            |placement| emit_for(placement, Tool::Kubernetes).unsupported.join(" ");
        let words = "cannot keep a pod far from a device";
        assert!(list_unsupported("far:gpu0").contains(words));
        assert!(!list_unsupported("near:gpu0").contains(words));
    }

    #[test]
    fn part_of_the_near_cpus_has_no_device_syntax() {
        check("near:gpu0", Tool::Numactl, None);
        check("near:eth0", Tool::Slurm, None);
        check("near:eth0*1", Tool::Numactl, None);
        check("one-per-core/near:eth0", Tool::HwlocBind, None);
        check("one-core", Tool::Kubernetes, None);
    }
}
