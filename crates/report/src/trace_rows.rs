//! A stored trace as rows: every slice where the record has them, else the
//! shares of equal spans of time. Nothing is counted anew.

use std::collections::HashMap;

use super::table::{Cell, Holds, Table};
use super::trace_events::harmless;
use pinwise_record::{PackedError, PackedSlice, SliceRecord, TraceRecord};

/// One row for each slice of a traced thread: `thread`, `process`, `name`,
/// `cpu`, `start_s` since the trace's first moment, `length_s`, `end`. Of a
/// trace too long for that, one for each CPU and span: `cpu`, `start_s`,
/// `length_s`, `own` and `foreign` as shares of it.
///
/// # Errors
/// Packed slices that are damaged or of a newer layout.
pub(super) fn rows(record: &TraceRecord) -> Result<Table, PackedError> {
    let timeline = &record.timeline;
    Ok(match (&timeline.slices, &timeline.packed) {
        (Some(all), _) => slices(record, all.iter().cloned()),
        (None, Some(packed)) => slices(record, in_order(packed.slices()?).map(unpacked)),
        (None, None) => spans(record),
    })
}

/// In the order of their end, as slices that are kept as objects.
fn in_order(mut slices: Vec<PackedSlice<'_>>) -> impl Iterator<Item = PackedSlice<'_>> {
    slices.sort_by_key(|slice| slice.start_ns + slice.length_ns);
    slices.into_iter()
}

fn unpacked(slice: PackedSlice<'_>) -> SliceRecord {
    SliceRecord {
        thread: slice.thread,
        cpu: slice.cpu,
        start_s: slice.start_ns as f64 * 1e-9,
        length_s: slice.length_ns as f64 * 1e-9,
        end: slice.end.clone(),
    }
}

fn slices(record: &TraceRecord, all: impl Iterator<Item = SliceRecord>) -> Table {
    // The number may have come again; the busiest of its owners is first.
    let mut owners = HashMap::new();
    for thread in &record.threads {
        owners.entry(thread.thread).or_insert(thread);
    }
    let mut table = Table::new([
        ("thread", Holds::Whole),
        ("process", Holds::Whole),
        ("name", Holds::Text),
        ("cpu", Holds::Whole),
        ("start_s", Holds::Number),
        ("length_s", Holds::Number),
        ("end", Holds::Text),
    ]);
    for slice in all {
        let thread = owners.get(&slice.thread);
        table.push([
            Cell::whole(slice.thread),
            Cell::count(thread.and_then(|thread| thread.process)),
            Cell::text(harmless(thread.map_or("", |thread| &thread.name))),
            Cell::whole(slice.cpu),
            Cell::number(slice.start_s),
            Cell::number(slice.length_s),
            Cell::text(slice.end.as_str()),
        ]);
    }
    table
}

fn spans(record: &TraceRecord) -> Table {
    let mut table = Table::new([
        ("cpu", Holds::Whole),
        ("start_s", Holds::Number),
        ("length_s", Holds::Number),
        ("own", Holds::Number),
        ("foreign", Holds::Number),
    ]);
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
