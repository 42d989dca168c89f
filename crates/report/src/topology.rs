//! The machine as text: a summary, the tree with equal parts folded, its warnings, and what was
//! measured.

use super::comparison::findings;
use super::devices;
use super::measured;
use super::style::{Palette, cpu_noun, name_cpus, paragraph, visible};
use pinwise_format::{count, cpu_limit, round_bytes, three_digits};
use pinwise_record::TopologyRecord;
use pinwise_topology::{
    Cache, CpuSet, Level, MemoryAttributes, MemoryTier, Node, NodeKind, Topology, fnv1a,
};
use std::cmp::Ordering;

/// More children than this of one shape are folded into a line.
const SHOWN_ALIKE: usize = 2;
/// A longer list of CPUs may be folded over several lines.
const LONGEST_LIST: usize = 40;

/// The machine for a terminal.
#[must_use]
pub fn topology(topology: &Topology, record: &TopologyRecord, palette: Palette) -> String {
    let mut text = heading(record, palette);
    text.push_str(&availability(record, topology, palette));
    text.push_str(&measured::alarm(record, palette));
    text.push('\n');
    let tree = topology.tree();
    draw(&tree, topology, "", &mut text);
    text.push_str(&crossing_nodes(&tree, topology));
    text.push_str(&memory_only_nodes(topology));
    text.push_str(&devices::devices(record, palette));
    if !record.warnings.is_empty() {
        text.push_str(&format!(
            "\n{}\n",
            palette.warn("Inconsistencies in this report")
        ));
        for warning in &record.warnings {
            text.push_str(&format!("{}\n", paragraph("  ! ", "    ", warning)));
        }
    }
    text.push_str(&findings(&record.header.findings, palette));
    if let Some(found) = &record.measured {
        text.push_str(&measured::measured(found, palette));
        text.push_str(&measured::answer(record, palette));
    }
    text
}

fn heading(record: &TopologyRecord, palette: Palette) -> String {
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

fn availability(record: &TopologyRecord, topology: &Topology, palette: Palette) -> String {
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
    text.push_str(&memory_tiers(topology));
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

/// What takes CPUs away, and cores of which one CPU is left.
fn describe_restrictions(record: &TopologyRecord, topology: &Topology, palette: Palette) -> String {
    let mut text = String::new();
    // A mask that only repeats what a cpuset leaves takes nothing away.
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

/// The memory of each kind.
fn memory_tiers(topology: &Topology) -> String {
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
            memory_words(bytes, &attributes).join(", ")
        );
        text.push_str(&format!("{}\n", paragraph("", "  ", &line)));
    }
    text
}

/// What makes units alike: the shape, and the notes on a unit and everything in it.
fn likeness(node: &Node, topology: &Topology) -> u64 {
    let mut below: Vec<u64> = node
        .children
        .iter()
        .map(|c| likeness(c, topology))
        .collect();
    below.sort_unstable();
    let own = match node.kind {
        NodeKind::Unit(Level::Core) => core_notes(topology, node, &|cpus| cpus.len().to_string()),
        _ => notes(topology, node),
    };
    let own = format!("{:?}{own}", node.kind);
    fnv1a(
        own.bytes()
            .chain(below.into_iter().flat_map(u64::to_le_bytes)),
    )
}

/// One line per unit; more than two that are alike are shown as "… and N more".
fn draw(node: &Node, topology: &Topology, indent: &str, text: &mut String) {
    let hashes: Vec<u64> = node
        .children
        .iter()
        .map(|c| likeness(c, topology))
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
        let is_folded = alike > SHOWN_ALIKE + 1 && count >= SHOWN_ALIKE;
        if !is_folded {
            draw_unit(child, topology, indent, text);
            shown_last = Some(hash);
        } else if count == SHOWN_ALIKE {
            let alike_of = node.children.iter().zip(&hashes);
            let rest = alike_of.filter(|(_, other)| **other == hash).skip(count);
            let cpus: CpuSet = rest
                .flat_map(|(same, _)| same.cpus.iter().collect::<Vec<usize>>())
                .collect();
            let more = alike - SHOWN_ALIKE;
            // "Such" are those of the line above; others are named.
            let like = match (
                shown_last == Some(hash),
                hashes.iter().position(|h| *h == hash),
            ) {
                (false, Some(first)) => format!("like {}", name(&node.children[first], topology)),
                _ => format!("such {}s", noun(child.kind)),
            };
            let line = format!("… and {more} more {like}, CPUs {}", foldable_list(&cpus));
            push_line(text, indent, &line);
            shown_last = None;
        }
    }
}

fn name(node: &Node, topology: &Topology) -> String {
    match node.kind {
        NodeKind::Machine => "machine".to_owned(),
        NodeKind::Unit(level) => format!("{} {}", level.noun(), number(topology, level, node)),
    }
}

fn draw_unit(node: &Node, topology: &Topology, indent: &str, text: &mut String) {
    let mut line = name(node, topology);
    match node.kind {
        NodeKind::Unit(Level::Cpu) => {}
        NodeKind::Unit(Level::Core) => {
            line.push_str(&format!(
                ": {} {}{}",
                cpu_noun(node.cpus.len()),
                foldable_list(&node.cpus),
                core_notes(topology, node, &foldable_list)
            ));
        }
        _ => line.push_str(&format!(
            ": {} {}{}",
            cpu_noun(node.cpus.len()),
            foldable_list(&node.cpus),
            notes(topology, node)
        )),
    }
    push_line(text, indent, &line);
    if node.kind != NodeKind::Unit(Level::Core) {
        draw(node, topology, &format!("{indent}  "), text);
    }
}

/// A line of the tree, wrapped below itself if it is too wide.
fn push_line(text: &mut String, indent: &str, line: &str) {
    text.push_str(&paragraph(indent, &format!("{indent}    "), line));
    text.push('\n');
}

/// Short lists as they are typed, long ones with spaces to fold at.
fn foldable_list(cpus: &CpuSet) -> String {
    let list = cpus.to_string();
    if list.len() > LONGEST_LIST {
        return list.replace(',', ", ");
    }
    list
}

fn noun(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Machine => "machine",
        NodeKind::Unit(level) => level.noun(),
    }
}

fn number(topology: &Topology, level: Level, node: &Node) -> usize {
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

fn notes(topology: &Topology, node: &Node) -> String {
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
                    let words = memory_words(bytes, &own.attributes);
                    (!words.is_empty()).then(|| format!("memory {}", words.join(", ")))
                }
            })
        }
        _ => None,
    };
    words.map_or_else(String::new, |words| format!(" ({words})"))
}

/// How much memory it is, of what kind and how fast, as far as that is known.
fn memory_words(bytes: Option<u64>, attributes: &MemoryAttributes) -> Vec<String> {
    let bandwidth = attributes.bandwidth_mb_per_s;
    let parts = [
        bytes.map(round_bytes),
        attributes.kind.as_ref().map(|kind| visible(kind)),
        bandwidth.map(|mb| format!("{} GB/s", three_digits(mb as f64 / 1e3))),
        attributes.latency_ns.map(|ns| format!("{ns} ns")),
    ];
    parts.into_iter().flatten().collect()
}

/// The kind of a core and its caches, those that it shares with `who`.
fn core_notes(topology: &Topology, node: &Node, who: &dyn Fn(&CpuSet) -> String) -> String {
    let first = node.cpus.first().unwrap_or(0);
    let caches: Vec<String> = topology
        .caches
        .iter()
        .filter(|cache| cache.cpus.contains(first))
        // The last level has a line of its own above.
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
                // Some hypervisors report one for each hyper-thread.
                Ordering::Less => " per CPU".to_owned(),
                Ordering::Equal => String::new(),
                Ordering::Greater => format!(" of CPUs {}", who(&cache.cpus)),
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

/// Nodes that the tree cannot hold, because they lie across other units.
fn crossing_nodes(tree: &Node, topology: &Topology) -> String {
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

fn memory_only_nodes(topology: &Topology) -> String {
    let nodes = topology.numa_nodes.iter();
    let lines = nodes.filter(|node| node.cpus.is_empty()).map(|node| {
        if node.memory_bytes == Some(0) {
            return format!("NUMA node {}: no CPUs and no memory\n", node.node);
        }
        let words = memory_words(node.memory_bytes, &node.attributes);
        let mut line = format!("NUMA node {}: memory only", node.node);
        if !words.is_empty() {
            line.push_str(&format!(" ({})", words.join(", ")));
        }
        let near = &node.attributes.near;
        if !near.is_empty() {
            line.push_str(&format!(
                ", near {} {}",
                cpu_noun(near.len()),
                foldable_list(near)
            ));
        }
        format!("{}\n", paragraph("", "  ", &line))
    });
    lines.collect()
}
