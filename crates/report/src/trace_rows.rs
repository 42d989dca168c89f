//! A stored trace as rows: every slice if the record has them, else the shares of CPU time in equal
//! spans of time.

use std::collections::HashMap;

use super::table::{Cell, Table};
use super::trace_events::neutralise_name;
use pinwise_record::{PackedError, PackedSlicesRecord, TraceRecord};

/// A row for each slice of a traced thread: `thread`, `process`, `name`, `cpu`, `start_s` since the
/// start of the trace, `length_s`, `end`. For a trace that is too long for that, a row for each CPU
/// and span: `cpu`, `start_s`, `length_s`, `own` and `foreign` as shares of the span.
///
/// # Errors
/// Packed slices that are damaged or of a newer layout.
pub(super) fn list_trace_rows(record: &TraceRecord) -> Result<Table, PackedError> {
    match &record.timeline.packed {
        Some(packed) => list_slice_rows(record, packed),
        None => Ok(list_span_rows(record)),
    }
}

/// The slices in the order of their ends.
fn list_slice_rows(
    record: &TraceRecord,
    packed: &PackedSlicesRecord,
) -> Result<Table, PackedError> {
    let mut all = packed.unpack_slices()?;
    all.sort_by_key(|slice| slice.start_ns + slice.length_ns);
    // A thread id may have been reused: its busiest thread comes first, and is named.
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
            Cell::text(neutralise_name(thread.map_or("", |thread| &thread.name))),
            Cell::whole(slice.cpu),
            Cell::number(slice.start_ns as f64 * 1e-9),
            Cell::number(slice.length_ns as f64 * 1e-9),
            Cell::text(slice.end.as_str()),
        ]);
    }
    Ok(table)
}

fn list_span_rows(record: &TraceRecord) -> Table {
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
