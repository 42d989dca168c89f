//! Machines with invented measurements: packed records of `tests/data/measured`.

use crate::support::unpack;
use pinwise_record::{TopologyRecord, read};
use pinwise_topology::Topology;

/// A machine as reported, and the record of it with what was measured.
pub(crate) struct Machine {
    pub(crate) topology: Topology,
    pub(crate) record: TopologyRecord,
}

fn read_machine(name: &str) -> Machine {
    let text = unpack(&format!("measured/{name}.json.xz"));
    let record: TopologyRecord = read(std::str::from_utf8(&text).unwrap()).unwrap();
    let topology = record.to_topology();
    Machine { topology, record }
}

/// 8 cores with two CPUs each and two last-level caches: all as reported, except for the PAUSE of
/// one CPU.
pub(crate) fn desktop() -> Machine {
    read_machine("desktop")
}

/// Two CPUs that a hypervisor migrates.
pub(crate) fn drifting() -> Machine {
    read_machine("drifting")
}

/// Two sockets of 96 cores; four cores of each last-level cache were measured, the rest is inferred.
pub(crate) fn large() -> Machine {
    read_machine("large")
}
