//! Two machines as records, one per line, measured or not: a machine does not
//! differ from itself, A differs from B as B from A, and every face shows what
//! was measured.

#![no_main]

use invariants::{check_shown, check_topology_faces};
use libfuzzer_sys::fuzz_target;
use pinwise::record::{TOPOLOGY_SCHEMA, TopologyDiff, TopologyRecord, read};
use pinwise::report::{self, Palette};
use pinwise::topology::Topology;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let records: Vec<TopologyRecord> = text
        .lines()
        .take(2)
        .filter_map(|line| read(line, TOPOLOGY_SCHEMA).ok())
        .collect();
    let Ok(topology) = Topology::from_synthetic("package:2 l3:1(size=1MB) core:2 pu:2") else {
        return;
    };
    for record in &records {
        assert!(TopologyDiff::between(["a", "a"], record, record).same);
        check_topology_faces(&topology, record);
    }
    if let [a, b] = &records[..] {
        let there = TopologyDiff::between(["a", "b"], a, b);
        let back = TopologyDiff::between(["b", "a"], b, a);
        assert_eq!(there.differences.len(), back.differences.len());
        check_shown(&report::topology_diff(&there, Palette::default()));
    }
});
