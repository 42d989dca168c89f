//! Devices of a machine as records.

use serde::{Deserialize, Serialize};

use super::named::open_enum;
use pinwise_topology::interrupts::{Interrupt, Queue};
use pinwise_topology::{CpuSet, Device, DeviceKind};

open_enum! {
    /// What a device is for.
    DeviceClass from DeviceKind {
        /// A graphics processor that computes.
        Gpu = "gpu",
        /// A display controller that is not a GPU.
        Display = "display",
        /// A network card.
        Network = "network",
        /// A disk or its controller.
        Storage = "storage",
        /// Another processor for special work.
        Accelerator = "accelerator",
    }
}

/// A device on the PCI bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeviceRecord {
    /// PCI address.
    pub address: String,
    /// What it is for.
    #[serde(rename = "type")]
    pub kind: DeviceClass,
    /// PCI base class and subclass in hexadecimal digits.
    pub class: String,
    /// PCI ids of vendor and device, `10de:20b0`; `null` if unknown.
    pub ids: Option<String>,
    /// Its product name; `null` if unknown.
    pub model: Option<String>,
    /// Names of users and drivers, the one for placements first; may be empty.
    pub names: Vec<String>,
    /// NUMA node as the system reports it; `null` if it does not.
    pub numa_node: Option<usize>,
    /// Nearest CPUs, as a list; `null` if the system does not say.
    pub cpus: Option<String>,
    /// Root complex; `null` if unknown.
    pub root: Option<String>,
    /// Bridges and switches above it, outermost first, by PCI address.
    pub bridges: Vec<String>,
    /// Its interrupts by number; empty if they were not read.
    pub interrupts: Vec<InterruptRecord>,
    /// CPUs that handle those of its interrupts that occurred, as a list; `null` if none is known.
    pub interrupted_cpus: Option<String>,
    /// Queues of a network card whose CPUs can be set; empty if they were not read.
    pub queues: Vec<QueueRecord>,
    /// CPUs that process packets of its queues in place of those with the interrupts (RPS), as a
    /// list; `null` if none are set, or unknown.
    pub rps_cpus: Option<String>,
    /// CPUs that have queues of their own to send on (XPS), as a list; `null` if none have, or
    /// unknown.
    pub xps_cpus: Option<String>,
    /// The paths to other GPUs, accelerators and network cards, nearest first, in the classes of
    /// `nvidia-smi topo -m`: `NV12 gpu1-3, PXB mlx5_0`; `null` for devices of other kinds.
    pub ways: Option<String>,
    /// A warning about its location or its interrupts, as a sentence; `null` if there is none.
    pub note: Option<String>,
}

/// An interrupt of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InterruptRecord {
    /// The system's number.
    pub irq: u32,
    /// CPUs that take it, as a list.
    pub cpus: String,
    /// How often it occurred since boot; `null` if unknown.
    pub count: Option<u64>,
    /// Does the kernel choose its CPUs and refuse changes (a managed interrupt)?
    pub managed: bool,
}

/// A queue of a network card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueRecord {
    /// The interface.
    pub interface: String,
    /// `rx-0` receives, `tx-0` sends.
    pub queue: String,
    /// CPUs, as a list. For a receive queue: those that process its packets (RPS); empty if the CPU
    /// with the interrupt does. For a send queue: those that send on it (XPS); empty if any may.
    pub cpus: String,
}

impl DeviceRecord {
    pub(super) fn new(device: &Device) -> Self {
        let ids = device.vendor.zip(device.device);
        let interrupted = device.interrupted();
        let list_unless_empty = |cpus: &CpuSet| (!cpus.is_empty()).then(|| cpus.to_string());
        let interrupts = device.interrupts.iter().map(|interrupt| InterruptRecord {
            irq: interrupt.number,
            cpus: interrupt.cpus.to_string(),
            count: interrupt.count,
            managed: interrupt.is_managed,
        });
        let queues = device.queues.iter().map(|(queue, cpus)| QueueRecord {
            interface: queue.interface.clone(),
            queue: queue.name(),
            cpus: cpus.to_string(),
        });
        Self {
            address: device.address.clone(),
            kind: device.kind.into(),
            class: format!("{:04x}", device.class),
            ids: ids.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}")),
            model: device.model.clone(),
            names: device.names.clone(),
            numa_node: device.numa_node,
            cpus: device.cpus.as_ref().map(ToString::to_string),
            root: device.root.clone(),
            bridges: device.bridges.clone(),
            interrupts: interrupts.collect(),
            queues: queues.collect(),
            rps_cpus: list_unless_empty(&device.queue_cpus(false)),
            xps_cpus: list_unless_empty(&device.queue_cpus(true)),
            interrupted_cpus: list_unless_empty(&interrupted),
            ways: None,
            note: device.is_interrupted_far().then(|| {
                format!("Its interrupts are taken by CPUs {interrupted}, none of which is near it.")
            }),
        }
    }

    pub(super) fn to_device(&self) -> Option<Device> {
        let hex = |digits: &str| u16::from_str_radix(digits, 16).ok();
        let ids = self.ids.as_deref().and_then(|ids| ids.split_once(':'));
        let vendor = ids.and_then(|(vendor, _)| hex(vendor));
        let id = ids.and_then(|(_, device)| hex(device));
        let mut device = Device::new(&self.address, hex(&self.class)?, vendor, id)?;
        device.model.clone_from(&self.model);
        device.names.clone_from(&self.names);
        device.numa_node = self.numa_node;
        let cpus = self.cpus.as_deref();
        device.cpus = cpus.and_then(|list| CpuSet::parse_list(list).ok());
        device.root.clone_from(&self.root);
        device.bridges.clone_from(&self.bridges);
        let interrupts = self.interrupts.iter().filter_map(|interrupt| {
            Some(Interrupt {
                number: interrupt.irq,
                cpus: CpuSet::parse_list(&interrupt.cpus).ok()?,
                count: interrupt.count,
                is_managed: interrupt.managed,
            })
        });
        device.interrupts = interrupts.collect();
        let queues = self.queues.iter().filter_map(|record| {
            let queue = Queue::from_name(&record.interface, &record.queue)?;
            let cpus = match record.cpus.as_str() {
                "" => CpuSet::new(),
                list => CpuSet::parse_list(list).ok()?,
            };
            Some((queue, cpus))
        });
        device.queues = queues.collect();
        Some(device)
    }
}
