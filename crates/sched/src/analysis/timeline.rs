//! Packed slices up to a limit, and buckets of time that grow coarser in longer traces. Slices and
//! waits are bounded; other memory grows with CPUs, not with time.

use super::super::summary::{
    CpuBuckets, CpuSlices, LeftOut, MAX_PACKED, PackedSlices, SHORTEST_WAIT_NS, Slice, Timeline,
    Wait, WaitSpans,
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
pub(super) struct Drawing {
    from_ns: Option<u64>,
    packing: Option<Packing>,
    waits: Longest<Wait>,
    bucket_ns: u64,
    cpus: Vec<[Vec<u64>; 2]>,
}

impl Drawing {
    pub(super) const fn new() -> Self {
        Self {
            from_ns: None,
            packing: Some(Packing::new()),
            waits: Longest::new(MAX_WAITS, SHORTEST_WAIT_NS),
            bucket_ns: SHORTEST_BUCKET_NS,
            cpus: Vec::new(),
        }
    }

    /// Everything is recorded from here on.
    pub(super) fn begin(&mut self, time_ns: u64) {
        self.from_ns.get_or_insert(time_ns);
    }

    /// Adds a slice; `place` is the thread's index among those drawn, once it has one.
    pub(super) fn add_slice(&mut self, slice: Slice, place: &mut Option<u32>) {
        if let Some(packing) = &mut self.packing {
            if packing.count == MAX_PACKED {
                self.packing = None;
            } else {
                packing.add(slice, self.from_ns.unwrap_or(slice.start_ns), place);
            }
        }
    }

    pub(super) fn add_wait(&mut self, wait: Wait) {
        self.waits.push(wait);
    }

    /// A CPU was busy in this time, with a followed thread or another.
    pub(super) fn add_busy(&mut self, cpu: u32, is_own: bool, start_ns: u64, end_ns: u64) {
        let from_ns = *self.from_ns.get_or_insert(start_ns);
        let (mut at, end) = (
            start_ns.saturating_sub(from_ns),
            end_ns.saturating_sub(from_ns),
        );
        self.make_room(end);
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

    /// Lengthens buckets until they reach this moment.
    fn make_room(&mut self, end_ns: u64) {
        while end_ns > self.bucket_ns.saturating_mul(MAX_BUCKETS as u64) {
            self.coarsen();
        }
    }

    /// Joins pairs of buckets.
    fn coarsen(&mut self) {
        self.bucket_ns = self.bucket_ns.saturating_mul(2);
        for buckets in self.cpus.iter_mut().flatten() {
            *buckets = buckets.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    pub(super) fn finish(mut self, to_ns: u64) -> Timeline {
        let elapsed_ns = to_ns.saturating_sub(self.from_ns.unwrap_or(to_ns));
        self.make_room(elapsed_ns);
        let (mut waits, count, ns) = self.waits.finish();
        waits.sort_by_key(|wait| (wait.start_ns, wait.thread));
        let many = usize::try_from(elapsed_ns.div_ceil(self.bucket_ns)).unwrap_or(MAX_BUCKETS);
        let is_used = |buckets: &[Vec<u64>; 2]| buckets.iter().any(|s| !s.is_empty());
        let padded = |mut buckets: Vec<u64>| {
            buckets.resize(many.max(buckets.len()), 0);
            buckets
        };
        let numbered = (0u32..).zip(self.cpus);
        Timeline {
            packed: self.packing.map(Packing::finish),
            waits: Some(WaitSpans {
                waits,
                left_out: LeftOut { count, ns },
            }),
            sharing: None,
            bucket_ns: self.bucket_ns,
            buckets: numbered
                .filter(|(_, buckets)| is_used(buckets))
                .map(|(cpu, [own, foreign])| CpuBuckets {
                    cpu,
                    own_ns: padded(own),
                    foreign_ns: padded(foreign),
                })
                .collect(),
        }
    }
}

/// Slices being packed.
#[derive(Debug)]
struct Packing {
    count: usize,
    threads: Vec<Tid>,
    /// The slices of each CPU and the end of the last.
    cpus: Vec<(CpuSlices, u64)>,
}

impl Packing {
    const fn new() -> Self {
        Self {
            count: 0,
            threads: Vec::new(),
            cpus: Vec::new(),
        }
    }

    fn add(&mut self, slice: Slice, from_ns: u64, place: &mut Option<u32>) {
        let thread = *place.get_or_insert_with(|| {
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
                u64::from(thread) << 2 | end_code(slice.ended_by),
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

const fn end_code(left: LeaveReason) -> u64 {
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
        let mut drawing = Drawing::new();
        drawing.begin(0);
        for &(start, end) in busy {
            drawing.add_busy(1, true, start, end);
        }
        let timeline = drawing.finish(to_ns);
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
            let mut drawing = Drawing::new();
            drawing.begin(0);
            drawing.add_busy(1, true, 0, 1_000);
            let timeline = drawing.finish(to_ns);
            assert_eq!(timeline.buckets[0].own_ns[0], 1_000);
            assert!(timeline.buckets[0].own_ns.len() <= MAX_BUCKETS);
            assert!(timeline.bucket_ns.saturating_mul(MAX_BUCKETS as u64) >= to_ns);
        }
        let mut drawing = Drawing::new();
        drawing.begin(0);
        drawing.add_busy(0, true, 0, u64::MAX);
        assert!(drawing.finish(u64::MAX).buckets[0].own_ns.len() <= MAX_BUCKETS);
    }

    #[test]
    fn slices_beyond_the_limit_are_dropped() {
        let mut drawing = Drawing::new();
        let slice = Slice {
            thread: 1,
            cpu: 3,
            start_ns: 0,
            end_ns: 1,
            ended_by: LeaveReason::Ended,
        };
        let mut place = None;
        for _ in 0..=MAX_PACKED {
            drawing.add_slice(slice, &mut place);
        }
        assert!(drawing.finish(1).packed.is_none());
    }
}
