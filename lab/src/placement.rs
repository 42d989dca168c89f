//! The time to list the shapes of a machine and to count its placements.
//! The best of several rounds counts, since others use this machine, too.

use std::time::Instant;

use anyhow::Result;
use pinwise_placement::space::Space;
use pinwise_topology::Topology;

use crate::table::Table;

const ROUNDS: usize = 5;

pub(crate) fn run(_: &[String]) -> Result<()> {
    let mut table = Table::new(
        "placement",
        "machine | CPUs | threads | shapes | list, ms | count, ms",
    );
    for machine in [
        "core:8 pu:2",
        "package:2 l3:4 core:8 pu:2",
        "package:2 l3:12 core:8 pu:2",
        "package:2 l3:16 core:16 pu:2",
    ] {
        let topology = Topology::from_synthetic(machine)?;
        let space = Space::from_topology(&topology);
        let cpus = space.cpus();
        let threads = (1..=cpus)
            .max_by_key(|&threads| space.shapes(threads).len())
            .unwrap_or(1);
        let shapes = space.shapes(threads).len();
        let list = measure_best_ms(|| Space::from_topology(&topology).shapes(threads).len());
        let count = measure_best_ms(|| {
            let space = Space::from_topology(&topology);
            (1..=cpus).map(|n| space.count(n).bits()).sum::<u64>()
        });
        table.add_row(format!(
            "`{machine}` | {cpus} | {threads} | {shapes} | {list:.2} | {count:.1}"
        ));
    }
    table.publish()
}

/// The shortest of several rounds. Their results prevent their removal by the compiler.
fn measure_best_ms<T>(mut work: impl FnMut() -> T) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        std::hint::black_box(work());
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    best
}
