//! The machine as text: a summary, the tree with equal parts folded, what is
//! odd about it, and what was measured.

use super::devices;
use super::measured;
use super::style::{Palette, cpu_noun, paragraph, visible};
use pinwise_format::{count, round_bytes, trimmed};
use pinwise_record::TopologyRecord;
use pinwise_topology::{Cache, CpuSet, Level, Node, NodeKind, Topology};

/// More children than this of one shape are folded into a line.
const SHOWN_ALIKE: usize = 2;
/// A longer list of CPUs may be folded over several lines.
const LONGEST_LIST: usize = 40;

/// The machine for a terminal.
#[must_use]
pub fn topology(topology: &Topology, record: &TopologyRecord, palette: Palette) -> String {
    let mut text = heading(record, palette);
    text.push_str(&availability(record, palette));
    text.push_str(&measured::alarm(record, palette));
    text.push('\n');
    draw(&topology.tree(), topology, "", &mut text);
    text.push_str(&memory_only_nodes(record));
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
    if let Some(found) = &record.measured {
        text.push_str(&measured::measured(found, palette));
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
        let line =
            format!("A virtual machine ({hypervisor}): what follows is what the hypervisor says.");
        text.push_str(&format!("{}\n", palette.warn(&visible(&line))));
    }
    text
}

fn availability(record: &TopologyRecord, palette: Palette) -> String {
    let counts = &record.counts;
    let llcs = if counts.llcs == 0 {
        "caches not reported".to_owned()
    } else {
        count(counts.llcs, "last-level cache")
    };
    let mut text = format!(
        "{}, {}, {llcs}, {}, {}\n",
        count(counts.cpus, "CPU"),
        count(counts.cores, "core"),
        count(counts.numa_nodes, "NUMA node"),
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
    for restriction in &record.restrictions {
        let line = format!(
            "allowed: {} of {} CPUs; the {} leaves {}",
            counts.cpus,
            record.cpus.len(),
            restriction.by,
            restriction.leaves
        );
        text.push_str(&format!("{}\n", palette.warn(&paragraph("", "  ", &line))));
    }
    if let Some(quota) = &record.quota {
        let line = format!(
            "quota: {} CPUs of {} ({})",
            trimmed(quota.cpus),
            counts.cpus,
            quota.source
        );
        text.push_str(&format!("{}\n", palette.warn(&visible(&line))));
    }
    text
}

/// One line per unit; more than two of a shape are shown as "… and N more".
fn draw(node: &Node, topology: &Topology, indent: &str, text: &mut String) {
    let hashes: Vec<u64> = node.children.iter().map(Node::hash).collect();
    let mut shown: Vec<(u64, usize)> = Vec::new();
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
        } else if count == SHOWN_ALIKE {
            let alike_of = node.children.iter().zip(&hashes);
            let rest = alike_of.filter(|(_, other)| **other == hash).skip(count);
            let cpus: CpuSet = rest
                .flat_map(|(same, _)| same.cpus.iter().collect::<Vec<usize>>())
                .collect();
            let line = format!(
                "… and {} more such {}s, CPUs {}",
                alike - SHOWN_ALIKE,
                noun(child.kind),
                spaced(&cpus)
            );
            push_line(text, indent, &line);
        }
    }
}

fn draw_unit(node: &Node, topology: &Topology, indent: &str, text: &mut String) {
    let name = match node.kind {
        NodeKind::Machine => "machine".to_owned(),
        NodeKind::Unit(level) => format!("{} {}", level.noun(), number(topology, level, node)),
    };
    let mut line = name;
    match node.kind {
        NodeKind::Unit(Level::Cpu) => {}
        NodeKind::Unit(Level::Core) => {
            line.push_str(&format!(
                ": {} {}{}",
                cpu_noun(node.cpus.len()),
                spaced(&node.cpus),
                core_notes(topology, node)
            ));
        }
        _ => line.push_str(&format!(
            ": {} {}{}",
            cpu_noun(node.cpus.len()),
            spaced(&node.cpus),
            notes(topology, node)
        )),
    }
    push_line(text, indent, &line);
    if node.kind != NodeKind::Unit(Level::Core) {
        draw(node, topology, &format!("{indent}  "), text);
    }
}

/// A line of the tree, folded under itself where it is too wide.
fn push_line(text: &mut String, indent: &str, line: &str) {
    text.push_str(&paragraph(indent, &format!("{indent}    "), line));
    text.push('\n');
}

/// Short lists as they are typed, long ones with spaces to fold at.
fn spaced(cpus: &CpuSet) -> String {
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
    let size = match node.kind {
        NodeKind::Unit(Level::Llc) => topology
            .caches
            .iter()
            .filter(|cache| cache.cpus == node.cpus)
            .max_by_key(|cache| cache.level)
            .map(|cache| (format!("L{}", cache.level), cache.size_bytes)),
        NodeKind::Unit(Level::Numa) => topology
            .numa_nodes
            .iter()
            .find(|n| n.cpus == node.cpus)
            .map(|n| ("memory".to_owned(), n.memory_bytes)),
        _ => None,
    };
    match size {
        Some((label, Some(bytes))) => format!(" ({label} {})", round_bytes(bytes)),
        Some((label, None)) if label != "memory" => format!(" ({label})"),
        _ => String::new(),
    }
}

fn core_notes(topology: &Topology, node: &Node) -> String {
    let first = node.cpus.first().unwrap_or(0);
    let caches: Vec<String> = topology
        .caches
        .iter()
        .filter(|cache| cache.cpus.contains(first) && cache.cpus.is_subset(&node.cpus))
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
            // Some hypervisors report one for each hyper-thread.
            let each = if cache.cpus.len() < node.cpus.len() {
                " per CPU"
            } else {
                ""
            };
            format!("L{}{letter}{size}{each}", cache.level)
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

fn memory_only_nodes(record: &TopologyRecord) -> String {
    record
        .numa_nodes
        .iter()
        .filter(|node| node.cpus.is_empty())
        .map(|node| {
            let size = node
                .memory_bytes
                .map_or_else(String::new, |bytes| format!(" ({})", round_bytes(bytes)));
            format!("NUMA node {}: memory only{size}\n", node.node)
        })
        .collect()
}
