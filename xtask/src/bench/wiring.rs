//! How often the wiring of real machines is found.

use anyhow::Result;

use super::{Setting, library_benchmark};

pub(super) fn run(_: &Setting) -> Result<String> {
    let tables = library_benchmark("wiring", &[])?;
    Ok(format!(
        "## Wiring from latency

Recorded latency matrices (core-to-core-latency, MIT) of machines whose wiring
is known; `docs/wiring.md` tells how it is inferred. A level counts where every
group has exactly its CPUs and the level is called by its kind; *any kind*
leaves names aside. Contention columns are simulated: siblings 1.6 ± 0.12,
others 1.02 ± 0.04, one pair in two hundred disturbed, five times. Guests have
some of a machine's CPUs, eight draws from each; their share of exact answers,
under any kind.

{}",
        tables.trim_end()
    ))
}
