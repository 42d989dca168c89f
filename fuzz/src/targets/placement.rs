//! Placement names: they survive printing and parsing, and on machines of several shapes they stay
//! inside the allowed CPUs.

use std::sync::LazyLock;

use crate::invariants::{check_placement, check_shown};
use pinwise_placement::{Placement, equivalents, merge_equivalent};
use pinwise_topology::{Capture, Topology};

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let placement: Placement = match text.parse() {
        Ok(placement) => placement,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(placement.to_string().parse().as_ref(), Ok(&placement));
    check_shown(&placement.to_string());
    for topology in MACHINES.iter() {
        if let Some(realised) = check_placement(&placement, topology) {
            assert!(!equivalents(&realised, topology).is_empty());
            assert_eq!(merge_equivalent(vec![realised.clone(), realised]).len(), 1);
        }
    }
}

static MACHINES: LazyLock<Vec<Topology>> = LazyLock::new(|| {
    let mut machines: Vec<Topology> = [
        "pu:1",
        "package:2 [numa(memory=1GB)] l3:2 core:2 pu:2",
        "package:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)",
    ]
    .map(|description| Topology::from_synthetic(description).expect("a description"))
    .to_vec();
    machines.push(build_hybrid_machine());
    machines
});

/// CPUs 0-7 of two kinds; 7 is off, the cpuset leaves 2-7.
fn build_hybrid_machine() -> Topology {
    let mut capture = Capture::new();
    for cpu in 0..8 {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        let first = cpu / 2 * 2;
        let siblings = format!("{first}-{}", first + 1);
        capture.insert(format!("{folder}/core_cpus_list"), siblings);
    }
    for (path, content) in [
        ("sys/devices/system/cpu/online", "0-6"),
        ("sys/devices/cpu_core/cpus", "0-3"),
        ("sys/devices/cpu_atom/cpus", "4-7"),
        ("pinwise/affinity", "2-7"),
    ] {
        capture.insert(path, content);
    }
    Topology::from_capture(&capture).0
}
