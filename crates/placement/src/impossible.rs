//! Why a placement is not possible on a machine.

use pinwise_topology::CpuSet;

/// Why a placement is not possible on this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RealiseError {
    /// CPUs that the machine does not have.
    #[error("{placement}: there is no CPU {cpus} on this machine (it has {present})")]
    Absent {
        /// The placement.
        placement: String,
        /// Requested CPUs that do not exist.
        cpus: CpuSet,
        /// CPUs that exist.
        present: CpuSet,
    },
    /// Affinity and cpusets leave nothing.
    #[error("{placement}: this process may not use any CPU of this machine")]
    NothingAllowed {
        /// The placement.
        placement: String,
    },
    /// CPUs that are offline.
    #[error("{placement}: CPU {cpus} is offline")]
    Offline {
        /// The placement.
        placement: String,
        /// Requested CPUs that are offline.
        cpus: CpuSet,
    },
    /// CPUs that this process may not use.
    #[error("{placement}: CPU {cpus} is forbidden: the {by} leaves only {leaves}")]
    Forbidden {
        /// The placement.
        placement: String,
        /// Requested CPUs that are forbidden.
        cpus: CpuSet,
        /// What forbids them.
        by: String,
        /// What is left.
        leaves: CpuSet,
    },
    /// NUMA nodes without memory that this process may use.
    #[error("{placement}: this process may use no memory of node {nodes} (only of {usable})")]
    NoMemory {
        /// The placement.
        placement: String,
        /// Requested nodes.
        nodes: CpuSet,
        /// Nodes whose memory may be used.
        usable: CpuSet,
    },
    /// CPUs of which no NUMA node is reported.
    #[error(
        "{placement}: no NUMA node is reported for CPU {cpus}; name nodes with memory: {usable}"
    )]
    NoNode {
        /// The placement.
        placement: String,
        /// The CPUs.
        cpus: CpuSet,
        /// Nodes whose memory may be used.
        usable: CpuSet,
    },
    /// More CPUs than there are.
    #[error("{placement}: needs {wanted} CPUs, but only {available} are available")]
    TooMany {
        /// The placement.
        placement: String,
        /// Requested number.
        wanted: usize,
        /// Available number.
        available: usize,
    },
    /// A unit with a number that does not exist.
    #[error("{placement}: this process may use no {noun} {index} (only {known})")]
    NoSuchUnit {
        /// The placement.
        placement: String,
        /// The kind of unit.
        noun: &'static str,
        /// The requested number, from 0.
        index: usize,
        /// Existing numbers.
        known: CpuSet,
    },
    /// A level that the system does not report.
    #[error("{placement}: this machine reports no {noun}")]
    NotReported {
        /// The placement.
        placement: String,
        /// What is missing.
        noun: &'static str,
    },
    /// A device that the machine does not have.
    #[error("{placement}: there is no device '{device}' on this machine{hint}")]
    NoDevice {
        /// The placement.
        placement: String,
        /// The requested device.
        device: String,
        /// The existing devices, to follow the rest of the sentence.
        hint: String,
    },
    /// A device whose location is unknown.
    #[error("{placement}: the firmware does not say which CPUs are near {device}")]
    NotLocated {
        /// The placement.
        placement: String,
        /// The requested device.
        device: String,
    },
    /// None of the CPUs near a device may be used.
    #[error("{placement}: near {device} are CPUs {near}; this process may use only {allowed}")]
    NoneNear {
        /// The placement.
        placement: String,
        /// The requested device.
        device: String,
        /// The allowed CPUs.
        allowed: CpuSet,
        /// CPUs near the device.
        near: CpuSet,
    },
    /// All CPUs are near a device.
    #[error("{placement}: all CPUs that this process may use ({allowed}) are near {device}")]
    NoneFar {
        /// The placement.
        placement: String,
        /// The requested device.
        device: String,
        /// The allowed CPUs.
        allowed: CpuSet,
    },
    /// A shape whose numbers are inconsistent.
    #[error("{placement}: cannot take {wanted} from {from}")]
    Impossible {
        /// The placement.
        placement: String,
        /// The units that are missing.
        wanted: String,
        /// The units that should contain them.
        from: String,
    },
}
