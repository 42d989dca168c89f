//! `topology diff`: what changed between two captures.

use std::path::Path;

use anyhow::Context;

use super::read_machine;
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, files};
use pinwise_record::{TopologyDiff, TopologyRecord};

pub(super) fn diff(a: &Path, b: &Path, terminal: &Terminal) -> anyhow::Result<Exit> {
    let names = [a, b].map(|path| path.display().to_string());
    let (of_a, of_b) = (record_of("A", a)?, record_of("B", b)?);
    let found = TopologyDiff::compare([&names[0], &names[1]], &of_a, &of_b);
    terminal.show(&found, pinwise_report::topology_diff)?;
    Ok(Exit::Done)
}

/// A machine as a record: read as one, or made from whatever `--from` takes.
fn record_of(argument: &str, path: &Path) -> anyhow::Result<TopologyRecord> {
    let named = || format!("{argument} {}", path.display());
    let text = match path.is_dir() {
        true => None,
        false => Some(files::read_machine_file(path).with_context(named)?),
    };
    if let Some(text) = text
        .as_deref()
        .filter(|text| text.trim_start().starts_with('{'))
    {
        return pinwise_record::read(text).with_context(named);
    }
    let (topology, warnings) = read_machine(argument, path, text)?;
    Ok(TopologyRecord::new(&topology, &warnings))
}
