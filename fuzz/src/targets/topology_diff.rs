//! Two machines as records, one per line, measured or not: a machine does not differ from itself, A
//! differs from B as B from A, and every output shows what was measured.

use crate::invariants::{check_shown, check_topology_faces};
use pinwise_record::{TopologyDiff, TopologyRecord, read};
use pinwise_report::Palette;
use pinwise_topology::Topology;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let records: Vec<TopologyRecord> = text
        .lines()
        .take(2)
        .filter_map(|line| read(line).ok())
        .collect();
    let Ok(topology) = Topology::from_synthetic("package:2 l3:1(size=1MB) core:2 pu:2") else { return };
    for record in &records {
        assert!(TopologyDiff::compare(["a", "a"], record, record).same);
        check_topology_faces(&topology, record);
    }
    if let [a, b] = &records[..] {
        let there = TopologyDiff::compare(["a", "b"], a, b);
        let back = TopologyDiff::compare(["b", "a"], b, a);
        assert_eq!(there.differences.len(), back.differences.len());
        check_shown(&pinwise_report::render_topology_diff(&there, Palette::default()));
    }
}
