//! Tools and lists of CPUs: both are parsed or refused, and parsed CPUs are emitted for every tool.

use std::sync::LazyLock;

use crate::invariants::check_shown;
use pinwise_placement::emit::{Context, Target, Tool, emit};
use pinwise_placement::{CpuLimit, Kind, Placement, Wish};
use pinwise_topology::{CpuSet, Topology};

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let machine = &*MACHINE;
    if let Err(error) = Target::parse_list(text) {
        assert!(!error.to_string().is_empty());
    }
    if let Ok(set) = CpuSet::parse_list(text) {
        check(set, text, machine);
    }
}

fn check(set: CpuSet, text: &str, machine: &Topology) {
    let mut placement = Placement::new(Wish::Cpus(set.clone()));
    if text.len().is_multiple_of(2) {
        placement.kind = Kind::Bound;
    }
    let Ok(realised) = placement.realise(machine) else { return };
    let context = Context {
        command: vec![text.to_owned()],
        threads: None,
        limit: CpuLimit::new(text.len() as f64 / 7.0, CpuLimit::DEFAULT_PERIOD).ok(),
        environment: vec![("NAME".to_owned(), text.to_owned())],
    };
    for tool in Tool::ALL {
        let emission = emit(&Target::new(tool), &realised, machine, &context);
        assert!(!emission.pieces.is_empty());
        for sentence in emission.unsupported.iter().chain(&emission.notes) {
            check_shown(sentence);
        }
    }
}

static MACHINE: LazyLock<Topology> = LazyLock::new(|| {
    Topology::from_synthetic("package:2 [numa(memory=1GB)] l3:2 core:4 pu:2").expect("a machine")
});
