//! Latency of a cache line from one CPU to another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::meeting::{PATIENCE_NS, nap};
use super::memory::Mapping;
use super::probe_run::{Moment, ProbeRun, Span, Tally};
use crate::Batches;
use pinwise_kernels::loops::line::{FollowerResult, Line, Trips, one_way_ns};

/// State shared by the two threads.
pub(super) struct Transfer {
    run: ProbeRun,
    a: usize,
    b: usize,
    /// Holds the line, alone on its page.
    page: Mapping,
    /// The page has been touched by the leader.
    is_touched: AtomicBool,
    /// The follower's [`Moment`] at the start of the current batch.
    follower: AtomicU64,
}

impl Transfer {
    /// A line for this pair, its memory on `home`.
    ///
    /// # Errors
    /// The reason if there is none, as a full sentence.
    pub(super) fn new(
        run: &ProbeRun,
        a: usize,
        b: usize,
        home: Option<usize>,
    ) -> Result<Arc<Self>, String> {
        Ok(Arc::new(Self {
            run: run.clone(),
            a,
            b,
            page: Mapping::new(4096, home)?,
            is_touched: AtomicBool::new(false),
            follower: AtomicU64::new(0),
        }))
    }

    #[expect(unsafe_code, reason = "a line in a page of its own")]
    fn line(&self) -> &Line {
        // SAFETY: the page is zeroed memory of 4 KiB, aligned to as much, and
        // lives as long as `self`; a line is an atomic number.
        unsafe { self.page.start().cast::<Line>().as_ref() }
    }

    fn patience(&self) -> u64 {
        self.run.clock.ticks_in(PATIENCE_NS)
    }

    /// The first CPU's side, which alone reads the clock.
    pub(super) fn lead(&self) -> Batches {
        self.line().reset();
        self.is_touched.store(true, Ordering::Release);
        let mut tally = Tally::new(&self.run);
        let mut batch = 1;
        let mut lost: Option<[Moment; 2]> = None;
        while !tally.is_full() && !self.run.is_over() {
            if let Some(start) = self.begin(batch) {
                if let Some(before) = lost.take() {
                    self.note(&mut tally, None, before, start);
                }
                lost = self.lead_burst(&mut tally, &mut batch, start);
            }
            batch += 1;
            if !tally.is_full() {
                nap();
            }
        }
        self.line().end();
        tally.batches
    }

    /// Batch after batch while the follower runs. Returns the start of the batch during which it
    /// was lost.
    fn lead_burst(
        &self,
        tally: &mut Tally,
        batch: &mut u64,
        mut start: [Moment; 2],
    ) -> Option<[Moment; 2]> {
        let clock = &self.run.clock;
        while !tally.is_full() && !self.run.is_over() {
            let Some(trips) = self.line().lead(*batch, clock, self.patience()) else {
                return Some(start);
            };
            *batch += 1;
            // The next batch's start reveals the follower's preemptions in this one.
            let Some(end) = self.begin(*batch) else {
                return Some(start);
            };
            self.note(tally, Some(&trips), start, end);
            start = end;
        }
        None
    }

    /// Both threads' moments at the start of a batch; `None` if the follower does not answer.
    fn begin(&self, batch: u64) -> Option<[Moment; 2]> {
        let is_there = self.line().begin(batch, &self.run.clock, self.patience());
        is_there.then(|| {
            let follower = Moment::unpack(self.follower.load(Ordering::Acquire));
            [Moment::now(), follower]
        })
    }

    fn note(&self, tally: &mut Tally, trips: Option<&Trips>, from: [Moment; 2], to: [Moment; 2]) {
        let clock = &self.run.clock;
        let whole = trips.filter(|trips| !trips.was_stopped(clock));
        let value = whole.map(|trips| one_way_ns(trips, clock));
        let span = |side: usize, cpu: usize| Span {
            cpu,
            from: from[side],
            to: to[side],
        };
        tally.note(value, &[span(0, self.a), span(1, self.b)]);
    }

    /// The second CPU's side.
    pub(super) fn follow(&self) {
        while !self.is_touched.load(Ordering::Acquire) {
            if self.run.is_over() {
                return;
            }
            std::thread::yield_now();
        }
        let at_batch = || {
            let moment = Moment::now().pack();
            self.follower.store(moment, Ordering::Release);
        };
        let clock = &self.run.clock;
        while self.line().follow(clock, self.patience(), at_batch) == FollowerResult::Alone {
            if self.run.is_over() {
                return;
            }
            nap();
        }
    }
}
