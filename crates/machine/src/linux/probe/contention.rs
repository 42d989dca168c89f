//! What two CPUs lose when both work: siblings of a core share its ports.
//!
//! Every batch runs the work alone on one, alone on the other, and on both at once, so that a
//! changing clock changes all three. While one works alone the other waits in pauses and keeps
//! other programs off its CPU, whose work would look like the partner's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::meeting::{Meeting, nap};
use super::probe_run::{Moment, ProbeRun, Span, Tally};
use crate::{Batches, Port};
use pinwise_kernels::loops::laps::Laps;
use pinwise_kernels::loops::spin;

/// Laps of each part, 1 to 5 µs each.
const LAPS: usize = 9;
/// Warm-up laps together before those that count.
const RUN_UP: usize = 2;

/// A side's figures of a batch.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Side {
    /// Time together over time alone, as bits; NaN if it stopped.
    ratio: AtomicU64,
    from: AtomicU64,
    to: AtomicU64,
    /// 1 once the laps that count are done.
    done: AtomicU64,
}

/// The other side's presence in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    /// The other never came.
    Nobody,
    /// It came, but missed a later part.
    InPart,
    /// It stayed throughout.
    Whole,
}

/// State shared by the two threads.
pub(super) struct Contention {
    run: ProbeRun,
    cpus: [usize; 2],
    port: Port,
    meeting: Meeting,
    sides: [Side; 2],
    /// The first side has enough batches.
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

    /// The first CPU's side, which keeps the tally.
    pub(super) fn lead(&self) -> Batches {
        let mut tally = Tally::new(&self.run);
        let mut lost = 0;
        let mut known = [Moment::now().pack(), 0];
        while !tally.is_full() && !self.run.is_over() {
            match self.batch(0) {
                Met::Whole => {
                    self.note_lost(&mut tally, std::mem::take(&mut lost), known);
                    self.note(&mut tally);
                    known = [0, 1].map(|side: usize| self.sides[side].to.load(Ordering::Relaxed));
                }
                Met::Nobody => nap(),
                Met::InPart => {
                    lost += 1;
                    nap();
                }
            }
        }
        self.over.store(1, Ordering::Release);
        tally.batches
    }

    /// The second CPU's side.
    pub(super) fn follow(&self) {
        while self.over.load(Ordering::Acquire) == 0 && !self.run.is_over() {
            if self.batch(1) != Met::Whole {
                nap();
            }
        }
    }

    /// One side of a batch.
    fn batch(&self, side: usize) -> Met {
        match self.port {
            Port::Spin => self.batch_of(side, spin::count),
            Port::Integer => self.batch_of(side, spin::run_integer_chains),
            Port::Float => self.batch_of(side, spin::run_float_chains),
        }
    }

    #[inline(always)]
    fn batch_of(&self, side: usize, work: impl Fn()) -> Met {
        let (clock, own) = (&self.run.clock, &self.sides[side]);
        if !self.meets(side, 0) {
            return Met::Nobody;
        }
        own.done.store(0, Ordering::Relaxed);
        own.from.store(Moment::now().pack(), Ordering::Relaxed);
        let mut alone = None;
        for turn in 0..2 {
            if turn == side {
                work();
                alone = Some(Laps::<LAPS>::time(clock, &work));
            }
            if !self.meets(side, turn as u64 + 1) {
                return Met::InPart;
            }
        }
        let together = self.together(side, &work);
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
        if self.meets(side, 3) {
            Met::Whole
        } else {
            Met::InPart
        }
    }

    /// Runs the work while the other does it too: starts before the counted laps, and continues
    /// until the other has counted its own.
    #[inline(always)]
    fn together(&self, side: usize, work: &impl Fn()) -> Option<Laps<LAPS>> {
        /// Laps to keep up for: a partner that takes longer was stopped.
        const MAX_LAPS: usize = 20 * LAPS;
        let clock = &self.run.clock;
        let (own, other) = (&self.sides[side].done, &self.sides[1 - side].done);
        for _ in 0..RUN_UP {
            work();
        }
        let laps = Laps::time(clock, work);
        own.store(1, Ordering::Release);
        let mut kept_up = 0;
        while other.load(Ordering::Acquire) == 0 {
            work();
            kept_up += 1;
            if kept_up > MAX_LAPS {
                return None;
            }
        }
        Some(laps)
    }

    fn meets(&self, side: usize, part: u64) -> bool {
        self.meeting.meet(side as u64, part, &self.run.clock)
    }

    fn spans(&self) -> [Span; 2] {
        [0, 1].map(|side| Span {
            cpu: self.cpus[side],
            from: Moment::unpack(self.sides[side].from.load(Ordering::Relaxed)),
            to: Moment::unpack(self.sides[side].to.load(Ordering::Relaxed)),
        })
    }

    /// Both sides met at the end: the larger ratio counts.
    fn note(&self, tally: &mut Tally) {
        let [a, b] = [0, 1]
            .map(|side: usize| f64::from_bits(self.sides[side].ratio.load(Ordering::Relaxed)));
        let value = (!a.is_nan() && !b.is_nan()).then(|| a.max(b));
        tally.note(value, &self.spans());
    }

    /// Counts batches that one side left: preempted if either side's count shows it.
    fn note_lost(&self, tally: &mut Tally, lost: usize, known: [u64; 2]) {
        let mut spans = self.spans();
        for (span, known) in spans.iter_mut().zip(known) {
            span.to = span.from;
            // The second side is unknown before its first batch.
            if known != 0 {
                span.from = Moment::unpack(known);
            }
        }
        for _ in 0..lost {
            tally.note(None, &spans);
        }
    }
}
