//! Machines with made-up measurements, as probes would have found them: packed records of
//! `tests/data/measured`, which follow the types as those of `tests/data/records` do.

use crate::support::unpack;
use pinwise_record::{TopologyRecord, read};
use pinwise_topology::Topology;

/// A machine as reported, and the record of it with what was measured.
pub(crate) struct Machine {
    pub(crate) topology: Topology,
    pub(crate) record: TopologyRecord,
}

fn machine(name: &str) -> Machine {
    let text = unpack(&format!("measured/{name}.json.xz"));
    let record: TopologyRecord = read(std::str::from_utf8(&text).unwrap()).unwrap();
    let topology = record.to_topology();
    Machine { topology, record }
}

/// 8 cores with two CPUs each, two last-level caches: all as reported, but for one CPU whose PAUSE
/// is odd.
pub(crate) fn desktop() -> Machine {
    machine("desktop")
}

/// Two CPUs that a hypervisor moves about, as the research machine does.
pub(crate) fn drifting() -> Machine {
    machine("drifting")
}

/// Two sockets of 96 cores; four leaders of each last-level cache were measured, the rest is
/// inferred.
pub(crate) fn large() -> Machine {
    machine("large")
}
