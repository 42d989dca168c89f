//! Error rates and power on known truth.

use anyhow::Result;

use super::{Setting, library_benchmark};

/// Comparisons per cell.
const REPLAYS: &str = "2000";

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
the intervals at the stop (95 % wanted). *Runs*: of all arms together.

{}",
        tables.trim_end()
    )
}
