//! Captured machines: the text form round-trips, and whatever the files say, a
//! consistent machine comes out.

use crate::invariants::check_topology;
use pinwise_affinity::Host;
use pinwise_topology::{Capture, Topology, wanted_cgroup_files};

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    // Mutations mostly spoil the last line, without which nothing is read.
    let ended = || Capture::from_text(&format!("{text}\nend\n"));
    let Ok(capture) = Capture::from_text(text).or_else(|_| ended()) else { return };
    assert_eq!(
        Capture::from_text(&capture.to_text()).as_ref(),
        Ok(&capture)
    );
    let _ = wanted_cgroup_files(&capture);
    let (topology, warnings) = Topology::from_capture(&capture);
    check_topology(&topology, &warnings);
    let (few, warnings) = Topology::from_files(&mut &capture);
    check_topology(&few, &warnings);
    if let Ok(host) = Host::from_topology(few) {
        let places = host.place(0);
        assert!(places.cpus().is_subset(&host.topology().allowed));
        assert_eq!(places.threads(), host.workers().parallelism);
    }
}
