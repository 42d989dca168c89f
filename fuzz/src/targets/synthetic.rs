//! Descriptions such as `package:2 l3:2 core:4 pu:2`.

use crate::invariants::check_topology;
use pinwise_topology::Topology;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match Topology::from_synthetic(text) {
        Ok(topology) => {
            assert!(!topology.online.is_empty());
            assert_eq!(topology.allowed, topology.online);
            check_topology(&topology, &[]);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
