//! Describes the machine for records.

use pinwise_machine::Host;
use pinwise_record::HostRecord;
use pinwise_topology::Topology;

pub(crate) fn host_record(machine: &(impl Host + ?Sized), topology: &Topology) -> HostRecord {
    HostRecord::new(machine.label(), machine.is_simulated(), topology)
}
