//! Compares the nodes on which the program's pages were with those on which its threads ran.

use std::collections::BTreeMap;

use pinwise_format::{bytes, percent};
use pinwise_machine::PagesSeen;
use pinwise_record::{
    CpuTimeRecord, Finding, LocalShare, MemoryRecord, NodePagesRecord, Severity, TraceSource,
};
use pinwise_topology::{NumaNode, Topology};

/// A node with a smaller share of the CPU time counts as unused, per cent.
const MIN_USED_PERCENT: f64 = 5.0;
/// A smaller share of far memory is no finding, per cent.
const MIN_FAR_PERCENT: f64 = 10.0;
/// Less far memory is no finding.
const MIN_FAR_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

/// Averages all polls of pages; `None` if there were none.
pub(super) fn summarize(
    polls: &[PagesSeen],
    from_ns: u64,
    cpus: &[CpuTimeRecord],
    topology: &Topology,
    is_balanced: Option<bool>,
) -> Option<MemoryRecord> {
    let last = polls.last()?;
    let by_node = cpu_shares(cpus, topology);
    let mut sums: BTreeMap<usize, f64> =
        topology.numa_nodes.iter().map(|n| (n.node, 0.0)).collect();
    let (mut time, mut huge, mut local) = (0.0, 0.0, 0.0);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut before = from_ns;
    for poll in polls {
        let all: u64 = poll.nodes.values().sum();
        // A poll represents the time since the one before.
        let weight = poll.time_ns.saturating_sub(before).max(1) as f64;
        before = poll.time_ns;
        time += weight;
        huge += weight * poll.huge as f64 / all.max(1) as f64;
        let mut near = 0.0;
        for (node, &pages) in &poll.nodes {
            *sums.entry(*node).or_default() += weight * pages as f64;
            let share = by_node.get(node).copied().unwrap_or(0.0);
            near += share * pages as f64 / all.max(1) as f64;
        }
        local += weight * near;
        low = low.min(near);
        high = high.max(near);
    }
    let nodes: Vec<NodePagesRecord> = sums
        .iter()
        .map(|(&node, &sum)| NodePagesRecord {
            node,
            bytes: sum / time,
            last_bytes: last.nodes.get(&node).copied().unwrap_or(0),
            cpu_percent: 100.0 * by_node.get(&node).copied().unwrap_or(0.0),
        })
        .collect();
    let has_many = nodes.len() > 1;
    let all: f64 = nodes.iter().map(|node| node.bytes).sum();
    let far = nodes
        .iter()
        .filter(|node| node.cpu_percent < MIN_USED_PERCENT);
    let far = far.fold(0.0, |sum, node| sum + node.bytes);
    Some(MemoryRecord {
        looks: polls.len(),
        huge_percent: 100.0 * huge / time,
        local: has_many.then(|| LocalShare {
            percent: 100.0 * local / time,
            low: 100.0 * low,
            high: 100.0 * high,
        }),
        far_percent: has_many.then(|| 100.0 * far / all.max(1.0)),
        is_balanced,
        nodes,
    })
}

/// Each node's share of the threads' CPU time.
fn cpu_shares(cpus: &[CpuTimeRecord], topology: &Topology) -> BTreeMap<usize, f64> {
    let all: f64 = cpus.iter().map(|cpu| cpu.own_s).sum();
    let share = |node: &NumaNode| {
        let here = cpus.iter().filter(|cpu| node.cpus.contains(cpu.cpu));
        let here: f64 = here.map(|cpu| cpu.own_s).sum();
        (node.node, if all > 0.0 { here / all } else { 0.0 })
    };
    topology.numa_nodes.iter().map(share).collect()
}

/// A finding about memory on nodes where hardly any thread ran.
pub(super) fn find_far_memory(memory: &MemoryRecord, source: &TraceSource) -> Option<Finding> {
    let percent_far = memory.far_percent?;
    let is_far = |node: &&NodePagesRecord| node.cpu_percent < MIN_USED_PERCENT && node.bytes > 0.0;
    let nodes: Vec<&NodePagesRecord> = memory.nodes.iter().filter(is_far).collect();
    let far_bytes: f64 = nodes.iter().map(|node| node.bytes).sum();
    if percent_far < MIN_FAR_PERCENT || far_bytes < MIN_FAR_BYTES {
        return None;
    }
    let words: Vec<String> = nodes.iter().map(|node| node.node.to_string()).collect();
    let most_used = memory
        .nodes
        .iter()
        .max_by(|a, b| a.cpu_percent.total_cmp(&b.cpu_percent))?;
    let sentence = format!(
        "{} of the program's memory ({}) is on NUMA node {}, where its threads hardly ran.",
        percent(percent_far / 100.0),
        bytes(far_bytes),
        words.join(", ")
    );
    let advice = match source {
        TraceSource::Process { pid, .. } => format!(
            "Move it with pinwise apply --pid {pid} --place one-numa:{} --memory, or run the threads where the memory is.",
            most_used.node
        ),
        _ => format!(
            "Start it with --place one-numa:{}/mem=bind, or run the threads where the memory is.",
            most_used.node
        ),
    };
    let finding = Finding::new("far-memory", Severity::Warning, sentence, advice);
    Some(
        finding
            .with_weight(8)
            .with_evidence("percent", percent_far)
            .with_evidence("bytes", far_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Topology {
        Topology::from_synthetic("package:2 [numa(memory=4GB)] core:2 pu:1").unwrap()
    }

    fn cpus(own_s: [f64; 4]) -> Vec<CpuTimeRecord> {
        let cpu = |(cpu, own_s)| CpuTimeRecord {
            cpu,
            own_s,
            foreign_s: None,
            idle_s: None,
            unknown_s: None,
            switches: None,
        };
        (0..).zip(own_s).map(cpu).collect()
    }

    /// A poll of pages; sizes in MiB.
    fn poll(time_ns: u64, nodes: [u64; 2], huge: u64) -> PagesSeen {
        PagesSeen {
            time_ns,
            nodes: [(0, nodes[0] << 20), (1, nodes[1] << 20)].into(),
            huge: huge << 20,
        }
    }

    #[test]
    fn polls_count_by_the_time_they_represent() {
        // A tenth of the time all was on node 0, then half of it moved.
        let seen = [poll(110, [400, 0], 0), poll(1010, [200, 200], 200)];
        let found = summarize(
            &seen,
            10,
            &cpus([3.0, 0.0, 1.0, 0.0]),
            &machine(),
            Some(true),
        )
        .unwrap();
        let nodes: Vec<(f64, u64, f64)> = found
            .nodes
            .iter()
            .map(|n| {
                (
                    n.bytes / f64::from(1 << 20),
                    n.last_bytes >> 20,
                    n.cpu_percent,
                )
            })
            .collect();
        assert_eq!(nodes, [(220.0, 200, 75.0), (180.0, 200, 25.0)]);
        let local = found.local.unwrap();
        // 75 % of 400, then 75 % and 25 % of 200 each.
        assert!((local.percent - 52.5).abs() < 1e-9, "{local:?}");
        assert_eq!((local.low, local.high), (50.0, 75.0));
        assert!((found.huge_percent - 45.0).abs() < 1e-9);
        assert_eq!(found.far_percent, Some(0.0));
        assert_eq!((found.looks, found.is_balanced), (2, Some(true)));
    }

    #[test]
    fn memory_on_unused_nodes_is_far() {
        let source = TraceSource::Process {
            pid: 7,
            name: "prog".to_owned(),
        };
        let found = |pages, own_s| {
            let seen = [poll(1000, pages, 0)];
            summarize(&seen, 0, &cpus(own_s), &machine(), None).unwrap()
        };
        let seen = found([100, 300], [5.0, 5.0, 0.05, 0.0]);
        assert_eq!(seen.far_percent, Some(75.0));
        let finding = find_far_memory(&seen, &source).unwrap();
        assert!(
            finding
                .advice
                .contains("--pid 7 --place one-numa:0 --memory"),
            "{}",
            finding.advice
        );
        assert!(
            finding
                .sentence
                .contains("75.0 % of the program's memory (300 MiB)"),
            "{}",
            finding.sentence
        );
        // Too little of it, as a share or in total.
        for pages in [[4, 12], [2000, 100]] {
            assert!(find_far_memory(&found(pages, [5.0, 5.0, 0.0, 0.0]), &source).is_none());
        }
        // Both nodes are used.
        assert!(find_far_memory(&found([100, 300], [5.0, 0.0, 1.0, 0.0]), &source).is_none());
    }

    #[test]
    fn on_one_node_no_memory_is_far() {
        let topology = Topology::from_synthetic("core:2 pu:1").unwrap();
        let seen = [PagesSeen {
            time_ns: 5,
            nodes: [(0, 4096)].into(),
            huge: 0,
        }];
        let found = summarize(&seen, 0, &cpus([1.0; 4]), &topology, None).unwrap();
        assert_eq!((found.local, found.far_percent), (None, None));
        assert!(summarize(&[], 0, &[], &topology, None).is_none());
    }
}
