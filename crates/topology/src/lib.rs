//! The machine as a value: which CPUs share a core, a last-level cache, a
//! NUMA node and a package, and which of them this process may use.
//!
//! ```text
//! machine ── package ── NUMA node ── last-level cache ── core ── CPU
//!                  (levels are sets of CPUs; they need not nest this way)
//! ```
//!
//! A [`Topology`] is built from [`Facts`], which come from one of three readers: `sysfs` (a
//! [`Capture`] of a Linux system), `xml` (hwloc 2) and `synthetic` (a description such as
//! `package:2 l3:2 core:4 pu:2`). This module opens no file and asks no operating system: a
//! captured machine and this one are read by the same code. The facts are not trusted:
//! contradictions become warnings, never a panic.
//!
//! ```
//! use pinwise_topology::{Level, Topology};
//!
//! let machine = Topology::from_synthetic("package:2 core:4 pu:2")?;
//! assert_eq!(machine.units(Level::Core).len(), 8);
//! assert!(machine.has_smt());
//! # Ok::<(), pinwise_topology::SyntheticError>(())
//! ```

mod build;
mod capture;
mod cgroup;
mod cpuset;
pub mod devices;
mod identity;
pub mod interrupts;
pub mod links;
mod memory;
mod online;
mod rewire;
mod synthetic;
mod sysfs;
mod tree;
mod units;
mod xml;

use std::io::{self, Read, Seek};

pub use build::{CpuFacts, Facts, KindFacts, NodeFacts};
pub use capture::{Capture, CaptureError};
pub use cgroup::{
    Mount, QuotaFiles, explain_unknown_quota, list_folders as list_cgroup_folders, mounts,
    wanted_files as wanted_cgroup_files,
};
pub use cpuset::{CpuSet, CpuSetError};
pub use devices::{Device, DeviceKind, Devices};
pub use memory::{MemoryAttributes, MemoryTier};
pub use online::online_cpus;
pub use synthetic::SyntheticError;
pub use tree::{Node, NodeKind, fnv1a};
pub use units::Files;
pub use xml::XmlError;

/// Isolated CPUs: from the kernel's command line, and from isolated cpuset partitions. `read`
/// returns the list in a file, whose path is relative to the root.
#[must_use]
pub fn read_isolated(read: impl FnMut(&'static str) -> Option<CpuSet>) -> CpuSet {
    let files = [
        "sys/devices/system/cpu/isolated",
        "sys/fs/cgroup/cpuset.cpus.isolated",
    ];
    CpuSet::union_of(files.into_iter().filter_map(read))
}

/// A level of sharing, outermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A socket.
    Package,
    /// A NUMA node that has CPUs.
    Numa,
    /// The CPUs that share a last-level cache.
    Llc,
    /// A physical core.
    Core,
    /// A logical CPU.
    Cpu,
}

impl Level {
    /// All levels, outermost first.
    pub const ALL: [Self; 5] = [Self::Package, Self::Numa, Self::Llc, Self::Core, Self::Cpu];

    /// The word for one unit of this level.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Package => "package",
            Self::Numa => "NUMA node",
            Self::Llc => "LLC",
            Self::Core => "core",
            Self::Cpu => "CPU",
        }
    }
}

/// A machine's name and hardware. Unreported values are `None`, never empty or invented.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Network name of the host.
    pub hostname: Option<String>,
    /// Marketing name of the processor.
    pub cpu_model: Option<String>,
    /// Processor vendor as CPUID or `/proc/cpuinfo` spells it.
    pub vendor: Option<String>,
    /// Instruction set architecture, as `uname -m` prints it.
    pub arch: Option<String>,
    /// Kernel release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// Hypervisor the system runs under, `None` on bare metal.
    pub hypervisor: Option<String>,
    /// CPU family, decimal.
    pub family: Option<u32>,
    /// CPU model number within the family.
    pub model: Option<u32>,
    /// Stepping of that model.
    pub stepping: Option<u32>,
    /// Microcode revision as the kernel prints it.
    pub microcode: Option<String>,
}

/// One logical CPU and the units it belongs to, as indices into the lists of
/// [`Topology`]. Offline CPUs belong to no unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu {
    /// The operating system's number.
    pub id: usize,
    /// Index into [`Topology::cores`].
    pub core: Option<usize>,
    /// Index into [`Topology::llcs`]; `None` if no cache is reported.
    pub llc: Option<usize>,
    /// Index into [`Topology::numa_nodes`].
    pub numa_node: Option<usize>,
    /// Index into [`Topology::packages`].
    pub package: Option<usize>,
    /// Index into [`Topology::kinds`]; `None` if all CPUs are alike.
    pub kind: Option<usize>,
    /// Position among the CPUs of its core: 0 for the first hyper-thread.
    pub smt_rank: usize,
    /// Is the CPU online?
    pub online: bool,
    /// May this process run on it (affinity and cpuset and online)?
    pub allowed: bool,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CacheType {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Instructions and data.
    Unified,
}

/// One cache and the CPUs that share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// 1 for L1, and so on.
    pub level: u8,
    /// What it holds.
    pub kind: CacheType,
    /// Capacity in bytes; `None` if unknown.
    pub size_bytes: Option<u64>,
    /// The CPUs that share it.
    pub cpus: CpuSet,
}

/// A NUMA node. Memory-only nodes have no CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumaNode {
    /// The operating system's number.
    pub node: usize,
    /// CPUs that are local to it.
    pub cpus: CpuSet,
    /// Memory in bytes; `None` if unknown.
    pub memory_bytes: Option<u64>,
    /// May this process allocate there?
    pub allowed: bool,
    /// Its memory's properties. [`Topology::from_files`] does not read them.
    pub attributes: MemoryAttributes,
}

/// A kind of CPU on a hybrid machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuKind {
    /// `P` for the fastest kind, `E` for the slowest, `M` between them.
    pub name: String,
    /// Its CPUs.
    pub cpus: CpuSet,
}

/// A limit on CPU time, from a cgroup's quota.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// CPU time per wall time: 2.5 means 250 ms every 100 ms.
    pub cpus: f64,
    /// The file with the limit.
    pub source: String,
}

/// Something that takes CPUs away from this process, and what it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restriction {
    /// `affinity mask` or `cpuset PATH`.
    pub by: String,
    /// CPUs that it leaves.
    pub leaves: CpuSet,
    /// Is it a mask, which a process may leave, instead of a cpuset, which binds it?
    pub is_mask: bool,
}

impl Restriction {
    /// A mask, which a process may leave.
    #[must_use]
    pub fn mask(by: impl Into<String>, leaves: CpuSet) -> Self {
        Self {
            by: by.into(),
            leaves,
            is_mask: true,
        }
    }

    /// A limit, such as a cpuset, which binds a process.
    #[must_use]
    pub fn limit(by: impl Into<String>, leaves: CpuSet) -> Self {
        Self {
            is_mask: false,
            ..Self::mask(by, leaves)
        }
    }
}

/// A machine: units at every level as sets of online CPUs, in the order of
/// their lowest CPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    /// Names and versions.
    pub identity: Identity,
    /// All present CPUs, online or not, in ascending order.
    pub cpus: Vec<Cpu>,
    /// Physical cores.
    pub cores: Vec<CpuSet>,
    /// Last-level-cache domains.
    pub llcs: Vec<CpuSet>,
    /// Packages.
    pub packages: Vec<CpuSet>,
    /// NUMA nodes, memory-only ones included.
    pub numa_nodes: Vec<NumaNode>,
    /// All caches of all levels.
    pub caches: Vec<Cache>,
    /// Kinds of CPU, slowest first; empty if all are alike.
    pub kinds: Vec<CpuKind>,
    /// CPUs that the firmware calls equally fast, fastest first (favoured cores are the first);
    /// empty without a preference. [`Topology::from_files`] leaves them to
    /// [`Topology::read_ranks`].
    pub ranks: Vec<CpuSet>,
    /// Online CPUs.
    pub online: CpuSet,
    /// CPUs that this process may use.
    pub allowed: CpuSet,
    /// Limit on CPU time.
    pub quota: Option<Quota>,
    /// Why `allowed` is smaller than `online`.
    pub restrictions: Vec<Restriction>,
    /// CPUs that the scheduler avoids (`isolcpus`, and isolated cpuset partitions): a thread runs
    /// there only on request.
    pub isolated: CpuSet,
    /// CPUs without a timer tick while they run one thread. [`Topology::from_files`] does
    /// not read them.
    pub nohz_full: CpuSet,
    /// Devices on the PCI bus by address; empty if not reported.
    pub devices: Devices,
    /// Links between devices other than the bus; empty if not read.
    pub links: Vec<links::Link>,
}

/// An impossible or unreadable fact, as a full sentence.
pub type Warning = String;

/// How many units this process may use at each level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Logical CPUs.
    pub cpus: usize,
    /// Physical cores.
    pub cores: usize,
    /// Last-level-cache domains; 0 if caches are not reported.
    pub llcs: usize,
    /// NUMA nodes with memory that may be used.
    pub numa_nodes: usize,
    /// Packages with a CPU or memory that may be used.
    pub packages: usize,
}

impl Topology {
    /// Builds a machine from facts; contradictions are resolved and reported.
    #[must_use]
    pub fn from_facts(facts: Facts) -> (Self, Vec<Warning>) {
        build::build(facts)
    }

    /// Reads a captured Linux system.
    #[must_use]
    pub fn from_capture(capture: &Capture) -> (Self, Vec<Warning>) {
        let (facts, mut warnings) = sysfs::read_facts(capture);
        let (mut topology, more) = Self::from_facts(facts);
        warnings.extend(more);
        warnings.extend(topology.read_links(capture));
        (topology, limit_warnings(warnings))
    }

    /// Reads the units of a Linux system and the part that this process may use, from as few files
    /// as possible: without names, inner caches that no other core shares, and sizes of memory.
    #[must_use]
    pub fn from_files(files: &mut impl Files) -> (Self, Vec<Warning>) {
        let (facts, mut warnings) = units::read_facts(files);
        let (topology, more) = Self::from_facts(facts);
        warnings.extend(more);
        (topology, limit_warnings(warnings))
    }

    /// Reads the firmware's ranking of CPUs, from one or several files per CPU:
    /// [`Topology::from_files`] leaves that out.
    pub fn read_ranks(&mut self, files: &mut impl Files) {
        self.ranks = build::sort_ranks(units::read_ranks(files, &self.online), &self.online);
    }

    /// Parses a synthetic description such as `package:2 l3:2 core:4 pu:2`.
    ///
    /// # Errors
    /// [`SyntheticError`] names the invalid word.
    pub fn from_synthetic(description: &str) -> Result<Self, SyntheticError> {
        synthetic::parse(description).map(|facts| Self::from_facts(facts).0)
    }

    /// Reads an hwloc version 2 XML export.
    ///
    /// # Errors
    /// [`XmlError`] if it is not XML, not hwloc's, or has no CPU.
    pub fn from_hwloc_xml(text: &str) -> Result<(Self, Vec<Warning>), XmlError> {
        let (facts, mut warnings) = xml::parse_facts(text)?;
        let (topology, more) = Self::from_facts(facts);
        warnings.extend(more);
        Ok((topology, limit_warnings(warnings)))
    }

    /// The CPU with this number.
    #[must_use]
    pub fn cpu(&self, id: usize) -> Option<&Cpu> {
        self.cpus
            .binary_search_by_key(&id, |cpu| cpu.id)
            .ok()
            .map(|index| &self.cpus[index])
    }

    /// The device with this name or PCI address ([`Device::is_called`]).
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.is_called(name))
    }

    /// Names the models of unnamed devices that `pci.ids` lists (<https://pci-ids.ucw.cz>).
    ///
    /// # Errors
    /// If `ids` cannot be read; some devices may have been named already.
    pub fn name_models<R: Read + Seek>(&mut self, ids: R) -> io::Result<()> {
        let mut result = Ok(());
        self.devices
            .update(|devices| result = devices::name_models(devices, ids));
        result
    }

    /// The units of a level as sets of online CPUs, by lowest CPU.
    #[must_use]
    pub fn units(&self, level: Level) -> Vec<CpuSet> {
        match level {
            Level::Package => self.packages.clone(),
            Level::Numa => self.numa_nodes.iter().map(|n| n.cpus.clone()).collect(),
            Level::Llc => self.llcs.clone(),
            Level::Core => self.cores.clone(),
            Level::Cpu => self.online.iter().map(CpuSet::single).collect(),
        }
    }

    /// The units of a level, each limited to the CPUs that this process may use; units without any
    /// are dropped.
    #[must_use]
    pub fn allowed_units(&self, level: Level) -> Vec<CpuSet> {
        let mut units = self.units(level);
        for unit in &mut units {
            *unit = unit.intersection(&self.allowed);
        }
        units.retain(|unit| !unit.is_empty());
        units
    }

    /// The online CPUs that this process can get on request: also those outside its own mask, which
    /// is a default (`isolcpus`, `CPUAffinity=` and `taskset` set one), but none outside its
    /// cpuset.
    #[must_use]
    pub fn reachable(&self) -> CpuSet {
        let limits = self.restrictions.iter().filter(|r| !r.is_mask);
        limits.fold(self.online.clone(), |cpus, r| cpus.intersection(&r.leaves))
    }

    /// Units that this process may use, per level.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            cpus: self.allowed.len(),
            cores: self.allowed_units(Level::Core).len(),
            llcs: self.allowed_units(Level::Llc).len(),
            numa_nodes: self.usable_memory_nodes().len(),
            packages: self.usable_packages(),
        }
    }

    /// Packages whose CPUs or memory this process may use.
    fn usable_packages(&self) -> usize {
        let nodes = self.usable_memory_nodes();
        self.packages
            .iter()
            .filter(|package| {
                package.intersects(&self.allowed)
                    || nodes.iter().any(|n| n.cpus.intersects(package))
            })
            .count()
    }

    /// Does any core have more than one CPU that this process may use?
    #[must_use]
    pub fn has_smt(&self) -> bool {
        self.allowed_units(Level::Core).iter().any(|c| c.len() > 1)
    }

    /// Cores of which this process may use only some CPUs.
    #[must_use]
    pub fn split_cores(&self) -> usize {
        let cores = self.cores.iter();
        let split =
            |core: &&CpuSet| core.intersects(&self.allowed) && !core.is_subset(&self.allowed);
        cores.filter(split).count()
    }

    /// NUMA nodes this process may allocate from. Nodes without memory do not
    /// count, unless no node's memory is reported at all.
    #[must_use]
    pub fn usable_memory_nodes(&self) -> Vec<&NumaNode> {
        let is_reported = self.numa_nodes.iter().any(|n| n.memory_bytes.is_some());
        self.numa_nodes
            .iter()
            .filter(|n| {
                n.allowed && (!is_reported || n.memory_bytes.is_some_and(|bytes| bytes > 0))
            })
            .collect()
    }

    /// The machine as a typed tree, outermost level first.
    #[must_use]
    pub fn tree(&self) -> Node {
        tree::build_tree(self, &self.online)
    }

    /// The same tree with only the CPUs that this process may use.
    #[must_use]
    pub fn allowed_tree(&self) -> Node {
        tree::build_tree(self, &self.allowed)
    }

    /// A number that is the same for machines of the same shape, whatever their CPU numbers (sizes
    /// of caches and memory are left out).
    #[must_use]
    pub fn shape_hash(&self) -> u64 {
        self.tree().hash()
    }
}

/// Limits the warnings: a damaged report of a large machine may be inconsistent at every CPU.
const MAX_WARNINGS: usize = 40;

fn limit_warnings(mut warnings: Vec<Warning>) -> Vec<Warning> {
    if warnings.len() > MAX_WARNINGS {
        let left_out = warnings.len() - MAX_WARNINGS + 1;
        warnings.truncate(MAX_WARNINGS - 1);
        warnings.push(format!("{left_out} more inconsistencies in this report."));
    }
    warnings
}

#[cfg(test)]
mod tests;
