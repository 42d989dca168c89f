//! How long it takes to list the placements of a machine.

use anyhow::Result;

use super::{Setting, library_benchmark};

pub(super) fn run(_: &Setting) -> Result<String> {
    let tables = library_benchmark("placement", &[])?;
    Ok(format!(
        "## Placements of a machine

All placements of threads on a machine, up to the exchange of equal units:
counted, drawn, and narrowed to the evenly spread ones that a search tries.

{}",
        tables.trim_end()
    ))
}
