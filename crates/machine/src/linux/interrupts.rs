//! The CPUs of devices' interrupts and of network queues, from `/proc` and `/sys`.

use std::path::Path;

use super::capture::{list_names, read_text};
use pinwise_topology::devices::PCI_DIR;
use pinwise_topology::interrupts::{Interrupt, Queue, totals};
use pinwise_topology::{CpuSet, Topology};

/// Adds the interrupts and queues of this machine's devices. Servers have thousands of them, whose
/// files take long to read: call this only if they are needed.
pub fn read_interrupts(topology: &mut Topology) {
    read_below(Path::new("/"), topology);
}

fn read_below(root: &Path, topology: &mut Topology) {
    let text = |path: String| read_text(&root.join(path));
    let counts = text("proc/interrupts".to_owned()).map(|text| totals(&text));
    let mut devices = topology.devices.to_vec();
    for device in &mut devices {
        let dir = format!("{PCI_DIR}/{}", device.address);
        let mut numbers: Vec<u32> = list_names(&root.join(&dir).join("msi_irqs"))
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect();
        if numbers.is_empty() {
            // Devices without MSI share a line; 0 means none.
            let line = text(format!("{dir}/irq")).and_then(|text| text.parse::<u32>().ok());
            numbers.extend(line.filter(|&number| number != 0));
        }
        numbers.sort_unstable();
        let found = numbers.into_iter().filter_map(|number| {
            let dir = format!("proc/irq/{number}");
            let list = text(format!("{dir}/effective_affinity_list"))
                .filter(|list| !list.is_empty())
                .or_else(|| text(format!("{dir}/smp_affinity_list")))?;
            let settable = root.join(&dir).join("smp_affinity_list");
            Some(Interrupt {
                number,
                // Root may open the file anyway; writing then fails.
                is_managed: std::fs::metadata(settable)
                    .is_ok_and(|file| file.permissions().readonly()),
                cpus: CpuSet::parse_list(&list).ok()?,
                count: counts
                    .as_ref()
                    .map(|all| all.get(&number).copied().unwrap_or(0)),
            })
        });
        device.interrupts = found.collect();
        let interfaces = device.names.iter().flat_map(|interface| {
            let folder = root.join(format!("sys/class/net/{interface}/queues"));
            let queues = list_names(&folder).into_iter();
            queues.filter_map(|name| Queue::from_name(interface, &name))
        });
        let queues = interfaces.filter_map(|queue| {
            // A card with a single transmit queue has an empty file.
            let mask = text(queue.mask_file())?;
            Some((queue, CpuSet::parse_mask(&mask).ok()?))
        });
        device.queues = queues.collect();
    }
    topology.devices.update(|all| *all = devices);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::write_test_file;
    use pinwise_topology::Device;

    #[test]
    fn messages_and_lines_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| write_test_file(&folder.path().join(path), text);
        put("sys/bus/pci/devices/0000:01:00.0/msi_irqs/31", "msix\n");
        put("sys/bus/pci/devices/0000:01:00.0/msi_irqs/30", "msix\n");
        put("sys/bus/pci/devices/0000:02:00.0/irq", "16\n");
        put("sys/bus/pci/devices/0000:03:00.0/irq", "0\n");
        put("proc/irq/30/effective_affinity_list", "2\n");
        put("proc/irq/30/smp_affinity_list", "0-3\n");
        put("proc/irq/31/effective_affinity_list", "\n");
        put("proc/irq/31/smp_affinity_list", "1\n");
        put("proc/irq/16/smp_affinity_list", "0-1\n");
        put("proc/interrupts", "  CPU0 CPU1\n 30: 1 2 x\n 16: 0 0 y\n");
        let managed = folder.path().join("proc/irq/31/smp_affinity_list");
        let mut mode = std::fs::metadata(&managed).unwrap().permissions();
        mode.set_readonly(true);
        std::fs::set_permissions(&managed, mode).unwrap();
        put(
            "sys/class/net/eth0/queues/rx-0/rps_cpus",
            "00000000,00000003\n",
        );
        put("sys/class/net/eth0/queues/rx-1/rps_cpus", "0\n");
        put("sys/class/net/eth0/queues/tx-0/xps_cpus", "\n");
        let mut topology = Topology::default();
        for address in ["0000:01:00.0", "0000:02:00.0", "0000:03:00.0"] {
            let device = Device::new(address, 0x0200, None, None).unwrap();
            topology.devices.update(|all| all.push(device));
        }
        let names = vec!["eth0".to_owned(), "mlx5_0".to_owned()];
        topology.devices.update(|all| all[1].names = names);
        read_below(folder.path(), &mut topology);
        let read = |at: usize| -> Vec<String> {
            let interrupts = topology.devices[at].interrupts.iter();
            let words = interrupts.map(|i| {
                let managed = if i.is_managed { " managed" } else { "" };
                format!("{} {} {:?}{managed}", i.number, i.cpus, i.count)
            });
            words.collect()
        };
        assert_eq!(read(0), ["30 2 Some(3)", "31 1 Some(0) managed"]);
        assert_eq!(read(1), ["16 0-1 Some(0)"]);
        assert_eq!(read(2), [""; 0]);
        let queues = topology.devices[1].queues.iter();
        let queues: Vec<String> = queues
            .map(|(queue, cpus)| format!("{queue}: {cpus}"))
            .collect();
        assert_eq!(queues, ["eth0 rx-0: 0-1", "eth0 rx-1: "]);
    }
}
