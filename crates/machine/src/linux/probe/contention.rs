//! Measures how much two CPUs slow each other down: siblings of a core share its execution ports.
//!
//! Every batch runs the work alone on one CPU, alone on the other, and on both at once, so that a
//! change of the clock's speed affects all three. While one works alone, the other waits by
//! spin-wait hints: it keeps its CPU from other programs, whose work would look like the partner's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::meeting::{Meeting, nap};
use super::probe_run::{Moment, ProbeRun, Span, Tally};
use crate::{Batches, Port};
use pinwise_kernels::loops::laps::Laps;
use pinwise_kernels::loops::spin;

/// Laps of each part, 1 to 5 µs each.
const LAPS: usize = 9;
/// Laps of both together before those that count.
const WARM_UP_LAPS: usize = 2;

/// The figures of one side of a batch.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Side {
    /// Time together divided by time alone, as the bits of an `f64`; NaN if the thread was stopped.
    ratio: AtomicU64,
    from: AtomicU64,
    to: AtomicU64,
    /// 1 once the laps that count are done.
    done: AtomicU64,
}

/// Whether the other side took part in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PartnerPresence {
    /// It never came.
    Absent,
    /// It came, but missed a later part.
    Partial,
    /// It took part in everything.
    Complete,
}

/// State shared by the two threads.
pub(super) struct Contention {
    run: ProbeRun,
    cpus: [usize; 2],
    port: Port,
    meeting: Meeting,
    sides: [Side; 2],
    /// 1 once the first side has enough batches.
    over: AtomicU64,
}

impl Contention {
    pub(super) fn new(run: &ProbeRun, cpus: [usize; 2], port: Port) -> Arc<Self> {
        Arc::new(Self {
            run: run.clone(),
            cpus,
            port,
            meeting: Meeting::default(),
            sides: [Side::default(), Side::default()],
            over: AtomicU64::new(0),
        })
    }

    /// Runs the first CPU's side, which counts the batches.
    pub(super) fn lead(&self) -> Batches {
        let mut tally = Tally::new(&self.run);
        let mut lost = 0;
        let mut last_moments = [Moment::now().pack(), 0];
        while !tally.is_full() && !self.run.is_over() {
            match self.run_batch(0) {
                PartnerPresence::Complete => {
                    self.note_lost(&mut tally, std::mem::take(&mut lost), last_moments);
                    self.note(&mut tally);
                    last_moments =
                        [0, 1].map(|side: usize| self.sides[side].to.load(Ordering::Relaxed));
                }
                PartnerPresence::Absent => nap(),
                PartnerPresence::Partial => {
                    lost += 1;
                    nap();
                }
            }
        }
        self.over.store(1, Ordering::Release);
        tally.batches
    }

    /// Runs the second CPU's side.
    pub(super) fn follow(&self) {
        while self.over.load(Ordering::Acquire) == 0 && !self.run.is_over() {
            if self.run_batch(1) != PartnerPresence::Complete {
                nap();
            }
        }
    }

    /// Runs one side of a batch.
    fn run_batch(&self, side: usize) -> PartnerPresence {
        match self.port {
            Port::Spin => self.run_batch_of(side, spin::count),
            Port::Integer => self.run_batch_of(side, spin::run_integer_chains),
            Port::Float => self.run_batch_of(side, spin::run_float_chains),
        }
    }

    #[inline(always)]
    fn run_batch_of(&self, side: usize, work: impl Fn()) -> PartnerPresence {
        let (clock, own) = (&self.run.clock, &self.sides[side]);
        if !self.meet(side, 0) {
            return PartnerPresence::Absent;
        }
        own.done.store(0, Ordering::Relaxed);
        own.from.store(Moment::now().pack(), Ordering::Relaxed);
        let mut alone = None;
        for turn in 0..2 {
            if turn == side {
                work();
                alone = Some(Laps::<LAPS>::time(clock, &work));
            }
            if !self.meet(side, turn as u64 + 1) {
                return PartnerPresence::Partial;
            }
        }
        let together = self.work_together(side, &work);
        let ratio = match (alone, together) {
            (Some(alone), Some(together))
                if !alone.was_stopped(clock) && !together.was_stopped(clock) =>
            {
                together.median_ns(clock) / alone.median_ns(clock)
            }
            _ => f64::NAN,
        };
        own.ratio.store(ratio.to_bits(), Ordering::Relaxed);
        own.to.store(Moment::now().pack(), Ordering::Relaxed);
        if self.meet(side, 3) {
            PartnerPresence::Complete
        } else {
            PartnerPresence::Partial
        }
    }

    /// Runs the work while the other side does the same: some laps before those that count, and
    /// further ones until the other side has finished its own. `None` if the other side takes too
    /// long.
    #[inline(always)]
    fn work_together(&self, side: usize, work: &impl Fn()) -> Option<Laps<LAPS>> {
        /// Most laps that wait for the partner: one that takes longer was stopped.
        const MAX_EXTRA_LAPS: usize = 20 * LAPS;
        let clock = &self.run.clock;
        let (own, other) = (&self.sides[side].done, &self.sides[1 - side].done);
        for _ in 0..WARM_UP_LAPS {
            work();
        }
        let laps = Laps::time(clock, work);
        own.store(1, Ordering::Release);
        let mut extra = 0;
        while other.load(Ordering::Acquire) == 0 {
            work();
            extra += 1;
            if extra > MAX_EXTRA_LAPS {
                return None;
            }
        }
        Some(laps)
    }

    fn meet(&self, side: usize, part: u64) -> bool {
        self.meeting.meet(side as u64, part, &self.run.clock)
    }

    fn spans(&self) -> [Span; 2] {
        [0, 1].map(|side| Span {
            cpu: self.cpus[side],
            from: Moment::unpack(self.sides[side].from.load(Ordering::Relaxed)),
            to: Moment::unpack(self.sides[side].to.load(Ordering::Relaxed)),
        })
    }

    /// Records a complete batch: the larger ratio counts.
    fn note(&self, tally: &mut Tally) {
        let [a, b] = [0, 1]
            .map(|side: usize| f64::from_bits(self.sides[side].ratio.load(Ordering::Relaxed)));
        let value = (!a.is_nan() && !b.is_nan()).then(|| a.max(b));
        tally.note(value, &self.spans());
    }

    /// Records batches that one side did not complete: as preempted if the moments since the last
    /// complete batch show a preemption.
    fn note_lost(&self, tally: &mut Tally, lost: usize, last_moments: [u64; 2]) {
        let mut spans = self.spans();
        for (span, last) in spans.iter_mut().zip(last_moments) {
            span.to = span.from;
            // The second side has no moment before its first batch.
            if last != 0 {
                span.from = Moment::unpack(last);
            }
        }
        for _ in 0..lost {
            tally.note(None, &spans);
        }
    }
}
