//! The machine, as it stands in records.

use pinwise_machine::Machine;
use pinwise_record::HostRecord;
use pinwise_topology::Topology;

pub(crate) fn host_record(machine: &dyn Machine, topology: &Topology) -> HostRecord {
    HostRecord::new(machine.label(), machine.is_simulated(), topology)
}
