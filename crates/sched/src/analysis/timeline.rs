//! Builds the timeline: packed slices up to a limit, the longest waits, and buckets of time that
//! grow coarser in longer traces. Memory grows with CPUs, not with time.

use super::super::summary::{
    CpuBuckets, CpuSlices, MAX_PACKED, PackedSlices, SHORTEST_WAIT_NS, Slice, Timeline, Wait,
    WaitSpans,
};
use super::super::{LeaveReason, Tid, put_varints};
use super::longest::{Longest, Span};

/// Limits the waits that are kept.
const MAX_WAITS: usize = 100_000;

/// Limits the buckets of each CPU.
const MAX_BUCKETS: usize = 512;
/// Length of a bucket at the start, ns.
const SHORTEST_BUCKET_NS: u64 = 100_000;

#[derive(Debug)]
pub(super) struct TimelineBuilder {
    from_ns: Option<u64>,
    /// `None` if there were too many slices.
    slices: Option<SlicePacker>,
    waits: Longest<Wait>,
    bucket_ns: u64,
    /// By CPU, the time of followed threads and of others in each bucket, ns.
    cpus: Vec<[Vec<u64>; 2]>,
}

impl TimelineBuilder {
    pub(super) const fn new() -> Self {
        Self {
            from_ns: None,
            slices: Some(SlicePacker::new()),
            waits: Longest::new(MAX_WAITS, SHORTEST_WAIT_NS),
            bucket_ns: SHORTEST_BUCKET_NS,
            cpus: Vec::new(),
        }
    }

    /// Sets the start of the trace, unless it is set.
    pub(super) fn begin(&mut self, time_ns: u64) {
        self.from_ns.get_or_insert(time_ns);
    }

    /// Adds a slice; `index` is the thread's index among those with slices, set by its first one.
    pub(super) fn add_slice(&mut self, slice: Slice, index: &mut Option<u32>) {
        if let Some(slices) = &mut self.slices {
            if slices.count == MAX_PACKED {
                self.slices = None;
            } else {
                slices.add(slice, self.from_ns.unwrap_or(slice.start_ns), index);
            }
        }
    }

    pub(super) fn add_wait(&mut self, wait: Wait) {
        self.waits.push(wait);
    }

    /// Adds time in which a CPU was busy, with a followed thread (`is_own`) or another.
    pub(super) fn add_busy(&mut self, cpu: u32, is_own: bool, start_ns: u64, end_ns: u64) {
        let from_ns = *self.from_ns.get_or_insert(start_ns);
        let (mut at, end) = (
            start_ns.saturating_sub(from_ns),
            end_ns.saturating_sub(from_ns),
        );
        self.extend_buckets(end);
        let index = cpu as usize;
        if index >= self.cpus.len() {
            self.cpus.resize_with(index + 1, Default::default);
        }
        let buckets = &mut self.cpus[index][usize::from(!is_own)];
        while at < end {
            let bucket = at / self.bucket_ns;
            let stop = end.min((bucket + 1).saturating_mul(self.bucket_ns));
            let bucket = usize::try_from(bucket).unwrap_or(MAX_BUCKETS - 1);
            if bucket >= buckets.len() {
                buckets.resize(bucket + 1, 0);
            }
            buckets[bucket] += stop - at;
            at = stop;
        }
    }

    /// Makes buckets longer until they reach this moment.
    fn extend_buckets(&mut self, end_ns: u64) {
        while end_ns > self.bucket_ns.saturating_mul(MAX_BUCKETS as u64) {
            self.join_buckets();
        }
    }

    /// Joins pairs of buckets.
    fn join_buckets(&mut self) {
        self.bucket_ns = self.bucket_ns.saturating_mul(2);
        for buckets in self.cpus.iter_mut().flatten() {
            *buckets = buckets.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    pub(super) fn finish(mut self, to_ns: u64) -> Timeline {
        let elapsed_ns = to_ns.saturating_sub(self.from_ns.unwrap_or(to_ns));
        self.extend_buckets(elapsed_ns);
        let (mut waits, left_out) = self.waits.finish();
        waits.sort_by_key(|wait| (wait.start_ns, wait.thread));
        let count = usize::try_from(elapsed_ns.div_ceil(self.bucket_ns)).unwrap_or(MAX_BUCKETS);
        let is_used = |buckets: &[Vec<u64>; 2]| buckets.iter().any(|s| !s.is_empty());
        let pad = |mut buckets: Vec<u64>| {
            buckets.resize(count.max(buckets.len()), 0);
            buckets
        };
        let numbered = (0u32..).zip(self.cpus);
        Timeline {
            packed: self.slices.map(SlicePacker::finish),
            waits: Some(WaitSpans { waits, left_out }),
            sharing: None,
            bucket_ns: self.bucket_ns,
            buckets: numbered
                .filter(|(_, buckets)| is_used(buckets))
                .map(|(cpu, [own, foreign])| CpuBuckets {
                    cpu,
                    own_ns: pad(own),
                    foreign_ns: pad(foreign),
                })
                .collect(),
        }
    }
}

#[derive(Debug)]
struct SlicePacker {
    count: usize,
    threads: Vec<Tid>,
    /// By CPU, its slices and the end of the last one, ns.
    cpus: Vec<(CpuSlices, u64)>,
}

impl SlicePacker {
    const fn new() -> Self {
        Self {
            count: 0,
            threads: Vec::new(),
            cpus: Vec::new(),
        }
    }

    fn add(&mut self, slice: Slice, from_ns: u64, index: &mut Option<u32>) {
        let thread = *index.get_or_insert_with(|| {
            self.threads.push(slice.thread);
            // There are fewer threads than slices, at most two million.
            u32::try_from(self.threads.len() - 1).unwrap_or(u32::MAX)
        });
        let at = slice.cpu as usize;
        if at >= self.cpus.len() {
            self.cpus
                .resize_with(at + 1, || (CpuSlices::default(), from_ns));
        }
        let (cpu, last_ns) = &mut self.cpus[at];
        put_varints(
            &mut cpu.bytes,
            [
                slice.start_ns.saturating_sub(*last_ns),
                slice.end_ns.saturating_sub(slice.start_ns),
                u64::from(thread) << 2 | encode_reason(slice.ended_by),
            ],
        );
        *last_ns = slice.end_ns;
        cpu.count += 1;
        self.count += 1;
    }

    fn finish(self) -> PackedSlices {
        let numbered = (0u32..).zip(self.cpus);
        PackedSlices {
            threads: self.threads,
            cpus: numbered
                .filter(|(_, (slices, _))| slices.count > 0)
                .map(|(cpu, (slices, _))| CpuSlices { cpu, ..slices })
                .collect(),
        }
    }
}

/// See [`PackedSlices`].
const fn encode_reason(left: LeaveReason) -> u64 {
    match left {
        LeaveReason::Blocked => 0,
        LeaveReason::Preempted => 1,
        LeaveReason::Ended => 2,
        LeaveReason::Unreported => 3,
    }
}

impl Span for Wait {
    fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    fn weight_ns(&self) -> u64 {
        self.length_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(busy: &[(u64, u64)], to_ns: u64, bucket_ns: u64, expected: &[(usize, u64)]) {
        let mut builder = TimelineBuilder::new();
        builder.begin(0);
        for &(start, end) in busy {
            builder.add_busy(1, true, start, end);
        }
        let timeline = builder.finish(to_ns);
        assert_eq!(timeline.bucket_ns, bucket_ns);
        let own = &timeline.buckets[0].own_ns;
        let used: Vec<(usize, u64)> = own
            .iter()
            .enumerate()
            .filter(|(_, ns)| **ns > 0)
            .map(|(at, ns)| (at, *ns))
            .collect();
        assert_eq!(used, expected);
    }

    #[test]
    fn time_is_split_over_buckets() {
        check(
            &[(50_000, 250_000)],
            300_000,
            100_000,
            &[(0, 50_000), (1, 100_000), (2, 50_000)],
        );
    }

    #[test]
    fn a_long_trace_has_longer_buckets() {
        let second = 1_000_000_000;
        check(
            &[(0, 1_000), (2 * second, 2 * second + 7)],
            2 * second + 7,
            6_400_000,
            &[(0, 1_000), (312, 7)],
        );
    }

    /// A file may contain any times, and an idle program ends long after its last event.
    #[test]
    fn quiet_time_at_the_end_takes_no_memory() {
        for to_ns in [60_000_000_000, u64::MAX] {
            let mut builder = TimelineBuilder::new();
            builder.begin(0);
            builder.add_busy(1, true, 0, 1_000);
            let timeline = builder.finish(to_ns);
            assert_eq!(timeline.buckets[0].own_ns[0], 1_000);
            assert!(timeline.buckets[0].own_ns.len() <= MAX_BUCKETS);
            assert!(timeline.bucket_ns.saturating_mul(MAX_BUCKETS as u64) >= to_ns);
        }
        let mut builder = TimelineBuilder::new();
        builder.begin(0);
        builder.add_busy(0, true, 0, u64::MAX);
        assert!(builder.finish(u64::MAX).buckets[0].own_ns.len() <= MAX_BUCKETS);
    }

    #[test]
    fn slices_beyond_the_limit_are_dropped() {
        let mut builder = TimelineBuilder::new();
        let slice = Slice {
            thread: 1,
            cpu: 3,
            start_ns: 0,
            end_ns: 1,
            ended_by: LeaveReason::Ended,
        };
        let mut place = None;
        for _ in 0..=MAX_PACKED {
            builder.add_slice(slice, &mut place);
        }
        assert!(builder.finish(1).packed.is_none());
    }
}
