//! Writes the analysis's timeline into the record: slices, waits and sharing, as packed numbers.

use std::collections::BTreeMap;

use super::seconds;
use pinwise_record::{
    CpuSpans, LeftOutSpans, PackedCpuRecord, PackedSharingRecord, PackedSlicesRecord, PackedSpan,
    PackedWaitsRecord, TimelineRecord,
};
use pinwise_sched::{
    LeftOut, MAX_PACKED, PackedSlices, SHORTEST_WAIT_NS, SharingCause, SharingSpans, Timeline,
    WaitCause, WaitSpans,
};

pub(super) fn make_record(listed: &Timeline, from_ns: u64) -> TimelineRecord {
    let shares = |spans: &[u64]| -> Vec<f64> {
        let share = |&ns: &u64| (ns as f64 / listed.bucket_ns as f64 * 1e4).round() / 1e4;
        spans.iter().map(share).collect()
    };
    TimelineRecord {
        packed: listed.packed.as_ref().map(pack_slices),
        most_packed: MAX_PACKED,
        waits: listed
            .waits
            .as_ref()
            .map(|waits| pack_waits(waits, from_ns)),
        sharing: listed
            .sharing
            .as_ref()
            .map(|sharing| pack_sharing(sharing, from_ns)),
        span_s: seconds(listed.bucket_ns),
        spans: listed
            .buckets
            .iter()
            .map(|cpu| CpuSpans {
                cpu: cpu.cpu as usize,
                own: shares(&cpu.own_ns),
                foreign: shares(&cpu.foreign_ns),
            })
            .collect(),
    }
}

fn pack_slices(listed: &PackedSlices) -> PackedSlicesRecord {
    let cpu = |cpu: &pinwise_sched::CpuSlices| {
        PackedCpuRecord::new(cpu.cpu as usize, cpu.count, &cpu.bytes)
    };
    PackedSlicesRecord::new(
        listed.threads.clone(),
        listed.cpus.iter().map(cpu).collect(),
    )
}

const fn record_left_out(listed: LeftOut) -> LeftOutSpans {
    LeftOutSpans {
        count: listed.count,
        ns: listed.ns,
    }
}

/// A wait's code: the index of its thread, then 3 bits for its cause.
fn pack_waits(listed: &WaitSpans, from_ns: u64) -> PackedWaitsRecord {
    let mut threads = Vec::new();
    let mut indexes = BTreeMap::new();
    let mut span = |wait: &pinwise_sched::Wait| {
        let index = *indexes.entry(wait.thread).or_insert_with(|| {
            threads.push(wait.thread);
            threads.len() as u64 - 1
        });
        let why = match wait.cause {
            WaitCause::Scheduler => 0,
            WaitCause::Mask => 1,
            WaitCause::Others => 2,
            WaitCause::Own => 3,
            WaitCause::Starting => 4,
            WaitCause::Class => 5,
            WaitCause::Unreported => 6,
        };
        PackedSpan {
            start_ns: wait.start_ns.saturating_sub(from_ns),
            length_ns: wait.end_ns.saturating_sub(wait.start_ns),
            place: u64::from(wait.cpu),
            code: index << 3 | why,
        }
    };
    let spans: Vec<PackedSpan> = listed.waits.iter().map(&mut span).collect();
    let left_out = record_left_out(listed.left_out);
    PackedWaitsRecord::new(SHORTEST_WAIT_NS, left_out, threads, &spans)
}

/// A sharing's code: the number of its threads, then 2 bits for its cause.
fn pack_sharing(listed: &SharingSpans, from_ns: u64) -> PackedSharingRecord {
    let span = |span: &pinwise_sched::SharingSpan| {
        let blame = match span.cause {
            SharingCause::Scheduler => 0,
            SharingCause::Mask => 1,
            SharingCause::Others => 2,
        };
        PackedSpan {
            start_ns: span.start_ns.saturating_sub(from_ns),
            length_ns: span.end_ns.saturating_sub(span.start_ns),
            place: span.core as u64,
            code: u64::from(span.threads) << 2 | blame,
        }
    };
    let spans: Vec<PackedSpan> = listed.spans.iter().map(span).collect();
    PackedSharingRecord::new(record_left_out(listed.left_out), &spans)
}

#[cfg(test)]
mod tests {
    use super::super::{TraceDetails, TraceRecorder};
    use crate::host::host_record;
    use pinwise_record::{HostRecord, SliceEnd, TraceRecord, TraceSource, TraceTier};
    use pinwise_sched::{Event, EventKind, IDLE, LeaveReason, Tier};
    use pinwise_sim::SimulatedMachine;
    use pinwise_topology::Topology;
    use proptest::prelude::*;

    fn host() -> HostRecord {
        let text = "topology = \"package:1 core:2 pu:2\"";
        let machine = SimulatedMachine::from_text("small", text, 1).unwrap();
        host_record(
            &machine,
            &Topology::from_synthetic("package:1 core:2 pu:2").unwrap(),
        )
    }

    /// Thread, CPU, start and length in ns, and how the slice ended.
    type Seen = (i32, usize, u64, u64, SliceEnd);

    /// Records two threads that take turns on CPUs 0 and 1, with these lengths and gaps in ns.
    /// Returns the record, and the slices that it must have.
    fn record_turns(slices: usize, lengths: &[u64], gaps: &[u64]) -> (TraceRecord, Vec<Seen>) {
        let topology = Topology::from_synthetic("package:1 core:2 pu:2").unwrap();
        let mut recorder = TraceRecorder::new(&topology, Tier::Bpf.scope());
        let mut time_ns = 50;
        let mut seen = Vec::new();
        let mut add = |time_ns, cpu, what| recorder.add(&[Event { time_ns, cpu, what }]);
        for cpu in 0..4 {
            let (prev, left, next) = (IDLE, LeaveReason::Blocked, IDLE);
            add(time_ns, cpu, EventKind::Switch { prev, left, next });
        }
        for at in 0..slices {
            let cpu = u32::from(at % 2 == 1);
            let thread = 5 + i32::from(at / 3 % 2 == 1);
            time_ns += gaps[at % gaps.len()];
            let left = if at % 5 == 0 {
                LeaveReason::Ended
            } else {
                LeaveReason::Blocked
            };
            let (prev, next) = (IDLE, thread);
            add(time_ns, cpu, EventKind::Switch { prev, left, next });
            let length_ns = lengths[at % lengths.len()];
            seen.push((thread, cpu as usize, time_ns - 50, length_ns, left.into()));
            time_ns += length_ns;
            let (prev, next) = (thread, IDLE);
            add(time_ns, cpu, EventKind::Switch { prev, left, next });
        }
        let record = recorder.finish(TraceDetails {
            source: TraceSource::Machine,
            tier: TraceTier::Simulated,
            host: host(),
            span_ns: None,
            throttled: None,
            notes: Vec::new(),
            tags: Vec::new(),
        });
        (record, seen)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn packed_slices_unpack_to_the_same_slices(
            lengths in prop::collection::vec(1u64..1 << 36, 1..7),
            gaps in prop::collection::vec(0u64..1 << 36, 1..7),
        ) {
            let (record, seen) = record_turns(20_000, &lengths, &gaps);
            let packed = record.timeline.packed.as_ref().unwrap();
            prop_assert_eq!(packed.count, 20_000);
            let mut listed = packed.unpack_slices().unwrap();
            listed.sort_by_key(|slice| (slice.start_ns + slice.length_ns, slice.start_ns));
            let sum: u64 = listed.iter().map(|slice| slice.length_ns).sum();
            let cpu_ns = (record.figures.totals.cpu_s * 1e9).round();
            prop_assert!((sum as f64 - cpu_ns).abs() <= 1e-9 * cpu_ns);
            let listed: Vec<Seen> = listed
                .into_iter()
                .map(|s| (s.thread, s.cpu, s.start_ns, s.length_ns, s.end.clone()))
                .collect();
            prop_assert_eq!(listed, seen);
        }
    }
}
