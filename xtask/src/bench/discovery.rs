//! How long a program that places its own threads waits for the answer.

use anyhow::Result;

use super::{Setting, library_benchmark};

pub(super) fn run(_: &Setting) -> Result<String> {
    let tables = library_benchmark("discovery", &[])?;
    Ok(format!(
        "## Discovering a machine

What `threads::Host` costs a program that places its own threads, on a machine of
384 CPUs whose files are in memory, beside the whole report that the command reads
and hwloc's library.

{}",
        tables.trim_end()
    ))
}
