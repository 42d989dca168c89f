//! Which thread ran where and when, which waited, and when cores shared needlessly.
//!
//! All of this is stored as bytes: numbers as unsigned LEB128, the bytes as base64.
//! `docs/records.md` describes the layout number by number. This module does not judge what it
//! stores.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::named::open_enum;
use pinwise_sched::{LeaveReason, put_varints, take_varint};

/// The layout of packed numbers that this program writes and reads.
const FORM: &str = "varint/1";

/// Which thread ran where and when: every slice, or sums over equal spans of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimelineRecord {
    /// Every slice of traced threads; `null` if there were more than `most_packed`.
    pub packed: Option<PackedSlicesRecord>,
    /// Slices packed at most; a still longer trace has spans only.
    pub most_packed: usize,
    /// The longest waits; `null` if the source does not report it.
    pub waits: Option<PackedWaitsRecord>,
    /// When cores shared needlessly; `null` if the source does not report it.
    pub sharing: Option<PackedSharingRecord>,
    /// Length of a span, seconds.
    pub span_s: f64,
    /// Spans of each CPU.
    pub spans: Vec<CpuSpans>,
}

open_enum! {
    /// How a slice ended.
    SliceEnd from LeaveReason {
        /// The thread waits for something else.
        Blocked = "blocked",
        /// The thread was preempted.
        Preempted = "preempted",
        /// The thread ended.
        Ended = "ended",
        /// Not reported.
        Unreported = "unreported",
    }
}

open_enum! {
    /// The cause of a wait, or needless sharing.
    LossCause {
        /// The scheduler: a CPU that was allowed idled.
        Scheduler = "scheduler",
        /// The mask: only CPUs idled that it forbids.
        Mask = "mask",
        /// Threads of other programs.
        OtherProcesses = "other_processes",
        /// Threads of the same program.
        OwnThreads = "own_threads",
        /// The CPU had yet to start.
        Starting = "starting",
        /// The thread's own scheduling class.
        SchedulingClass = "scheduling_class",
        /// Not reported.
        Unreported = "unreported",
    }
}

/// What a CPU did in each span, as shares of it (0 to 1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuSpans {
    /// The CPU.
    pub cpu: usize,
    /// Share of traced threads.
    pub own: Vec<f64>,
    /// Share of others; empty if unknown.
    pub foreign: Vec<f64>,
}

/// Slices as bytes, CPU by CPU. Of each slice: ns since the CPU's last slice
/// ended (of the first: since the trace's first moment), its length in ns, and
/// its thread's place in `threads` times 4 plus the place of its end in `ends`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PackedSlicesRecord {
    /// `varint/1`.
    pub form: String,
    /// How many slices.
    pub count: u64,
    /// Threads; a reused thread id appears twice.
    pub threads: Vec<i32>,
    /// How slices end.
    pub ends: Vec<SliceEnd>,
    /// Slices of each CPU.
    pub cpus: Vec<PackedCpuRecord>,
}

/// Slices of a CPU as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PackedCpuRecord {
    /// The CPU.
    pub cpu: usize,
    /// How many slices.
    pub count: u64,
    /// The slices, base64-encoded.
    pub bytes: String,
}

/// Waits in the order of their beginning. Of each: ns from the beginning of
/// the one before (of the first: from the trace's first moment), its length in
/// ns, the CPU it was queued on, and its thread's place in `threads` times 8
/// plus the place of its cause in `causes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PackedWaitsRecord {
    /// `varint/1`.
    pub form: String,
    /// How many waits.
    pub count: u64,
    /// The shortest wait that is kept, ns.
    pub shortest_ns: u64,
    /// All that are left out: those shorter, and of very many all but the
    /// longest.
    pub left_out: LeftOutSpans,
    /// Threads.
    pub threads: Vec<i32>,
    /// Causes; of a wait that had several that of the longest part.
    pub causes: Vec<LossCause>,
    /// The waits, base64-encoded.
    pub bytes: String,
}

/// Needless sharing in the order of its beginning. Of each span: ns from the
/// beginning of the one before, its length in ns, the core, and the threads
/// that could have been alone times 4 plus the place of the cause in `causes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PackedSharingRecord {
    /// `varint/1`.
    pub form: String,
    /// How many spans.
    pub count: u64,
    /// If there are very many, all but the longest; the sum counts each thread.
    pub left_out: LeftOutSpans,
    /// The causes.
    pub causes: Vec<LossCause>,
    /// The spans, base64-encoded.
    pub bytes: String,
}

/// Spans that are not kept one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOutSpans {
    /// The number of them.
    pub count: u64,
    /// Their sum, ns.
    pub ns: u64,
}

/// A thread on a CPU from one switch to the next, in whole nanoseconds since the
/// trace's first moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedSlice<'a> {
    /// The thread.
    pub thread: i32,
    /// The CPU.
    pub cpu: usize,
    /// Its beginning, ns.
    pub start_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// How it ended.
    pub end: &'a SliceEnd,
}

/// Packed numbers that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackedError {
    /// A layout that this version does not know.
    #[error("unknown slice encoding '{0}'; use a newer pinwise")]
    UnknownForm(String),
    /// Bytes are missing or wrong.
    #[error("the packed slices of CPU {cpu} are damaged")]
    Damaged {
        /// The CPU.
        cpu: usize,
    },
}

impl PackedSlicesRecord {
    /// From the packed slices of each CPU.
    #[must_use]
    pub fn new(threads: Vec<i32>, cpus: Vec<PackedCpuRecord>) -> Self {
        Self {
            form: FORM.to_owned(),
            count: cpus.iter().map(|cpu| cpu.count).sum(),
            threads,
            ends: vec![
                SliceEnd::Blocked,
                SliceEnd::Preempted,
                SliceEnd::Ended,
                SliceEnd::Unreported,
            ],
            cpus,
        }
    }

    /// Unpacks the slices, CPU by CPU, each CPU's in the order of time.
    ///
    /// # Errors
    /// Another layout, or damaged bytes.
    pub fn unpack_slices(&self) -> Result<Vec<PackedSlice<'_>>, PackedError> {
        if self.form != FORM {
            return Err(PackedError::UnknownForm(self.form.clone()));
        }
        let mut slices = Vec::new();
        for cpu in &self.cpus {
            let damaged = PackedError::Damaged { cpu: cpu.cpu };
            self.unpack_cpu(cpu, &mut slices).ok_or(damaged)?;
        }
        Ok(slices)
    }

    fn unpack_cpu<'a>(
        &'a self,
        cpu: &PackedCpuRecord,
        to: &mut Vec<PackedSlice<'a>>,
    ) -> Option<()> {
        let bytes = STANDARD.decode(&cpu.bytes).ok()?;
        let mut rest = &bytes[..];
        let mut time_ns = 0u64;
        for _ in 0..cpu.count {
            let start_ns = time_ns.checked_add(take_varint(&mut rest)?)?;
            let length_ns = take_varint(&mut rest)?;
            let code = take_varint(&mut rest)?;
            to.push(PackedSlice {
                thread: *self.threads.get(usize::try_from(code >> 2).ok()?)?,
                cpu: cpu.cpu,
                start_ns,
                length_ns,
                end: self.ends.get(usize::try_from(code & 3).ok()?)?,
            });
            time_ns = start_ns.checked_add(length_ns)?;
        }
        rest.is_empty().then_some(())
    }
}

impl PackedCpuRecord {
    /// Slices of a CPU, already packed.
    #[must_use]
    pub fn new(cpu: usize, count: u64, bytes: &[u8]) -> Self {
        Self {
            cpu,
            count,
            bytes: STANDARD.encode(bytes),
        }
    }
}

/// A wait or a span of needless sharing before encoding: its start since the trace's beginning and
/// its length in ns, its place, and its thread and cause as one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedSpan {
    /// Its beginning, ns.
    pub start_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// CPU or core.
    pub place: u64,
    /// The last of the four numbers.
    pub code: u64,
}

fn pack(spans: impl Iterator<Item = PackedSpan>) -> String {
    let mut bytes = Vec::new();
    let mut before_ns = 0;
    for span in spans {
        let gap_ns = span.start_ns.saturating_sub(before_ns);
        before_ns = span.start_ns;
        put_varints(&mut bytes, [gap_ns, span.length_ns, span.place, span.code]);
    }
    STANDARD.encode(&bytes)
}

/// Unpacks spans; `None` if they are damaged.
#[cfg(test)]
fn unpack(count: u64, bytes: &str) -> Option<Vec<PackedSpan>> {
    let bytes = STANDARD.decode(bytes).ok()?;
    let mut rest = &bytes[..];
    let mut start_ns = 0u64;
    let mut spans = Vec::new();
    for _ in 0..count {
        start_ns = start_ns.checked_add(take_varint(&mut rest)?)?;
        spans.push(PackedSpan {
            start_ns,
            length_ns: take_varint(&mut rest)?,
            place: take_varint(&mut rest)?,
            code: take_varint(&mut rest)?,
        });
    }
    rest.is_empty().then_some(spans)
}

impl PackedWaitsRecord {
    /// Packs waits that are in the order of time; `code` is the thread's place
    /// times 8 plus the cause's.
    #[must_use]
    pub fn new(
        shortest_ns: u64,
        left_out: LeftOutSpans,
        threads: Vec<i32>,
        waits: &[PackedSpan],
    ) -> Self {
        Self {
            form: FORM.to_owned(),
            count: waits.len() as u64,
            shortest_ns,
            left_out,
            threads,
            causes: vec![
                LossCause::Scheduler,
                LossCause::Mask,
                LossCause::OtherProcesses,
                LossCause::OwnThreads,
                LossCause::Starting,
                LossCause::SchedulingClass,
                LossCause::Unreported,
            ],
            bytes: pack(waits.iter().copied()),
        }
    }

    /// Unpacks the waits; `None` if they are damaged.
    #[cfg(test)]
    fn unpack_waits(&self) -> Option<Vec<PackedSpan>> {
        unpack(self.count, &self.bytes).filter(|_| self.form == FORM)
    }
}

impl PackedSharingRecord {
    /// Packs spans that are in the order of time; `code` is the threads times
    /// 4 plus the cause's place.
    #[must_use]
    pub fn new(left_out: LeftOutSpans, spans: &[PackedSpan]) -> Self {
        Self {
            form: FORM.to_owned(),
            count: spans.len() as u64,
            left_out,
            causes: vec![
                LossCause::Scheduler,
                LossCause::Mask,
                LossCause::OtherProcesses,
            ],
            bytes: pack(spans.iter().copied()),
        }
    }

    /// Unpacks the spans; `None` if they are damaged.
    #[cfg(test)]
    fn unpack_spans(&self) -> Option<Vec<PackedSpan>> {
        unpack(self.count, &self.bytes).filter(|_| self.form == FORM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack_slices(numbers: &[[u64; 3]]) -> PackedSlicesRecord {
        let mut bytes = Vec::new();
        for &three in numbers {
            put_varints(&mut bytes, three);
        }
        let cpu = PackedCpuRecord::new(2, numbers.len() as u64, &bytes);
        PackedSlicesRecord::new(vec![7, 9], vec![cpu])
    }

    #[test]
    fn gaps_become_times() {
        let record = pack_slices(&[[5, 10, 0], [0, 3, 4 + 1], [100, 1, 2]]);
        // The page's tests read the same bytes.
        assert_eq!(record.cpus[0].bytes, "BQoAAAMFZAEC");
        let slices = record.unpack_slices().unwrap();
        let listed: Vec<_> = slices
            .iter()
            .map(|s| (s.thread, s.cpu, s.start_ns, s.length_ns, s.end))
            .collect();
        assert_eq!(
            listed,
            [
                (7, 2, 5, 10, &SliceEnd::Blocked),
                (9, 2, 15, 3, &SliceEnd::Preempted),
                (7, 2, 118, 1, &SliceEnd::Ended),
            ]
        );
    }

    #[test]
    fn damage_is_reported() {
        let mut record = pack_slices(&[[5, 10, 0], [0, 3, 4]]);
        record.cpus[0].count = 3;
        let damaged = Err(PackedError::Damaged { cpu: 2 });
        assert_eq!(record.unpack_slices(), damaged);
        record.cpus[0].count = 1;
        assert_eq!(record.unpack_slices(), damaged);
        record.cpus[0].bytes = "no base64!".to_owned();
        assert_eq!(record.unpack_slices(), damaged);
        assert_eq!(
            pack_slices(&[[0, 1, 2 << 2]]).unpack_slices(),
            damaged,
            "no such thread"
        );
        assert_eq!(pack_slices(&[[1, u64::MAX, 0]]).unpack_slices(), damaged);
        record.form = "varint/2".to_owned();
        let listed = record.unpack_slices().unwrap_err().to_string();
        assert!(listed.contains("varint/2"), "{listed}");
    }

    proptest! {
        #[test]
        fn spans_round_trip(
            mut spans in prop::collection::vec((0u64..1 << 50, any::<u64>(), 0u64..4096, any::<u64>()), 0..50)
        ) {
            spans.sort_unstable();
            let spans: Vec<PackedSpan> = spans
                .into_iter()
                .map(|(start_ns, length_ns, place, code)| PackedSpan { start_ns, length_ns, place, code })
                .collect();
            let waits = PackedWaitsRecord::new(1, LeftOutSpans::default(), vec![1], &spans);
            prop_assert_eq!(waits.unpack_waits(), Some(spans.clone()));
            let sharing = PackedSharingRecord::new(LeftOutSpans::default(), &spans);
            prop_assert_eq!(sharing.unpack_spans(), Some(spans));
        }
    }
}
