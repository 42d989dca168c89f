//! Descriptions such as `package:2 l3:2 core:4 pu:2`.

#![no_main]

use invariants::check_topology;
use libfuzzer_sys::fuzz_target;
use pinwise::topology::Topology;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match Topology::from_synthetic(text) {
        Ok(topology) => {
            assert!(!topology.online.is_empty());
            assert_eq!(topology.allowed, topology.online);
            check_topology(&topology, &[]);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
