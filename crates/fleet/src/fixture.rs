//! A fleet for unit tests.

use pinwise_record::{FLEET_SCHEMA, FleetRecord, FleetStep};

/// A fleet of these nodes, with steps `a` and `b`.
pub(super) fn fleet(nodes: &[&str]) -> FleetRecord {
    let step = |name: &str| FleetStep {
        name: name.to_owned(),
        arguments: vec!["bench".to_owned()],
        timeout_s: None,
    };
    FleetRecord {
        schema: FLEET_SCHEMA.to_owned(),
        id: "f".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        host: "login".to_owned(),
        user: None,
        pinwise: "1".to_owned(),
        launcher: "local".to_owned(),
        steps: vec![step("a"), step("b")],
        nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        asked: nodes.len(),
        folder: None,
        jobs: Vec::new(),
        left_out: Vec::new(),
        planted: Vec::new(),
        tags: vec!["t".to_owned()],
    }
}
