//! The machine as a record.

use serde::{Deserialize, Serialize};

use super::device::DeviceRecord;
use super::device_paths::{DevicePathRecord, list_devices};
use super::machine::MachineRecord;
use super::measured::{Contradiction, Measured};
use super::named::open_enum;
use crate::Header;
use pinwise_topology::{
    Cache, CacheType, Counts, CpuFacts, CpuSet, Facts, KindFacts, MemoryAttributes, NodeFacts,
    Quota, Restriction, Topology, Warning,
};

/// How the CPUs are wired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.topology/1")]
pub struct TopologyRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// Names and versions.
    pub machine: MachineRecord,
    /// Units that this process may use.
    pub counts: CountsRecord,
    /// CPUs that are switched on, as a list.
    pub online: String,
    /// CPUs that this process may use, as a list.
    pub allowed: String,
    /// Restrictions of this process to some of the CPUs.
    pub restrictions: Vec<RestrictionRecord>,
    /// CPUs that the scheduler leaves alone (`isolcpus`, isolated cpuset partitions), as a
    /// list; `null` for none.
    pub isolated: Option<String>,
    /// CPUs without a timer tick while they run one thread, as a list; `null` for none.
    pub nohz_full: Option<String>,
    /// Limit on CPU time.
    pub quota: Option<QuotaRecord>,
    /// All present CPUs.
    pub cpus: Vec<CpuRecord>,
    /// All caches.
    pub caches: Vec<CacheRecord>,
    /// NUMA nodes.
    pub numa_nodes: Vec<NodeRecord>,
    /// Kinds of CPU, slowest first; empty if all are alike.
    pub kinds: Vec<KindRecord>,
    /// Lists of CPUs that the firmware calls equally fast, fastest first (favoured cores are the
    /// first); empty if it prefers none.
    pub ranks: Vec<String>,
    /// Devices on the PCI bus, by address.
    pub devices: Vec<DeviceRecord>,
    /// The nearest path from each GPU and other accelerator to the others and to the network cards.
    pub device_paths: Vec<DevicePathRecord>,
    /// Equal for machines of the same shape.
    pub shape_hash: String,
    /// Results of the probes; `null` unless measured.
    pub measured: Option<Box<Measured>>,
    /// Contradictions between measurement and the system's report.
    pub contradictions: Vec<Contradiction>,
    /// Warnings about the system's report.
    pub warnings: Vec<String>,
}

/// Units per level that this process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CountsRecord {
    /// Logical CPUs.
    pub cpus: usize,
    /// Physical cores.
    pub cores: usize,
    /// Last-level-cache domains; 0 if caches are not reported.
    pub llcs: usize,
    /// NUMA nodes with memory.
    pub numa_nodes: usize,
    /// Packages.
    pub packages: usize,
}

impl From<Counts> for CountsRecord {
    fn from(counts: Counts) -> Self {
        Self {
            cpus: counts.cpus,
            cores: counts.cores,
            llcs: counts.llcs,
            numa_nodes: counts.numa_nodes,
            packages: counts.packages,
        }
    }
}

/// A logical CPU; unit numbers are `null` if it is offline or unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuRecord {
    /// The operating system's number.
    pub cpu: usize,
    /// Core, counted from 0 in the order of their lowest CPU.
    pub core: Option<usize>,
    /// Last-level-cache domain, likewise.
    pub llc: Option<usize>,
    /// NUMA node, the operating system's number.
    pub numa_node: Option<usize>,
    /// Package, counted like cores.
    pub package: Option<usize>,
    /// Index into `kinds`; `null` if all CPUs are alike.
    pub kind: Option<usize>,
    /// Position in its core: 0 for the first hyper-thread; `null` if the CPU is offline, since its
    /// core is then unknown.
    pub smt_rank: Option<usize>,
    /// Switched on?
    pub online: bool,
    /// May this process use it?
    pub allowed: bool,
}

open_enum! {
    /// What a cache holds.
    CacheKind from CacheType {
        /// Data only.
        Data = "data",
        /// Instructions only.
        Instruction = "instruction",
        /// Instructions and data.
        Unified = "unified",
    }
}

/// A cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheRecord {
    /// 1 for L1 and so on.
    pub level: u8,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: CacheKind,
    /// Capacity; `null` if unknown.
    pub size_bytes: Option<u64>,
    /// CPUs that share it, as a list.
    pub cpus: String,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeRecord {
    /// The operating system's number.
    pub node: usize,
    /// Its CPUs, as a list; empty for memory-only nodes.
    pub cpus: String,
    /// Memory; `null` if unknown.
    pub memory_bytes: Option<u64>,
    /// May this process allocate there?
    pub allowed: bool,
    /// The technology of its memory, in hwloc's words (`DRAM`, `HBM`); `null` if unknown.
    pub memory_kind: Option<String>,
    /// The CPUs nearest to a memory-only node, as a list; `null` if unknown.
    pub near_cpus: Option<String>,
    /// Bandwidth from the nearest CPUs as the firmware reports it, MB/s; `null` if unknown.
    pub bandwidth_mb_per_s: Option<u64>,
    /// Latency from there, likewise, ns.
    pub latency_ns: Option<u64>,
}

impl NodeRecord {
    fn to_facts(&self) -> NodeFacts {
        let list = |text: &String| CpuSet::parse_list(text).unwrap_or_default();
        NodeFacts {
            node: self.node,
            cpus: list(&self.cpus),
            memory_bytes: self.memory_bytes,
            attributes: MemoryAttributes {
                kind: self.memory_kind.clone(),
                near: self.near_cpus.as_ref().map(list).unwrap_or_default(),
                bandwidth_mb_per_s: self.bandwidth_mb_per_s,
                latency_ns: self.latency_ns,
            },
        }
    }
}

/// A kind of CPU on a hybrid machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KindRecord {
    /// `E`, `M` or `P`.
    pub name: String,
    /// Its CPUs, as a list.
    pub cpus: String,
}

/// A limit on CPU time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QuotaRecord {
    /// CPUs' worth of time.
    pub cpus: f64,
    /// The file that sets it.
    pub source: String,
}

/// A restriction to some of the CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RestrictionRecord {
    /// `affinity mask` or the cpuset.
    pub by: String,
    /// CPUs that it leaves, as a list.
    pub leaves: String,
    /// Is it an affinity mask, which a process may leave, rather than a cpuset?
    pub is_mask: bool,
}

impl TopologyRecord {
    /// The record of a machine as its system reports it.
    #[must_use]
    pub fn new(topology: &Topology, warnings: &[Warning]) -> Self {
        let (devices, device_paths) = list_devices(topology);
        Self {
            header: Header::default(),
            machine: MachineRecord::new(&topology.identity),
            counts: topology.counts().into(),
            online: topology.online.to_string(),
            allowed: topology.allowed.to_string(),
            restrictions: list_restrictions(topology),
            isolated: list_unless_empty(&topology.isolated),
            nohz_full: list_unless_empty(&topology.nohz_full),
            quota: topology.quota.as_ref().map(|quota| QuotaRecord {
                cpus: quota.cpus,
                source: quota.source.clone(),
            }),
            cpus: list_cpus(topology),
            caches: list_caches(topology),
            numa_nodes: list_numa_nodes(topology),
            kinds: topology
                .kinds
                .iter()
                .map(|kind| KindRecord {
                    name: kind.name.clone(),
                    cpus: kind.cpus.to_string(),
                })
                .collect(),
            ranks: topology.ranks.iter().map(CpuSet::to_string).collect(),
            devices,
            device_paths,
            shape_hash: format!("{:016x}", topology.shape_hash()),
            measured: None,
            contradictions: Vec::new(),
            warnings: [warnings, topology.devices.warnings()].concat(),
        }
    }
}

impl TopologyRecord {
    fn cpu_facts(&self, cpu: &CpuRecord) -> CpuFacts {
        let sharing = |unit: fn(&CpuRecord) -> Option<usize>| {
            let own = unit(cpu)?;
            let members = self.cpus.iter().filter(|other| unit(other) == Some(own));
            Some(members.map(|other| other.cpu).collect::<CpuSet>())
        };
        CpuFacts {
            online: cpu.online,
            core: sharing(|cpu| cpu.core),
            package: sharing(|cpu| cpu.package),
            core_id: None,
            package_id: None,
        }
    }
}

fn list_unless_empty(cpus: &CpuSet) -> Option<String> {
    (!cpus.is_empty()).then(|| cpus.to_string())
}

impl TopologyRecord {
    /// Replaces the devices and their paths by those of this machine.
    pub fn set_devices(&mut self, topology: &Topology) {
        (self.devices, self.device_paths) = list_devices(topology);
    }

    /// Rebuilds the machine. What the record does not hold (core ids of the
    /// system, speeds of kinds) is not needed for it.
    #[must_use]
    pub fn to_topology(&self) -> Topology {
        let list = |text: &String| CpuSet::parse_list(text).unwrap_or_default();
        let leaves = list(&self.allowed);
        let mut restrictions: Vec<Restriction> = self
            .restrictions
            .iter()
            .map(|r| Restriction {
                by: r.by.clone(),
                leaves: list(&r.leaves),
                is_mask: r.is_mask,
            })
            .collect();
        if restrictions.is_empty() && self.allowed != self.online {
            restrictions.push(Restriction::limit("record", leaves));
        }
        let kind_facts = |(speed, kind): (usize, &KindRecord)| KindFacts {
            cpus: list(&kind.cpus),
            speed: speed as u64,
        };
        let rank_facts = |(speed, cpus): (usize, &String)| KindFacts {
            cpus: list(cpus),
            speed: speed as u64,
        };
        let facts = Facts {
            identity: self.machine.to_identity(),
            cpus: self
                .cpus
                .iter()
                .map(|cpu| (cpu.cpu, self.cpu_facts(cpu)))
                .collect(),
            caches: self
                .caches
                .iter()
                .filter_map(CacheRecord::to_cache)
                .collect(),
            nodes: self.numa_nodes.iter().map(NodeRecord::to_facts).collect(),
            kinds: self.kinds.iter().enumerate().map(kind_facts).collect(),
            ranks: self
                .ranks
                .iter()
                .rev()
                .enumerate()
                .map(rank_facts)
                .collect(),
            restrictions,
            isolated: self.isolated.as_ref().map(list).unwrap_or_default(),
            nohz_full: self.nohz_full.as_ref().map(list).unwrap_or_default(),
            allowed_nodes: Some(
                self.numa_nodes
                    .iter()
                    .filter(|node| node.allowed)
                    .map(|node| node.node)
                    .collect(),
            ),
            quota: self.quota.as_ref().map(|quota| Quota {
                cpus: quota.cpus,
                source: quota.source.clone(),
            }),
            devices: Vec::new(),
        };
        let mut topology = Topology::from_facts(facts).0;
        // Devices are kept as found; only their kinds may be from a newer version.
        topology.devices = self
            .devices
            .iter()
            .filter_map(DeviceRecord::to_device)
            .collect();
        let links = self.device_paths.iter();
        topology.links = links.filter_map(DevicePathRecord::to_link).collect();
        topology
    }

    /// The name of the machine, as stores list it.
    #[must_use]
    pub fn host_name(&self) -> String {
        let spec = self
            .measured
            .as_ref()
            .map(|m| m.survey.machine_spec.as_str());
        match spec {
            Some(spec) if spec != "local" => spec.to_owned(),
            _ => {
                let name = self.machine.hostname.as_deref();
                name.unwrap_or("unknown").to_owned()
            }
        }
    }

    /// The result of the measurement, in a sentence; empty if there was none.
    #[must_use]
    pub fn summary(&self) -> String {
        let is_virtual = self.machine.hypervisor.is_some();
        let measured = self.measured.as_ref();
        measured.map_or_else(String::new, |measured| measured.answer_sentence(is_virtual))
    }
}

impl CacheRecord {
    fn to_cache(&self) -> Option<Cache> {
        Some(Cache {
            level: self.level,
            kind: match self.kind {
                CacheKind::Data => CacheType::Data,
                CacheKind::Instruction => CacheType::Instruction,
                CacheKind::Unified => CacheType::Unified,
                CacheKind::Other(_) => return None,
            },
            size_bytes: self.size_bytes,
            cpus: CpuSet::parse_list(&self.cpus).ok()?,
        })
    }
}

fn list_restrictions(topology: &Topology) -> Vec<RestrictionRecord> {
    let takes_away = |leaves: &CpuSet| !topology.online.is_subset(leaves);
    topology
        .restrictions
        .iter()
        .filter(|restriction| takes_away(&restriction.leaves))
        .map(|restriction| RestrictionRecord {
            by: restriction.by.clone(),
            leaves: restriction.leaves.to_string(),
            is_mask: restriction.is_mask,
        })
        .collect()
}

fn list_cpus(topology: &Topology) -> Vec<CpuRecord> {
    let node_number = |index: usize| topology.numa_nodes[index].node;
    topology
        .cpus
        .iter()
        .map(|cpu| CpuRecord {
            cpu: cpu.id,
            core: cpu.core,
            llc: cpu.llc,
            numa_node: cpu.numa_node.map(node_number),
            package: cpu.package,
            kind: cpu.kind,
            smt_rank: cpu.core.map(|_| cpu.smt_rank),
            online: cpu.online,
            allowed: cpu.allowed,
        })
        .collect()
}

fn list_caches(topology: &Topology) -> Vec<CacheRecord> {
    topology
        .caches
        .iter()
        .map(|cache| CacheRecord {
            level: cache.level,
            kind: cache.kind.into(),
            size_bytes: cache.size_bytes,
            cpus: cache.cpus.to_string(),
        })
        .collect()
}

fn list_numa_nodes(topology: &Topology) -> Vec<NodeRecord> {
    topology
        .numa_nodes
        .iter()
        .map(|node| NodeRecord {
            node: node.node,
            cpus: node.cpus.to_string(),
            memory_bytes: node.memory_bytes,
            allowed: node.allowed,
            memory_kind: node.attributes.kind.clone(),
            near_cpus: list_unless_empty(&node.attributes.near),
            bandwidth_mb_per_s: node.attributes.bandwidth_mb_per_s,
            latency_ns: node.attributes.latency_ns,
        })
        .collect()
}
