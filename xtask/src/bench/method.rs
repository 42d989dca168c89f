//! Error rates and power on known truth.

use anyhow::Result;

use super::{Setting, library_benchmark};

/// Comparisons per cell.
const REPLAYS: &str = "1000";

pub(super) fn run(_: &Setting) -> Result<String> {
    let tables = library_benchmark("method", &[REPLAYS])?;
    Ok(section(&tables))
}

fn section(tables: &str) -> String {
    format!(
        "## Error rates, coverage and power on known truth

Whole comparisons on simulated machines, through the code that real ones go
through. The noise is a recording, replayed in time order from a random moment:
`light_cpu` and `medium_mem` were recorded beside other jobs on a virtual machine of two
CPUs, the others on a similar one under more load. *False claims*: comparisons
with at least one arm called faster or slower that was not (limit 5 %).
*Found*: the planted effect was found in the right direction. *Coverage*: of
the intervals at the stop (95 % wanted). *Runs*: of all arms together. In
brackets: 95 % intervals (Wilson 1927).

The second table judges the mean and the 90th percentile of equal arms. The third
has arms that differ in something else than a factor: runs of 66 ms; *spread 1:5*
means that one arm's standard deviation is five times the other's around the same
centre; *leaves 5 %* that whatever runs after the arm takes 5 % longer. *Faster*,
*slower*: verdicts on the second arm, false where the centres are the same. *By
order, time, load*: the finding says that the difference depends on it. The fourth
and the fifth count what `record diff` and `fleet diff` claim where nothing changed (the
second session is 3 % slower as a whole).

{}",
        tables.trim_end()
    )
}
