//! What a placement is, and what other tools call it.

use super::style::{Palette, paragraph, visible};
use crate::placement::{Realised, equivalents};

/// A placement explained for a terminal.
#[must_use]
pub fn explain(realised: &Realised, palette: Palette) -> String {
    let used = &realised.used;
    let plural = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let mut parts = vec![
        plural(used.packages, "package"),
        plural(used.numa_nodes, "NUMA node"),
    ];
    if used.llcs > 0 {
        parts.push(plural(used.llcs, "last-level cache"));
    }
    parts.push(plural(used.cores, "core"));
    parts.push(plural(used.cpus, "CPU"));
    let mut text = format!(
        "{}\nCPUs {} (mask {})\n{}\n",
        palette.strong(&visible(&realised.placement.to_string())),
        realised.cpus,
        realised.cpus.to_mask(),
        paragraph("uses ", "  ", &parts.join(", "))
    );
    if let Some(memory) = &realised.memory {
        let nodes: Vec<String> = memory.nodes.iter().map(usize::to_string).collect();
        text.push_str(&format!(
            "memory policy {} on nodes {}\n",
            memory.policy.name(),
            nodes.join(",")
        ));
    }
    text.push_str("All threads share these CPUs.\n\n");
    for equivalent in equivalents(realised) {
        text.push_str(&format!("{:<8} {}\n", equivalent.tool, equivalent.setting));
        if let Some(note) = equivalent.note {
            let note = paragraph("         (", "          ", &format!("{note})"));
            text.push_str(&format!("{}\n", palette.faint(&note)));
        }
    }
    text
}
