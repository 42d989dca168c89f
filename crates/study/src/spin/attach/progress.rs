//! Progress loops of libraries, which poll queues until something arrives. They do so through
//! function pointers, so that the loop's code does not show whether it waits; they are recognised
//! by name instead.

use pinwise_profile::{Samples, Stack};

/// Parts of function names, and the libraries they belong to.
const LOOPS: [(&str, &str); 10] = [
    ("opal_progress", "Open MPI"),
    ("MPIDI_Progress", "MPICH"),
    ("MPIDI_progress", "MPICH"),
    ("MPIR_Progress", "MPICH"),
    ("ucp_worker_progress", "UCX"),
    ("uct_worker_progress", "UCX"),
    ("fi_cq_read", "libfabric"),
    ("ofi_cq_progress", "libfabric"),
    ("_rx_burst", "DPDK"),
    ("_recv_pkts", "DPDK"),
];

/// The library whose progress loop a stack is in.
pub(super) fn find_library(samples: &Samples, stack: &Stack) -> Option<&'static str> {
    let symbols = stack
        .frames
        .iter()
        .filter_map(|&frame| samples.frames[frame].symbol.as_ref());
    let mut names = symbols.map(|symbol| symbol.name.as_str());
    names.find_map(|name| {
        let known = LOOPS.iter().find(|(part, _)| name.contains(part));
        known.map(|(_, library)| *library)
    })
}
