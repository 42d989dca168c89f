//! How often the wiring of real machines is found.

use anyhow::Result;

use super::{Setting, library_benchmark};

pub(super) fn run(_: &Setting) -> Result<String> {
    let tables = library_benchmark("wiring", &[])?;
    Ok(format!(
        "## Wiring from latency

Recorded latency matrices (core-to-core-latency, MIT) of machines whose wiring
is known; `docs/wiring.md` explains how it is inferred. A level counts where every
group has exactly its CPUs and the level is called by its kind; *any kind*
leaves names aside. Contention columns are simulated: siblings 1.6 ± 0.12,
others 1.02 ± 0.04, one pair in two hundred disturbed, five times. Guests have
some of a machine's CPUs, eight draws from each; their share of exact answers,
under any kind.

Thresholds are chosen by cross-validation: of the values within a standard error of
the best on all machines but one the middle, judged on that one (all under any kind,
by latency alone, 95 % intervals by Wilson with a machine as the unit). *Varied*: as
recorded; with 3 and 6 % noise; with 1 and 3 % of the pairs disturbed (1.3 to 4
times the time); ratios to the power 0.85 and 1.2; guests of 8, 16 and 32 CPUs.

Confidence is the probability that a level's groups are exactly right; the tables
say how often they were, on the varied machines, with and without contention. In
each class every machine counts once. *Machine unseen*: by weights that were fitted
without it.

{}",
        tables.trim_end()
    ))
}
