//! A stored trace as rows: every slice if the record has them, else the shares of equal spans of
//! time. Nothing is computed here.

use std::collections::HashMap;

use super::table::{Cell, Table};
use super::trace_events::harmless;
use pinwise_record::{PackedError, PackedSlicesRecord, TraceRecord};

/// One row for each slice of a traced thread: `thread`, `process`, `name`, `cpu`, `start_s` since
/// the trace's beginning, `length_s`, `end`. For a trace too long for that, one for each CPU and
/// span: `cpu`, `start_s`, `length_s`, `own` and `foreign` as shares of it.
///
/// # Errors
/// Packed slices that are damaged or of a newer layout.
pub(super) fn rows(record: &TraceRecord) -> Result<Table, PackedError> {
    match &record.timeline.packed {
        Some(packed) => slices(record, packed),
        None => Ok(spans(record)),
    }
}

/// In the order of their end.
fn slices(record: &TraceRecord, packed: &PackedSlicesRecord) -> Result<Table, PackedError> {
    let mut all = packed.unpack_slices()?;
    all.sort_by_key(|slice| slice.start_ns + slice.length_ns);
    // The thread id may have been reused; its busiest owner is first.
    let mut owners = HashMap::new();
    for thread in &record.threads {
        owners.entry(thread.thread).or_insert(thread);
    }
    let mut table = Table::new([
        "thread", "process", "name", "cpu", "start_s", "length_s", "end",
    ]);
    for slice in all {
        let thread = owners.get(&slice.thread);
        table.push([
            Cell::whole(slice.thread),
            Cell::count(thread.and_then(|thread| thread.process)),
            Cell::text(harmless(thread.map_or("", |thread| &thread.name))),
            Cell::whole(slice.cpu),
            Cell::number(slice.start_ns as f64 * 1e-9),
            Cell::number(slice.length_ns as f64 * 1e-9),
            Cell::text(slice.end.as_str()),
        ]);
    }
    Ok(table)
}

fn spans(record: &TraceRecord) -> Table {
    let mut table = Table::new(["cpu", "start_s", "length_s", "own", "foreign"]);
    let length_s = record.timeline.span_s;
    for spans in &record.timeline.spans {
        let mut start_s = 0.0;
        for (index, own) in spans.own.iter().enumerate() {
            table.push([
                Cell::whole(spans.cpu),
                Cell::number(start_s),
                Cell::number(length_s),
                Cell::number(*own),
                Cell::number(spans.foreign.get(index).copied()),
            ]);
            start_s += length_s;
        }
    }
    table
}
