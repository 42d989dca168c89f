//! The machine as text: a summary, the tree with similar parts folded, its warnings, and what was
//! measured.

use super::comparison::describe_findings;
use super::devices;
use super::measured;
use super::style::{Palette, cpu_noun, name_cpus, paragraph, visible};
use pinwise_format::{count, cpu_limit, round_bytes, three_digits};
use pinwise_record::TopologyRecord;
use pinwise_topology::{
    Cache, CpuSet, Level, MemoryAttributes, MemoryTier, Node, NodeKind, Topology, fnv1a,
};
use std::cmp::Ordering;

/// Of similar children at most this many are drawn; a line stands for the others.
const MAX_SIMILAR: usize = 2;
/// A list of CPUs with more characters may be wrapped.
const MAX_UNWRAPPED_LIST: usize = 40;

/// The machine for a terminal.
#[must_use]
pub fn render_topology(topology: &Topology, record: &TopologyRecord, palette: Palette) -> String {
    let mut text = describe_machine(record, palette);
    text.push_str(&describe_cpus(record, topology, palette));
    text.push_str(&measured::format_contradiction_line(record, palette));
    text.push('\n');
    let tree = topology.tree();
    draw_children(&tree, topology, "", &mut text);
    text.push_str(&draw_overlapping_nodes(&tree, topology));
    text.push_str(&list_memory_only_nodes(topology));
    text.push_str(&devices::format_devices_table(record, palette));
    if !record.warnings.is_empty() {
        text.push_str(&format!(
            "\n{}\n",
            palette.warn("Inconsistencies in this report")
        ));
        for warning in &record.warnings {
            text.push_str(&format!("{}\n", paragraph("  ! ", "    ", warning)));
        }
    }
    text.push_str(&describe_findings(&record.header.findings, palette));
    if let Some(found) = &record.measured {
        text.push_str(&measured::describe_measured(found, palette));
        text.push_str(&measured::format_closing_lines(record, palette));
    }
    text
}

fn describe_machine(record: &TopologyRecord, palette: Palette) -> String {
    let machine = &record.machine;
    let model = machine.cpu_model.as_deref().unwrap_or("unknown processor");
    let mut details: Vec<String> = Vec::new();
    let numbers = [
        ("family", machine.cpu_family),
        ("model", machine.cpu_model_number),
        ("stepping", machine.cpu_stepping),
    ];
    details.extend(
        numbers
            .iter()
            .filter_map(|(n, v)| v.map(|v| format!("{n} {v}"))),
    );
    details.extend(machine.microcode.iter().map(|m| format!("microcode {m}")));
    details.extend(machine.arch.clone());
    details.extend(machine.kernel.iter().map(|k| format!("Linux {k}")));
    let mut text = format!("{}\n", palette.strong(&paragraph("", "  ", model)));
    if !details.is_empty() {
        text.push_str(&format!("{}\n", paragraph("", "", &details.join(", "))));
    }
    if let Some(hypervisor) = &machine.hypervisor {
        let line = format!(
            "A virtual machine ({hypervisor}): the topology below is the hypervisor's claim."
        );
        text.push_str(&format!("{}\n", palette.warn(&visible(&line))));
    }
    text
}

fn describe_cpus(record: &TopologyRecord, topology: &Topology, palette: Palette) -> String {
    let counts = &record.counts;
    let llcs = if counts.llcs == 0 {
        "caches not reported".to_owned()
    } else {
        count(counts.llcs, "last-level cache")
    };
    let nodes = record.numa_nodes.iter();
    let without_memory = nodes.filter(|node| node.memory_bytes == Some(0)).count();
    let nodes = count(counts.numa_nodes + without_memory, "NUMA node");
    let nodes = match without_memory {
        0 => nodes,
        without => format!("{nodes} ({without} without memory)"),
    };
    let mut text = format!(
        "{}, {}, {llcs}, {nodes}, {}\n",
        count(counts.cpus, "CPU"),
        count(counts.cores, "core"),
        count(counts.packages, "package"),
    );
    let offline: Vec<String> = record
        .cpus
        .iter()
        .filter(|cpu| !cpu.online)
        .map(|cpu| cpu.cpu.to_string())
        .collect();
    if !offline.is_empty() {
        text.push_str(&format!(
            "offline: {} {}\n",
            cpu_noun(offline.len()),
            offline.join(", ")
        ));
    }
    text.push_str(&describe_restrictions(record, topology, palette));
    if let Some(isolated) = &record.isolated {
        let line = format!(
            "isolated: {}; only threads placed there run there",
            name_cpus(isolated)
        );
        text.push_str(&format!("{}\n", paragraph("", "  ", &line)));
    }
    if let Some(cpus) = &record.nohz_full {
        let line = format!(
            "nohz_full: no timer tick on {} while one thread runs there",
            name_cpus(cpus)
        );
        text.push_str(&format!("{}\n", paragraph("", "  ", &line)));
    }
    let fastest = record.kinds.last().map(|kind| &kind.cpus);
    if let Some(first) = record.ranks.first().filter(|first| fastest != Some(*first)) {
        let line = format!(
            "favoured: the firmware calls {} the fastest (best-core)",
            name_cpus(first)
        );
        text.push_str(&format!("{}\n", paragraph("", "  ", &line)));
    }
    text.push_str(&describe_memory_tiers(topology));
    if let Some(quota) = &record.quota {
        let line = format!(
            "quota: {} of {} ({})",
            cpu_limit(quota.cpus),
            counts.cpus,
            quota.source
        );
        text.push_str(&format!("{}\n", palette.warn(&visible(&line))));
    }
    text
}

/// Describes what restricts the allowed CPUs, and cores of which only some CPUs are allowed.
fn describe_restrictions(record: &TopologyRecord, topology: &Topology, palette: Palette) -> String {
    let mut text = String::new();
    // A mask equal to the cpuset restricts nothing more, and is not mentioned.
    let is_repeated = topology.reachable() == topology.allowed;
    let restrictions = record.restrictions.iter();
    for restriction in restrictions.filter(|r| !(r.is_mask && is_repeated)) {
        let line = format!(
            "allowed: {} of {} CPUs; the {} leaves {}{}",
            record.counts.cpus,
            record.cpus.len(),
            restriction.by,
            restriction.leaves,
            if restriction.is_mask {
                " (a placement may name others)"
            } else {
                ""
            }
        );
        text.push_str(&format!("{}\n", palette.warn(&paragraph("", "  ", &line))));
    }
    if !record.restrictions.is_empty()
        && let split @ 1.. = topology.split_cores()
    {
        let line = format!(
            "of {}, only some of the CPUs are allowed",
            count(split, "core")
        );
        text.push_str(&format!("{}\n", palette.warn(&line)));
    }
    text
}

/// A line for each kind of memory.
fn describe_memory_tiers(topology: &Topology) -> String {
    let mut text = String::new();
    for tier in topology.memory_tiers() {
        let MemoryTier {
            nodes,
            bytes,
            attributes,
        } = tier;
        let line = format!(
            "memory of NUMA {} {nodes}: {}",
            if nodes.len() == 1 { "node" } else { "nodes" },
            list_memory_properties(bytes, &attributes).join(", ")
        );
        text.push_str(&format!("{}\n", paragraph("", "  ", &line)));
    }
    text
}

/// A hash that is equal for similar units: those of one shape, with the same notes at every level.
fn hash_similarity(node: &Node, topology: &Topology) -> u64 {
    let mut below: Vec<u64> = node
        .children
        .iter()
        .map(|c| hash_similarity(c, topology))
        .collect();
    below.sort_unstable();
    let own = match node.kind {
        NodeKind::Unit(Level::Core) => {
            format_core_notes(topology, node, &|cpus| cpus.len().to_string())
        }
        _ => format_unit_notes(topology, node),
    };
    let own = format!("{:?}{own}", node.kind);
    fnv1a(
        own.bytes()
            .chain(below.into_iter().flat_map(u64::to_le_bytes)),
    )
}

/// Draws the units below a node; of many similar ones the first two, and a line for the others.
fn draw_children(node: &Node, topology: &Topology, indent: &str, text: &mut String) {
    let hashes: Vec<u64> = node
        .children
        .iter()
        .map(|c| hash_similarity(c, topology))
        .collect();
    let mut shown: Vec<(u64, usize)> = Vec::new();
    let mut shown_last = None;
    for (child, &hash) in node.children.iter().zip(&hashes) {
        let alike = hashes.iter().filter(|&&other| other == hash).count();
        let position = shown.iter().position(|(seen, _)| *seen == hash);
        let count = position.map_or(0, |at| shown[at].1);
        match position {
            Some(at) => shown[at].1 += 1,
            None => shown.push((hash, 1)),
        }
        let is_folded = alike > MAX_SIMILAR + 1 && count >= MAX_SIMILAR;
        if !is_folded {
            draw_unit(child, topology, indent, text);
            shown_last = Some(hash);
        } else if count == MAX_SIMILAR {
            let alike_of = node.children.iter().zip(&hashes);
            let rest = alike_of.filter(|(_, other)| **other == hash).skip(count);
            let cpus: CpuSet = rest
                .flat_map(|(same, _)| same.cpus.iter().collect::<Vec<usize>>())
                .collect();
            let more = alike - MAX_SIMILAR;
            // "such" refers to the line above; otherwise name the unit that they are like.
            let like = match (
                shown_last == Some(hash),
                hashes.iter().position(|h| *h == hash),
            ) {
                (false, Some(first)) => {
                    format!("like {}", format_unit_name(&node.children[first], topology))
                }
                _ => format!("such {}s", unit_noun(child.kind)),
            };
            let line = format!(
                "… and {more} more {like}, CPUs {}",
                format_wrappable_list(&cpus)
            );
            push_line(text, indent, &line);
            shown_last = None;
        }
    }
}

fn format_unit_name(node: &Node, topology: &Topology) -> String {
    match node.kind {
        NodeKind::Machine => "machine".to_owned(),
        NodeKind::Unit(level) => format!(
            "{} {}",
            level.noun(),
            find_unit_number(topology, level, node)
        ),
    }
}

fn draw_unit(node: &Node, topology: &Topology, indent: &str, text: &mut String) {
    let mut line = format_unit_name(node, topology);
    match node.kind {
        NodeKind::Unit(Level::Cpu) => {}
        NodeKind::Unit(Level::Core) => {
            line.push_str(&format!(
                ": {} {}{}",
                cpu_noun(node.cpus.len()),
                format_wrappable_list(&node.cpus),
                format_core_notes(topology, node, &format_wrappable_list)
            ));
        }
        _ => line.push_str(&format!(
            ": {} {}{}",
            cpu_noun(node.cpus.len()),
            format_wrappable_list(&node.cpus),
            format_unit_notes(topology, node)
        )),
    }
    push_line(text, indent, &line);
    if node.kind != NodeKind::Unit(Level::Core) {
        draw_children(node, topology, &format!("{indent}  "), text);
    }
}

/// A line of the tree, wrapped below itself if it is too wide.
fn push_line(text: &mut String, indent: &str, line: &str) {
    text.push_str(&paragraph(indent, &format!("{indent}    "), line));
    text.push('\n');
}

/// Formats a list of CPUs; long ones have spaces at which they can be wrapped.
fn format_wrappable_list(cpus: &CpuSet) -> String {
    let list = cpus.to_string();
    if list.len() > MAX_UNWRAPPED_LIST {
        return list.replace(',', ", ");
    }
    list
}

fn unit_noun(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Machine => "machine",
        NodeKind::Unit(level) => level.noun(),
    }
}

fn find_unit_number(topology: &Topology, level: Level, node: &Node) -> usize {
    if level == Level::Numa {
        let found = topology.numa_nodes.iter().find(|n| n.cpus == node.cpus);
        return found.map_or(0, |n| n.node);
    }
    let units = topology.units(level);
    let index = units.iter().position(|unit| *unit == node.cpus);
    match level {
        Level::Cpu => node.cpus.first().unwrap_or(0),
        _ => index.unwrap_or(0),
    }
}

fn format_unit_notes(topology: &Topology, node: &Node) -> String {
    let words = match node.kind {
        NodeKind::Unit(Level::Llc) => {
            let caches = topology.caches.iter();
            let own = caches.filter(|cache| cache.cpus == node.cpus);
            let last = own.max_by_key(|cache| cache.level);
            last.map(|cache| {
                let size = cache
                    .size_bytes
                    .map(|bytes| format!(" {}", round_bytes(bytes)));
                format!("L{}{}", cache.level, size.unwrap_or_default())
            })
        }
        NodeKind::Unit(Level::Numa) => {
            let mut nodes = topology.numa_nodes.iter();
            let own = nodes.find(|n| n.cpus == node.cpus);
            own.and_then(|own| match own.memory_bytes {
                Some(0) => Some("no memory".to_owned()),
                bytes => {
                    let words = list_memory_properties(bytes, &own.attributes);
                    (!words.is_empty()).then(|| format!("memory {}", words.join(", ")))
                }
            })
        }
        _ => None,
    };
    words.map_or_else(String::new, |words| format!(" ({words})"))
}

/// The size, kind and speed of memory, as far as they are known.
fn list_memory_properties(bytes: Option<u64>, attributes: &MemoryAttributes) -> Vec<String> {
    let bandwidth = attributes.bandwidth_mb_per_s;
    let parts = [
        bytes.map(round_bytes),
        attributes.kind.as_ref().map(|kind| visible(kind)),
        bandwidth.map(|mb| format!("{} GB/s", three_digits(mb as f64 / 1e3))),
        attributes.latency_ns.map(|ns| format!("{ns} ns")),
    ];
    parts.into_iter().flatten().collect()
}

/// The kind of a core and its caches; `format_cpus` formats the CPUs that share a cache.
fn format_core_notes(
    topology: &Topology,
    node: &Node,
    format_cpus: &dyn Fn(&CpuSet) -> String,
) -> String {
    let first = node.cpus.first().unwrap_or(0);
    let caches: Vec<String> = topology
        .caches
        .iter()
        .filter(|cache| cache.cpus.contains(first))
        // The last level has its own line above.
        .filter(|cache| !is_last_level(topology, cache))
        .map(|cache| {
            let letter = match cache.kind {
                pinwise_topology::CacheType::Data => "d",
                pinwise_topology::CacheType::Instruction => "i",
                pinwise_topology::CacheType::Unified => "",
            };
            let size = cache
                .size_bytes
                .map_or_else(String::new, |bytes| format!(" {}", round_bytes(bytes)));
            let shared = match cache.cpus.len().cmp(&node.cpus.len()) {
                // Some hypervisors report a cache for each hyper-thread.
                Ordering::Less => " per CPU".to_owned(),
                Ordering::Equal => String::new(),
                Ordering::Greater => format!(" of CPUs {}", format_cpus(&cache.cpus)),
            };
            format!("L{}{letter}{size}{shared}", cache.level)
        })
        .collect();
    let kind = topology.kinds.iter().find(|kind| kind.cpus.contains(first));
    let mut notes: Vec<String> = kind
        .iter()
        .map(|kind| format!("{}-core", kind.name))
        .collect();
    notes.extend(caches);
    if notes.is_empty() {
        String::new()
    } else {
        format!(" ({})", notes.join(", "))
    }
}

fn is_last_level(topology: &Topology, cache: &Cache) -> bool {
    let is_outer = |other: &Cache| other.cpus == cache.cpus && other.level > cache.level;
    topology.llcs.contains(&cache.cpus) && !topology.caches.iter().any(is_outer)
}

/// Draws NUMA nodes that are not in the tree, because they overlap with other units.
fn draw_overlapping_nodes(tree: &Node, topology: &Topology) -> String {
    let mut drawn = Vec::new();
    tree.walk(&mut |node, _| {
        if node.kind == NodeKind::Unit(Level::Numa) {
            drawn.push(&node.cpus);
        }
    });
    let mut text = String::new();
    let nodes = topology.numa_nodes.iter().map(|node| &node.cpus);
    for cpus in nodes.filter(|cpus| !cpus.is_empty() && !drawn.contains(cpus)) {
        let node = Node {
            kind: NodeKind::Unit(Level::Numa),
            cpus: cpus.clone(),
            children: Vec::new(),
        };
        draw_unit(&node, topology, "", &mut text);
    }
    text
}

fn list_memory_only_nodes(topology: &Topology) -> String {
    let nodes = topology.numa_nodes.iter();
    let lines = nodes.filter(|node| node.cpus.is_empty()).map(|node| {
        if node.memory_bytes == Some(0) {
            return format!("NUMA node {}: no CPUs and no memory\n", node.node);
        }
        let words = list_memory_properties(node.memory_bytes, &node.attributes);
        let mut line = format!("NUMA node {}: memory only", node.node);
        if !words.is_empty() {
            line.push_str(&format!(" ({})", words.join(", ")));
        }
        let near = &node.attributes.near;
        if !near.is_empty() {
            line.push_str(&format!(
                ", near {} {}",
                cpu_noun(near.len()),
                format_wrappable_list(near)
            ));
        }
        format!("{}\n", paragraph("", "  ", &line))
    });
    lines.collect()
}
