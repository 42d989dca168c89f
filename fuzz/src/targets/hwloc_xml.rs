//! hwloc's XML: refused with a reason, or a consistent machine with a CPU.

#![no_main]

use invariants::check_topology;
use libfuzzer_sys::fuzz_target;
use pinwise::topology::Topology;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match Topology::from_hwloc_xml(text) {
        Ok((topology, warnings)) => {
            assert!(!topology.online.is_empty());
            check_topology(&topology, &warnings);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
