//! A stored trace as CSV: every slice where the record has them, else the
//! shares of equal spans of time. Nothing is counted anew.

use std::collections::HashMap;

use super::trace_events::harmless;
use crate::record::{PackedSlice, SliceRecord, TraceRecord};

/// One line for each slice of a traced thread: `thread`, `process`, `name`,
/// `cpu`, `start_s` since the trace's first moment, `length_s`, `end`. Of a
/// trace too long for that, one for each CPU and span: `cpu`, `start_s`,
/// `length_s`, `own` and `foreign` as shares of it.
///
/// # Errors
/// Packed slices that are damaged or of a newer layout; the CSV writer's words,
/// in the unlikely case that it has any.
pub fn trace_csv(record: &TraceRecord) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let timeline = &record.timeline;
    match (&timeline.slices, &timeline.packed) {
        (Some(slices), _) => write_slices(record, slices.iter().cloned(), &mut writer)?,
        (None, Some(packed)) => {
            let slices = packed.slices().map_err(std::io::Error::other)?;
            write_slices(record, in_order(slices).map(unpacked), &mut writer)?;
        }
        (None, None) => write_spans(record, &mut writer)?,
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

type Writer = csv::Writer<Vec<u8>>;

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
        end: slice.end.to_owned(),
    }
}

fn write_slices(
    record: &TraceRecord,
    slices: impl Iterator<Item = SliceRecord>,
    writer: &mut Writer,
) -> Result<(), csv::Error> {
    // The number may have come again; the busiest of its owners is first.
    let mut owners = HashMap::new();
    for thread in &record.threads {
        owners.entry(thread.thread).or_insert(thread);
    }

    writer.write_record([
        "thread", "process", "name", "cpu", "start_s", "length_s", "end",
    ])?;
    for slice in slices {
        let thread = owners.get(&slice.thread);
        let process = thread.and_then(|thread| thread.process);
        writer.write_record([
            slice.thread.to_string(),
            process
                .map(|process| process.to_string())
                .unwrap_or_default(),
            harmless(thread.map_or("", |thread| &thread.name)),
            slice.cpu.to_string(),
            slice.start_s.to_string(),
            slice.length_s.to_string(),
            slice.end,
        ])?;
    }
    Ok(())
}

fn write_spans(record: &TraceRecord, writer: &mut Writer) -> Result<(), csv::Error> {
    let length_s = record.timeline.span_s;
    writer.write_record(["cpu", "start_s", "length_s", "own", "foreign"])?;
    for spans in &record.timeline.spans {
        let mut start_s = 0.0;
        for (index, own) in spans.own.iter().enumerate() {
            let foreign = spans.foreign.get(index);
            writer.write_record([
                spans.cpu.to_string(),
                start_s.to_string(),
                length_s.to_string(),
                own.to_string(),
                foreign.map(|share| share.to_string()).unwrap_or_default(),
            ])?;
            start_s += length_s;
        }
    }
    Ok(())
}
