//! Measures how long a cache line takes from one CPU to another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::meeting::{MAX_SPIN_NS, nap};
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
    /// Has the first CPU's thread written to the page?
    is_touched: AtomicBool,
    /// The follower's [`Moment`] at the start of the current batch.
    follower: AtomicU64,
}

impl Transfer {
    /// Allocates a line for this pair, on the node `home`.
    ///
    /// # Errors
    /// A full sentence says why that is not possible.
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

    fn max_spin_ticks(&self) -> u64 {
        self.run.clock.ticks_in(MAX_SPIN_NS)
    }

    /// Runs the first CPU's side, which alone reads the clock.
    pub(super) fn lead(&self) -> Batches {
        self.line().reset();
        self.is_touched.store(true, Ordering::Release);
        let mut tally = Tally::new(&self.run);
        let mut batch = 1;
        let mut lost_since: Option<[Moment; 2]> = None;
        while !tally.is_full() && !self.run.is_over() {
            if let Some(start) = self.begin(batch) {
                if let Some(before) = lost_since.take() {
                    self.note(&mut tally, None, before, start);
                }
                lost_since = self.lead_burst(&mut tally, &mut batch, start);
            }
            batch += 1;
            if !tally.is_full() {
                nap();
            }
        }
        self.line().end();
        tally.batches
    }

    /// Makes batch after batch while the follower runs. If the follower stops answering, returns
    /// the moments at the start of that batch.
    fn lead_burst(
        &self,
        tally: &mut Tally,
        batch: &mut u64,
        mut start: [Moment; 2],
    ) -> Option<[Moment; 2]> {
        let clock = &self.run.clock;
        while !tally.is_full() && !self.run.is_over() {
            let Some(trips) = self.line().lead(*batch, clock, self.max_spin_ticks()) else {
                return Some(start);
            };
            *batch += 1;
            // The start of the next batch shows whether the follower was preempted in this one.
            let Some(end) = self.begin(*batch) else {
                return Some(start);
            };
            self.note(tally, Some(&trips), start, end);
            start = end;
        }
        None
    }

    /// Starts a batch; returns both threads' moments then, `None` if the follower does not answer.
    fn begin(&self, batch: u64) -> Option<[Moment; 2]> {
        let has_answered = self
            .line()
            .begin(batch, &self.run.clock, self.max_spin_ticks());
        has_answered.then(|| {
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

    /// Runs the second CPU's side.
    pub(super) fn follow(&self) {
        while !self.is_touched.load(Ordering::Acquire) {
            if self.run.is_over() {
                return;
            }
            std::thread::yield_now();
        }
        let publish_moment = || {
            let moment = Moment::now().pack();
            self.follower.store(moment, Ordering::Release);
        };
        let clock = &self.run.clock;
        while self
            .line()
            .follow(clock, self.max_spin_ticks(), publish_moment)
            == FollowerResult::Alone
        {
            if self.run.is_over() {
                return;
            }
            nap();
        }
    }
}
