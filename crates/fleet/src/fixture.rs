//! A fleet for unit tests.

use pinwise_record::{FleetRecord, FleetStep, Header};

/// A fleet of these nodes, with steps `a` and `b`.
pub(super) fn sample_fleet(nodes: &[&str]) -> FleetRecord {
    let step = |name: &str| FleetStep {
        name: name.to_owned(),
        arguments: vec!["bench".to_owned()],
        timeout_s: None,
    };
    FleetRecord {
        header: Header::new("f", "2026-01-01T00:00:00Z", vec!["t".to_owned()]),
        host: "login".to_owned(),
        user: None,
        launcher: "local".to_owned(),
        steps: vec![step("a"), step("b")],
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        asked: nodes.len(),
        folder: None,
        jobs: Vec::new(),
        left_out: Vec::new(),
        planted: Vec::new(),
    }
}
