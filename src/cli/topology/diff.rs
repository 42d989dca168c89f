//! `topology diff`: shows what differs between two captures.

use std::path::Path;

use anyhow::Context;

use super::read_machine;
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, files};
use pinwise_record::{TopologyDiff, TopologyRecord};

pub(super) fn diff(a: &Path, b: &Path, terminal: &Terminal) -> anyhow::Result<Exit> {
    let names = [a, b].map(|path| path.display().to_string());
    let (record_a, record_b) = (load_record("A", a)?, load_record("B", b)?);
    let difference = TopologyDiff::compare([&names[0], &names[1]], &record_a, &record_b);
    terminal.show(&difference, pinwise_report::render_topology_diff)?;
    Ok(Exit::Done)
}

/// Loads a machine as a record, from a record's JSON or from what `--from` accepts.
fn load_record(argument: &str, path: &Path) -> anyhow::Result<TopologyRecord> {
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
