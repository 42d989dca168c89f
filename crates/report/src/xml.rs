//! Writes a machine as hwloc version 2 XML (`hwloc2.dtd`), with measured groups and distances, for
//! `lstopo -i`, `hwloc-calc` and `pinwise topology --from`.
//!
//! All reported units are written. A measured group becomes a `Group` object only if the system
//! reports no unit of the same CPUs, and if it nests with every reported unit: hwloc has only one
//! tree. Latencies are written for all complete rows, as whole nanoseconds of at least 1, since
//! hwloc supports neither fractions nor gaps.

mod devices;
mod memory;

use std::collections::BTreeSet;

use super::markup::escape;
use super::measured::matrix::find_latency;
use memory::{format_bitmap, locality};
use pinwise_record::{LevelName, Measured, TopologyRecord};
use pinwise_topology::{Cache, CacheType, Cpu, CpuSet, Device, Identity, Node, NumaNode, Topology};

/// hwloc's `HWLOC_DISTANCES_KIND_FROM_USER | HWLOC_DISTANCES_KIND_MEANS_LATENCY`.
const LATENCY_FROM_USER: u32 = 2 | 4;
/// hwloc's `HWLOC_GROUP_KIND_USER` and `HWLOC_GROUP_KIND_MEMORY`.
const GROUP_OF_USER: u32 = 0;
const GROUP_OF_MEMORY: u32 = 1001;
/// hwloc's `HWLOC_GROUP_KIND_IO`.
const GROUP_OF_DEVICES: u32 = 1000;

/// The machine as an XML file for `lstopo -i`.
#[must_use]
pub fn render_topology_xml(topology: &Topology, record: &TopologyRecord) -> String {
    let tree = build_tree(topology, record.measured.as_deref());
    let mut export = Export {
        topology,
        record,
        memory_parents: find_memory_parents(topology, &tree),
        device_parents: find_device_parents(topology, &tree),
        text: String::new(),
        objects: 0,
        indexes: 0,
        node_indexes: vec![None; topology.numa_nodes.len()],
    };
    export.write_object(&tree, 1);
    if let Some(measured) = &record.measured {
        export.write_distances(measured);
    }
    let attributes = memory::format_attributes(topology, &export.node_indexes);
    export.text.push_str(&attributes);
    export.write_kinds();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n{}</topology>\n",
        export.text
    )
}

/// What an object represents, with its index in the topology.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Machine,
    Package(usize),
    /// The CPUs of a NUMA node, if no other object has exactly these.
    NodeGroup(usize),
    /// The CPUs near a device, if no other object has exactly these.
    DeviceGroup,
    /// A measured group that the system does not report, with its subtype for hwloc.
    Measured(&'static str),
    Cache(usize),
    Core(usize),
    Pu(usize),
}

/// Nests every unit with CPUs as hwloc does, without memory.
fn build_tree(topology: &Topology, measured: Option<&Measured>) -> Node<Part> {
    let mut units = list_reported_units(topology);
    let mut sets: BTreeSet<CpuSet> = units.iter().map(|(_, cpus)| cpus.clone()).collect();
    sets.insert(topology.online.clone());
    for (index, node) in topology.numa_nodes.iter().enumerate() {
        let cpus = locality(node);
        if is_new_and_nests(cpus, &sets) {
            sets.insert(cpus.clone());
            units.push((Part::NodeGroup(index), cpus.clone()));
        }
    }
    for cpus in topology
        .devices
        .iter()
        .filter_map(|device| device.cpus.as_ref())
    {
        if is_new_and_nests(cpus, &sets) {
            sets.insert(cpus.clone());
            units.push((Part::DeviceGroup, cpus.clone()));
        }
    }
    let levels = measured.map_or(&[][..], |measured| &measured.levels);
    for level in levels {
        let subtype = match level.kind {
            LevelName::Smt => "PinwiseCore",
            LevelName::Llc => "PinwiseLLC",
            LevelName::Package => "PinwisePackage",
            _ => "PinwiseGroup",
        };
        for cpus in level.groups.iter().filter_map(|list| list.parse().ok()) {
            if is_new_and_nests(&cpus, &sets) {
                sets.insert(cpus.clone());
                units.push((Part::Measured(subtype), cpus));
            }
        }
    }
    Node::nest(Part::Machine, topology.online.clone(), units)
}

/// Is a set new, and does it nest with all existing ones?
fn is_new_and_nests(cpus: &CpuSet, sets: &BTreeSet<CpuSet>) -> bool {
    let nests =
        |other: &CpuSet| !cpus.intersects(other) || cpus.is_subset(other) || other.is_subset(cpus);
    !cpus.is_empty() && !sets.contains(cpus) && sets.iter().all(nests)
}

/// Reported units in the order in which hwloc nests equal sets.
fn list_reported_units(topology: &Topology) -> Vec<(Part, CpuSet)> {
    let mut units: Vec<(Part, CpuSet)> = Vec::new();
    let packages = topology.packages.iter().enumerate();
    units.extend(packages.map(|(index, cpus)| (Part::Package(index), cpus.clone())));
    let mut caches: Vec<usize> = (0..topology.caches.len()).collect();
    caches.retain(|&index| to_cache_type(&topology.caches[index]).is_some());
    let order = |&index: &usize| {
        let cache = &topology.caches[index];
        (
            std::cmp::Reverse(cache.level),
            cache.kind == CacheType::Instruction,
        )
    };
    caches.sort_by_key(order);
    let cpus_of_cache = |index: usize| topology.caches[index].cpus.clone();
    units.extend(
        caches
            .into_iter()
            .map(|index| (Part::Cache(index), cpus_of_cache(index))),
    );
    let cores = topology.cores.iter().enumerate();
    units.extend(cores.map(|(index, cpus)| (Part::Core(index), cpus.clone())));
    let cpus = topology.cpus.iter().enumerate();
    units.extend(
        cpus.filter(|(_, cpu)| cpu.online)
            .map(|(index, cpu)| (Part::Pu(index), CpuSet::single(cpu.id))),
    );
    units
}

/// hwloc's name of a cache, if it has one.
fn to_cache_type(cache: &Cache) -> Option<String> {
    match (cache.level, cache.kind) {
        (1..=3, CacheType::Instruction) => Some(format!("L{}iCache", cache.level)),
        (1..=5, CacheType::Data | CacheType::Unified) => Some(format!("L{}Cache", cache.level)),
        _ => None,
    }
}

/// Finds each NUMA node's parent: the outermost object below the machine with the same CPUs, else
/// the smallest that contains them; the machine for memory that is near no CPUs.
fn find_memory_parents(topology: &Topology, tree: &Node<Part>) -> Vec<usize> {
    let nodes = topology.numa_nodes.iter();
    nodes
        .map(|node| find_parent(tree, locality(node), true))
        .collect()
}

/// Finds each device's parent: the outermost of the smallest objects that contain the CPUs near it;
/// the machine if these are unknown.
fn find_device_parents(topology: &Topology, tree: &Node<Part>) -> Vec<usize> {
    let near = topology.devices.iter().map(|device| device.cpus.as_ref());
    near.map(|cpus| cpus.map_or(0, |cpus| find_parent(tree, cpus, false)))
        .collect()
}

/// Finds the outermost of the smallest objects that contain these CPUs, as [`Node::walk`] numbers
/// objects. `may_be_whole`: an object with all CPUs of the machine may be a parent, too.
fn find_parent(tree: &Node<Part>, cpus: &CpuSet, may_be_whole: bool) -> usize {
    let (mut home, mut size, mut number) = (0, tree.cpus.len(), 0);
    tree.walk(&mut |object: &Node<Part>, _| {
        let can_hold = !matches!(object.kind, Part::Machine | Part::Pu(_));
        let is_first = may_be_whole && home == 0 && object.cpus.len() == size;
        let is_better = object.cpus.len() < size || is_first;
        let holds = !cpus.is_empty() && cpus.is_subset(&object.cpus);
        if can_hold && holds && is_better {
            (home, size) = (number, object.cpus.len());
        }
        number += 1;
    });
    home
}

/// The part of the file that has been written.
struct Export<'a> {
    topology: &'a Topology,
    record: &'a TopologyRecord,
    /// The number of each NUMA node's parent object.
    memory_parents: Vec<usize>,
    /// The number of each device's parent object.
    device_parents: Vec<usize>,
    text: String,
    /// Number of objects of the tree written so far, without memory.
    objects: usize,
    /// Number of all objects written so far, for hwloc's `gp_index`.
    indexes: usize,
    /// The `gp_index` of each NUMA node that has been written.
    node_indexes: Vec<Option<usize>>,
}

impl Export<'_> {
    fn write_object(&mut self, object: &Node<Part>, depth: usize) {
        let number = self.objects;
        self.objects += 1;
        self.indexes += 1;
        let indent = "  ".repeat(depth);
        let nodes = self.list_near_nodes(&object.cpus, object.kind == Part::Machine);
        let (cpus, nodes) = (format_bitmap(&object.cpus), format_bitmap(&nodes));
        let own = self.format_attributes(&object.kind);
        let complete = match object.kind {
            Part::Machine => format_bitmap(&self.topology.cpus.iter().map(|cpu| cpu.id).collect()),
            _ => cpus.clone(),
        };
        self.text.push_str(&format!(
            "{indent}<object {own} cpuset=\"{cpus}\" complete_cpuset=\"{complete}\" nodeset=\"{nodes}\" complete_nodeset=\"{nodes}\" gp_index=\"{}\"",
            self.indexes
        ));
        if object.kind == Part::Machine {
            let allowed: CpuSet = self.allowed_nodes();
            self.text.push_str(&format!(
                " allowed_cpuset=\"{}\" allowed_nodeset=\"{}\"",
                format_bitmap(&self.topology.allowed),
                format_bitmap(&allowed)
            ));
        }
        let start = self.text.len();
        self.write_infos(&object.kind, &format!("{indent}  "));
        self.write_memory(number, &format!("{indent}  "));
        for child in &object.children {
            self.write_object(child, depth + 1);
        }
        let devices = self.topology.devices.iter().zip(&self.device_parents);
        // hwloc as usually built rejects PCI domains with more digits.
        let is_known = |device: &Device| device.address.find(':') <= Some(4);
        let here = devices.filter(|(device, home)| **home == number && is_known(device));
        let here: Vec<&Device> = here.map(|(device, _)| device).collect();
        let text = devices::write_objects(&here, &format!("{indent}  "), &mut self.indexes);
        self.text.push_str(&text);
        if self.text.len() == start {
            self.text.push_str("/>\n");
        } else {
            self.text.insert_str(start, ">\n");
            self.text.push_str(&format!("{indent}</object>\n"));
        }
    }

    /// The type, number and special attributes of an object.
    fn format_attributes(&self, part: &Part) -> String {
        match part {
            Part::Machine => "type=\"Machine\" os_index=\"0\"".to_owned(),
            Part::Package(index) => format!("type=\"Package\" os_index=\"{index}\""),
            Part::Core(index) => format!("type=\"Core\" os_index=\"{index}\""),
            Part::Pu(index) => {
                let cpu: &Cpu = &self.topology.cpus[*index];
                format!("type=\"PU\" os_index=\"{}\"", cpu.id)
            }
            Part::NodeGroup(_) => {
                format!("type=\"Group\" kind=\"{GROUP_OF_MEMORY}\" subkind=\"0\"")
            }
            Part::DeviceGroup => {
                format!("type=\"Group\" kind=\"{GROUP_OF_DEVICES}\" subkind=\"0\"")
            }
            Part::Measured(subtype) => format!(
                "type=\"Group\" subtype=\"{subtype}\" kind=\"{GROUP_OF_USER}\" subkind=\"0\" dont_merge=\"1\""
            ),
            Part::Cache(index) => {
                let cache = &self.topology.caches[*index];
                let kind = match cache.kind {
                    CacheType::Unified => 0,
                    CacheType::Data => 1,
                    CacheType::Instruction => 2,
                };
                format!(
                    "type=\"{}\" cache_size=\"{}\" depth=\"{}\" cache_linesize=\"0\" cache_associativity=\"0\" cache_type=\"{kind}\"",
                    to_cache_type(cache).unwrap_or_default(),
                    cache.size_bytes.unwrap_or(0),
                    cache.level
                )
            }
        }
    }

    fn write_infos(&mut self, part: &Part, indent: &str) {
        let identity = &self.topology.identity;
        let mut infos: Vec<(&str, String)> = Vec::new();
        if *part == Part::Machine {
            infos.extend(list_machine_infos(identity));
            infos.extend(self.measured_infos());
        }
        let is_named = matches!(part, Part::Package(_))
            || (*part == Part::Machine && self.topology.packages.is_empty());
        if is_named {
            infos.extend(list_processor_infos(identity));
        }
        for (name, value) in infos {
            let value = escape(&value).into_owned();
            self.text.push_str(&format!(
                "{indent}<info name=\"{name}\" value=\"{value}\"/>\n"
            ));
        }
    }

    fn measured_infos(&self) -> Vec<(&'static str, String)> {
        let mut infos = Vec::new();
        if self.record.measured.is_some() {
            let unit = "One-way time of a cache line between two CPUs, ns, rounded, at least 1";
            infos.push(("PinwiseLatencyUnit", unit.to_owned()));
        }
        let contradictions = self.record.contradictions.iter();
        infos.extend(contradictions.map(|found| {
            let sentence = format!("{} {}", found.claim, found.measured);
            ("PinwiseContradiction", sentence)
        }));
        infos
    }

    /// Writes the NUMA nodes below an object.
    fn write_memory(&mut self, object: usize, indent: &str) {
        for (index, node) in self.topology.numa_nodes.iter().enumerate() {
            if self.memory_parents[index] != object || node.node > CpuSet::MAX_CPU {
                continue;
            }
            self.indexes += 1;
            self.node_indexes[index] = Some(self.indexes);
            self.text
                .push_str(&memory::format_node(node, indent, self.indexes));
        }
    }

    /// The NUMA nodes near some of the CPUs; for the machine all nodes.
    fn list_near_nodes(&self, cpus: &CpuSet, is_machine: bool) -> CpuSet {
        let nodes = self.topology.numa_nodes.iter();
        nodes
            .filter(|node| is_machine || locality(node).intersects(cpus))
            .map(|node| node.node)
            .collect()
    }

    fn allowed_nodes(&self) -> CpuSet {
        let nodes = self.topology.numa_nodes.iter();
        nodes
            .filter(|n| n.allowed)
            .map(|n: &NumaNode| n.node)
            .collect()
    }

    fn write_distances(&mut self, measured: &Measured) {
        let rows = complete_rows(self.topology, measured);
        if rows.len() < 2 {
            return;
        }
        self.text.push_str(&format!(
            "  <distances2 type=\"PU\" nbobjs=\"{}\" kind=\"{LATENCY_FROM_USER}\" name=\"PinwiseLatency\" indexing=\"os\">\n",
            rows.len()
        ));
        let mut values = |tag: &str, values: Vec<String>| {
            let line = values.join(" ") + " ";
            self.text.push_str(&format!(
                "    <{tag} length=\"{}\">{line}</{tag}>\n",
                line.len()
            ));
        };
        let numbers = rows.iter().map(|&row| measured.cpus[row].to_string());
        values("indexes", numbers.collect());
        for &row in &rows {
            let latencies = rows.iter().map(|&column| {
                let value = find_latency(measured, row, column).unwrap_or(0.0);
                // The limit keeps hwloc's sums of latencies from overflowing.
                let rounded = if row == column {
                    0.0
                } else {
                    value.round().clamp(1.0, 1e12)
                };
                format!("{rounded:.0}")
            });
            values("u64values", latencies.collect());
        }
        self.text.push_str("  </distances2>\n");
    }

    fn write_kinds(&mut self) {
        for (rank, kind) in self.topology.kinds.iter().enumerate() {
            self.text.push_str(&format!(
                "  <cpukind cpuset=\"{}\" forced_efficiency=\"{rank}\"/>\n",
                format_bitmap(&kind.cpus)
            ));
        }
    }
}

fn list_machine_infos(identity: &Identity) -> Vec<(&'static str, String)> {
    let names = [
        ("HostName", &identity.hostname),
        ("Architecture", &identity.arch),
        ("OSRelease", &identity.kernel),
        ("Hypervisor", &identity.hypervisor),
    ];
    names
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.clone()?)))
        .collect()
}

fn list_processor_infos(identity: &Identity) -> Vec<(&'static str, String)> {
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let names = [
        ("CPUVendor", identity.vendor.clone()),
        ("CPUFamilyNumber", number(identity.family)),
        ("CPUModelNumber", number(identity.model)),
        ("CPUModel", identity.cpu_model.clone()),
        ("CPUStepping", number(identity.stepping)),
        ("CPUMicrocode", identity.microcode.clone()),
    ];
    names
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

/// The rows of online CPUs between which every latency is known: rows with the most gaps are left
/// out until there are no gaps.
fn complete_rows(topology: &Topology, measured: &Measured) -> Vec<usize> {
    let mut seen = CpuSet::new();
    let mut rows: Vec<usize> = Vec::new();
    for (row, &cpu) in measured.cpus.iter().enumerate() {
        if topology.online.contains(cpu) && !seen.contains(cpu) {
            seen.insert(cpu);
            rows.push(row);
        }
    }
    let gaps_of = |row: usize, rows: &[usize]| {
        let others = rows.iter().filter(|&&other| other != row);
        others
            .filter(|&&other| find_latency(measured, row, other).is_none())
            .count()
    };
    let mut gaps: Vec<usize> = rows.iter().map(|&row| gaps_of(row, &rows)).collect();
    while let Some((worst, &most)) = gaps.iter().enumerate().max_by_key(|(_, gaps)| **gaps) {
        if most == 0 {
            break;
        }
        let gone = rows.remove(worst);
        gaps.remove(worst);
        for (gap, &row) in gaps.iter_mut().zip(&rows) {
            *gap -= usize::from(find_latency(measured, row, gone).is_none());
        }
    }
    rows
}
