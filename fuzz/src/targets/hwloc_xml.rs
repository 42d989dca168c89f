//! hwloc's XML: refused with a reason, or a consistent machine with a CPU.

use crate::invariants::check_topology;
use pinwise_topology::Topology;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    match Topology::from_hwloc_xml(text) {
        Ok((topology, warnings)) => {
            assert!(!topology.online.is_empty());
            check_topology(&topology, &warnings);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
