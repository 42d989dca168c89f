//! Explains a placement, with its equivalents in other tools.

use super::style::{Palette, cpu_noun, paragraph, visible};
use pinwise_format::count;
use pinwise_placement::{Kind, MemoryPolicy, Realised, equivalents, meaning};
use pinwise_topology::{Device, Topology};

/// A placement explained for a terminal.
#[must_use]
pub fn explain_placement(
    realised: &Realised,
    topology: &Topology,
    device: Option<&Device>,
    palette: Palette,
) -> String {
    let used = &realised.used;
    let mut parts = vec![
        count(used.packages, "package"),
        count(used.numa_nodes, "NUMA node"),
    ];
    if used.llcs > 0 {
        parts.push(count(used.llcs, "last-level cache"));
    }
    parts.push(count(used.cores, "core"));
    parts.push(count(used.cpus, "CPU"));
    let mut text = format!(
        "{}\n{}\n\n{} {} (mask {})\n{}\n",
        palette.strong(&visible(&realised.placement.to_string())),
        paragraph("", "", &meaning(&realised.placement)),
        cpu_noun(used.cpus),
        realised.cpus,
        realised.cpus.to_mask(),
        paragraph("uses ", "  ", &parts.join(", "))
    );
    if let Some(device) = device {
        let mut words = vec![device.kind.noun().to_owned(), device.address.clone()];
        words.extend(device.model.clone());
        words.extend(device.numa_node.map(|node| format!("NUMA node {node}")));
        let line = format!("{}: {}", device.name(), words.join(", "));
        text.push_str(&format!("{}\n", paragraph("", "  ", &line)));
    }
    if let Some(memory) = &realised.memory {
        let nodes: Vec<String> = memory.nodes.iter().map(usize::to_string).collect();
        text.push_str(&match memory.policy {
            MemoryPolicy::Local => {
                "memory policy local: the node of the allocating CPU\n".to_owned()
            }
            policy => format!(
                "memory policy {} on {} {}\n",
                policy.name(),
                if nodes.len() == 1 { "node" } else { "nodes" },
                nodes.join(",")
            ),
        });
    }
    let shared = if used.cpus == 1 {
        "this CPU"
    } else {
        "these CPUs"
    };
    text.push_str(&match realised.placement.kind {
        Kind::Confined => format!("All threads share {shared}.\n"),
        Kind::Bound => describe_order(realised),
    });
    text.push_str("\nIn other tools:\n");
    for emission in equivalents(realised, topology) {
        let line = emission.line();
        text.push_str(&format!("{:<10} {line}\n", emission.tool.name()));
        for sentence in &emission.unsupported {
            let note = paragraph("           (", "            ", &format!("{sentence})"));
            text.push_str(&format!("{}\n", palette.faint(&note)));
        }
    }
    text
}

/// The CPUs of bound threads, in order.
fn describe_order(realised: &Realised) -> String {
    let order: Vec<String> = realised.order.iter().map(usize::to_string).collect();
    let text = format!(
        "One CPU for each thread, in this order: {}.",
        order.join(" ")
    );
    format!("{}\n", paragraph("", "", &text))
}
