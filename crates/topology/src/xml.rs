//! Reads hwloc's XML of versions 2 and 3 (`lstopo machine.xml`).
//!
//! Only what pinwise uses is read: CPUs, cores, caches, NUMA nodes, packages, kinds of CPU, devices
//! on the PCI bus, bandwidth and latency of memory, and the machine's names. Distances are ignored.

use std::collections::BTreeMap;

use roxmltree::{Document, Node, ParsingOptions};

use super::build::{
    CAPACITY_STEP, CpuFacts, FREQUENCY_STEP, Facts, KindFacts, NodeFacts, join_alike,
};
use super::{Cache, CacheType, CpuSet, Device, Identity, MemoryAttributes, Restriction, Warning};

/// Largest number of XML nodes read; a 384-CPU export has about 10,000.
const MAX_NODES: u32 = 1_000_000;

/// Limit on the attributes of an element; hwloc writes some thirty. The parser compares all pairs.
const MAX_ATTRIBUTES: usize = 1_000;

/// Why an XML file was refused.
#[derive(Debug, thiserror::Error)]
pub enum XmlError {
    /// Not well-formed.
    #[error("not well-formed XML: {0}")]
    Syntax(roxmltree::Error),
    /// An element has too many attributes to be parsed in reasonable time.
    #[error("line {line}: an element has more than {MAX_ATTRIBUTES} attributes")]
    Attributes {
        /// Line in the file, from 1.
        line: usize,
    },
    /// Well-formed, but not an hwloc topology.
    #[error("its root is <{0}>, not hwloc's <topology>")]
    NotHwloc(String),
    /// Another major version of the format.
    #[error("hwloc XML version {0} is not supported; export version 2 or 3 (lstopo of hwloc 2.x)")]
    Version(String),
    /// There is no CPU in it.
    #[error("it has no processing unit (an <object type=\"PU\"> with a cpuset)")]
    NoCpus,
    /// A bitmap attribute cannot be read.
    #[error("line {line}: '{text}' is not an hwloc bitmap")]
    Bitmap {
        /// Line in the file, from 1.
        line: u32,
        /// The text found.
        text: String,
    },
}

pub(super) fn parse_facts(text: &str) -> Result<(Facts, Vec<Warning>), XmlError> {
    check_attributes(text)?;
    let options = ParsingOptions {
        allow_dtd: true,
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(XmlError::Syntax)?;
    let root = document.root_element();
    if root.tag_name().name() != "topology" {
        return Err(XmlError::NotHwloc(root.tag_name().name().to_owned()));
    }
    let version = root.attribute("version").unwrap_or("1.x");
    if !version.starts_with("2.") && !version.starts_with("3.") {
        return Err(XmlError::Version(version.to_owned()));
    }
    let mut import = Import {
        facts: Facts::default(),
        warnings: Vec::new(),
        has_frequencies: false,
        node_of: BTreeMap::new(),
    };
    for object in root.descendants().filter(|n| n.has_tag_name("object")) {
        import.read_object(object)?;
    }
    import.read_identity(root);
    for kind in root.descendants().filter(|n| n.has_tag_name("cpukind")) {
        import.read_cpu_kind(kind)?;
    }
    for attribute in root.children().filter(|n| n.has_tag_name("memattr")) {
        import.read_memory_attribute(attribute);
    }
    import.facts.ranks.clone_from(&import.facts.kinds);
    let step = match import.has_frequencies {
        true => FREQUENCY_STEP,
        false => CAPACITY_STEP,
    };
    import.facts.kinds = join_alike(import.facts.kinds, &import.facts.caches, step);
    import.facts.nodes = assign_cpus_once(import.facts.nodes);
    if !import.facts.cpus.values().any(|cpu| cpu.online) {
        return Err(XmlError::NoCpus);
    }
    Ok((import.facts, import.warnings))
}

struct Import {
    facts: Facts,
    warnings: Vec<Warning>,
    /// Are kinds of CPU distinguished by their highest frequency?
    has_frequencies: bool,
    /// The indices of NUMA nodes among the facts, by the index of their object.
    node_of: BTreeMap<u64, usize>,
}

impl Import {
    fn read_object(&mut self, object: Node<'_, '_>) -> Result<(), XmlError> {
        if object.attribute("type") == Some("PCIDev") {
            return self.read_device(object);
        }
        let Some(cpus) = parse_bitmap(object, "cpuset")? else {
            return Ok(());
        };
        match object.attribute("type").unwrap_or_default() {
            "Machine" => self.read_machine(object)?,
            "Package" => self.set_units(&cpus, |cpu, set| cpu.package = Some(set)),
            "Core" => self.set_units(&cpus, |cpu, set| cpu.core = Some(set)),
            "PU" => self.read_pu(object, &cpus),
            "NUMANode" => self.read_numa_node(object, cpus),
            name => self.read_cache(name, object, cpus),
        }
        Ok(())
    }

    /// A device is near the CPUs of the object that it is attached to.
    fn read_device(&mut self, object: Node<'_, '_>) -> Result<(), XmlError> {
        let kind = object.attribute("pci_type").unwrap_or_default();
        let hex = |digits: Option<&str>| u16::from_str_radix(digits?, 16).ok();
        // An id of zero means unknown.
        let id = |digits: Option<&str>| hex(digits).filter(|&id| id != 0);
        // As in "0302 [10de:20b0] [10de:144e] a1".
        let mut words = kind.split([' ', ':', '[', ']']).filter(|w| !w.is_empty());
        let class = hex(words.next()).unwrap_or_default();
        let (vendor, number) = (id(words.next()), id(words.next()));
        let address = object.attribute("pci_busid").unwrap_or_default();
        let Some(mut device) = Device::new(address, class, vendor, number) else {
            return Ok(());
        };
        for info in object.children().filter(|part| part.has_tag_name("info")) {
            match (info.attribute("name"), info.attribute("value")) {
                (Some("PCIDevice"), Some(model)) => device.model = Some(model.to_owned()),
                // Written by pinwise's own exports, for CPUs that no object contains.
                (Some("PinwiseNearCPUs"), Some(list)) => device.cpus = list.parse().ok(),
                _ => {}
            }
        }
        let parts = object.descendants();
        let named = parts.filter(|part| part.attribute("type") == Some("OSDev"));
        device.names = named
            .filter_map(|part| part.attribute("name"))
            .map(Into::into)
            .collect();
        for around in object.ancestors().skip(1) {
            if let Some(cpus) = parse_bitmap(around, "cpuset")? {
                device.cpus.get_or_insert(cpus);
                break;
            }
            match around.attribute("pci_busid") {
                Some(bridge) => device.bridges.insert(0, bridge.to_owned()),
                None => device.root = around.attribute("bridge_pci").and_then(parse_root_complex),
            }
        }
        self.facts.devices.push(device);
        Ok(())
    }

    fn read_machine(&mut self, object: Node<'_, '_>) -> Result<(), XmlError> {
        for id in parse_bitmap(object, "complete_cpuset")?
            .unwrap_or_default()
            .iter()
        {
            self.facts.cpus.entry(id).or_default();
        }
        if let Some(leaves) = parse_bitmap(object, "allowed_cpuset")? {
            let limit = Restriction::limit("allowed_cpuset of the XML", leaves);
            self.facts.restrictions.push(limit);
        }
        if let Some(nodes) = parse_bitmap(object, "allowed_nodeset")? {
            self.facts.allowed_nodes = Some(nodes.iter().collect());
        }
        Ok(())
    }

    fn read_pu(&mut self, object: Node<'_, '_>, cpus: &CpuSet) {
        let id = parse_number(object, "os_index").and_then(|n| usize::try_from(n).ok());
        match id.or_else(|| cpus.first()) {
            Some(id) if id <= CpuSet::MAX_CPU => {
                let cpu = self.facts.cpus.entry(id).or_default();
                if std::mem::replace(&mut cpu.online, true) {
                    self.warnings.push(format!("CPU {id} is described twice."));
                }
            }
            _ => self
                .warnings
                .push("A processing unit without a usable os_index is left out.".to_owned()),
        }
    }

    /// Names are `<info>` elements of the machine or its packages; the first one counts.
    fn read_identity(&mut self, root: Node<'_, '_>) {
        let mut infos: BTreeMap<&str, &str> = BTreeMap::new();
        for info in root.descendants().filter(|n| n.has_tag_name("info")) {
            // Version 3 has the machine's next to its objects.
            let owner = info.parent().map(|parent| match parent == root {
                true => "Machine",
                false => parent.attribute("type").unwrap_or_default(),
            });
            if let (Some("Machine" | "Package"), Some(name), Some(value)) =
                (owner, info.attribute("name"), info.attribute("value"))
            {
                infos.entry(name).or_insert(value);
            }
        }
        let text = |key: &str| infos.get(key).map(|value| (*value).to_owned());
        let numeric = |key: &str| infos.get(key).and_then(|value| value.parse().ok());
        self.facts.identity = Identity {
            hostname: text("HostName"),
            cpu_model: text("CPUModel"),
            vendor: text("CPUVendor"),
            arch: text("Architecture"),
            kernel: text("OSRelease"),
            // hwloc writes no hypervisor and no microcode; pinwise's own exports do.
            hypervisor: text("Hypervisor"),
            family: numeric("CPUFamilyNumber"),
            model: numeric("CPUModelNumber"),
            stepping: numeric("CPUStepping"),
            microcode: text("CPUMicrocode"),
        };
    }

    fn read_numa_node(&mut self, object: Node<'_, '_>, cpus: CpuSet) {
        let is_gpu = object.attribute("subtype") == Some("GPUMemory");
        let node = parse_number(object, "os_index").and_then(|n| usize::try_from(n).ok());
        if let (Some(node), false) = (node, is_gpu) {
            if let Some(index) = parse_number(object, "gp_index") {
                self.node_of.insert(index, self.facts.nodes.len());
            }
            self.facts.nodes.push(NodeFacts {
                node,
                cpus,
                memory_bytes: parse_number(object, "local_memory"),
                attributes: MemoryAttributes {
                    kind: object.attribute("subtype").map(str::to_owned),
                    ..MemoryAttributes::default()
                },
            });
        }
    }

    /// Reads the bandwidth or latency of nodes. There is a value for each group of CPUs; the best
    /// one is the nearest group's.
    fn read_memory_attribute(&mut self, element: Node<'_, '_>) {
        type Best = fn(u64, u64) -> u64;
        type Figure = fn(&mut MemoryAttributes) -> &mut Option<u64>;
        let (figure, best): (Figure, Best) = match element.attribute("name") {
            Some("Bandwidth" | "ReadBandwidth") => {
                (|memory| &mut memory.bandwidth_mb_per_s, u64::max)
            }
            Some("Latency" | "ReadLatency") => (|memory| &mut memory.latency_ns, u64::min),
            _ => return,
        };
        for value in element.children() {
            let is_node = value.attribute("target_obj_type") == Some("NUMANode");
            let index = parse_number(value, "target_obj_gp_index").filter(|_| is_node);
            let position = index.and_then(|index| self.node_of.get(&index));
            let figures = position.zip(parse_number(value, "value").filter(|&value| value > 0));
            if let Some((&position, value)) = figures {
                let known = figure(&mut self.facts.nodes[position].attributes);
                *known = Some(known.map_or(value, |known| best(known, value)));
            }
        }
    }

    fn read_cache(&mut self, name: &str, object: Node<'_, '_>, cpus: CpuSet) {
        let Some(rest) = name.strip_prefix('L').and_then(|r| r.strip_suffix("Cache")) else {
            return;
        };
        let digits = rest.trim_end_matches('i');
        let Ok(level) = digits.parse() else { return };
        let kind = match object.attribute("cache_type") {
            Some("1") => CacheType::Data,
            Some("2") => CacheType::Instruction,
            _ if rest.ends_with('i') => CacheType::Instruction,
            _ => CacheType::Unified,
        };
        self.facts.caches.push(Cache {
            level,
            kind,
            size_bytes: parse_number(object, "cache_size").filter(|&bytes| bytes > 0),
            cpus,
        });
    }

    fn read_cpu_kind(&mut self, element: Node<'_, '_>) -> Result<(), XmlError> {
        if let Some(cpus) = parse_bitmap(element, "cpuset")? {
            // Ranks are no speeds: powers of two keep them too far apart to be joined as alike.
            let rank = 1 << self.facts.kinds.len().min(60);
            let info = |name: &str| {
                let infos = element.children();
                let named = infos.filter(|part| part.attribute("name") == Some(name));
                named
                    .filter_map(|part| parse_number(part, "value"))
                    .next_back()
            };
            let forced = parse_number(element, "forced_efficiency").map(|rank| 1 << rank.min(60));
            let stated = info("LinuxCapacity").or(forced);
            let frequency = info("FrequencyMaxMHz");
            self.has_frequencies |= stated.is_none() && frequency.is_some();
            let speed = stated.or(frequency).unwrap_or(rank);
            self.facts.kinds.push(KindFacts { cpus, speed });
        }
        Ok(())
    }

    fn set_units(&mut self, cpus: &CpuSet, set_field: impl Fn(&mut CpuFacts, CpuSet)) {
        for id in cpus.iter() {
            set_field(self.facts.cpus.entry(id).or_default(), cpus.clone());
        }
    }
}

/// Assigns each CPU to one node, as the kernel does. hwloc gives each memory the CPUs near it, so
/// several nodes may have the same CPUs (DRAM and HBM), or one the CPUs of others (memory behind
/// CXL): a node whose CPUs all belong to smaller or lower-numbered nodes gets none.
fn assign_cpus_once(mut nodes: Vec<NodeFacts>) -> Vec<NodeFacts> {
    nodes.sort_by_key(|node| (node.cpus.len(), node.node));
    let mut taken = CpuSet::new();
    for node in &mut nodes {
        if node.cpus.is_subset(&taken) {
            node.attributes.near = std::mem::take(&mut node.cpus);
        }
        taken = taken.union(&node.cpus);
    }
    nodes
}

/// Refuses elements with too many attributes before they are parsed, by the number of `=` between
/// the element's `<` and the next.
fn check_attributes(text: &str) -> Result<(), XmlError> {
    let mut before = 0;
    for piece in text.split('<') {
        let is_element = !piece.starts_with(['!', '?']);
        let signs = piece.bytes().filter(|&byte| byte == b'=').count();
        if is_element && before > 0 && signs > MAX_ATTRIBUTES {
            let read = text.get(..before).unwrap_or_default();
            let line = 1 + read.bytes().filter(|&byte| byte == b'\n').count();
            return Err(XmlError::Attributes { line });
        }
        before += piece.len() + 1;
    }
    Ok(())
}

/// hwloc describes a root complex by the buses below it, `0000:[40-5f]`.
fn parse_root_complex(buses: &str) -> Option<String> {
    let (domain, buses) = buses.split_once(":[")?;
    Some(format!("pci{domain}:{}", buses.split('-').next()?))
}

fn parse_number(node: Node<'_, '_>, attribute: &str) -> Option<u64> {
    node.attribute(attribute)?.trim().parse().ok()
}

/// hwloc prints bitmaps as 32-bit words, most significant first, a word of
/// zero as nothing: `0x1,,0xffffffff`.
fn parse_bitmap(node: Node<'_, '_>, attribute: &str) -> Result<Option<CpuSet>, XmlError> {
    let Some(text) = node.attribute(attribute) else {
        return Ok(None);
    };
    let invalid = || XmlError::Bitmap {
        line: node.document().text_pos_at(node.range().start).row,
        text: text.to_owned(),
    };
    let mut set = CpuSet::new();
    for (index, word) in text.trim().split(',').rev().enumerate() {
        if word.is_empty() {
            continue;
        }
        let digits = word.strip_prefix("0x").ok_or_else(invalid)?;
        let bits = u32::from_str_radix(digits, 16).map_err(|_| invalid())?;
        if index * 32 > CpuSet::MAX_CPU {
            return Err(invalid());
        }
        for bit in (0..32).filter(|bit| bits & (1 << bit) != 0) {
            set.insert(index * 32 + bit);
        }
    }
    Ok(Some(set))
}
