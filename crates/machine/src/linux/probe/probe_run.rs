//! What all threads of a call share (clock, number of batches, deadline), and the tally that keeps
//! undisturbed batches and counts the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::calls;
use crate::Batches;
use pinwise_kernels::loops::clock::{Clock, system_ns};
use pinwise_kernels::loops::laps::Laps;

/// A call of the prober: its clock, and when its probes end.
#[derive(Debug, Clone)]
pub(super) struct ProbeRun {
    pub(super) clock: Clock,
    /// Number of undisturbed batches wanted.
    pub(super) wanted: usize,
    /// Time on `CLOCK_MONOTONIC` at which all must end.
    deadline_ns: u64,
    stop: Arc<AtomicBool>,
}

impl ProbeRun {
    pub(super) fn new(clock: Clock, wanted: usize, limit: Duration) -> Self {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Self {
            clock,
            wanted,
            deadline_ns: system_ns().saturating_add(limit_ns),
            stop: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Ends all threads at their next batch.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Is the time used up?
    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || system_ns() >= self.deadline_ns
    }

    /// Time until the deadline.
    pub(super) fn time_left(&self) -> Duration {
        Duration::from_nanos(self.deadline_ns.saturating_sub(system_ns()))
    }
}

/// A thread's CPU and its number of preemptions at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    preemptions: u64,
    cpu: u64,
}

/// Bits of a packed moment for the CPU.
const CPU_BITS: u32 = 16;

impl Moment {
    /// Reads CPU and preemptions of the calling thread.
    pub(super) fn now() -> Self {
        let cpu = calls::current_cpu().and_then(|cpu| u64::try_from(cpu).ok());
        Self {
            preemptions: calls::count_preemptions(),
            cpu: cpu.unwrap_or(u64::MAX >> (u64::BITS - CPU_BITS)),
        }
    }

    /// Packs it into a word, which another thread can read atomically.
    pub(super) const fn pack(self) -> u64 {
        (self.preemptions << CPU_BITS) | self.cpu
    }

    /// Unpacks the word.
    pub(super) const fn unpack(word: u64) -> Self {
        Self {
            preemptions: word >> CPU_BITS,
            cpu: word & ((1 << CPU_BITS) - 1),
        }
    }

    pub(super) const fn is_on(self, cpu: usize) -> bool {
        self.cpu == cpu as u64
    }
}

/// A thread's moments around a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) cpu: usize,
    pub(super) from: Moment,
    pub(super) to: Moment,
}

/// Undisturbed batches, and the number of discarded ones.
#[derive(Debug)]
pub(super) struct Tally {
    wanted: usize,
    pub(super) batches: Batches,
}

impl Tally {
    pub(super) fn new(run: &ProbeRun) -> Self {
        Self {
            wanted: run.wanted,
            batches: Batches {
                values: Vec::with_capacity(run.wanted.min(4096)),
                was_in_place: true,
                ..Batches::default()
            },
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.batches.values.len() >= self.wanted
    }

    /// Records a batch; `value`: `None` if a thread was stopped. If a thread was preempted, the
    /// batch counts as switched; otherwise a stop is attributed to the hypervisor. Returns whether
    /// the batch was undisturbed.
    pub(super) fn note(&mut self, value: Option<f64>, spans: &[Span]) -> bool {
        for span in spans {
            self.batches.was_in_place &= span.to.is_on(span.cpu) && span.from.is_on(span.cpu);
        }
        if spans
            .iter()
            .any(|span| span.from.preemptions != span.to.preemptions)
        {
            self.batches.switched += 1;
            return false;
        }
        match value.filter(|value| value.is_finite()) {
            Some(value) => {
                self.batches.values.push(value);
                true
            }
            None => {
                self.batches.stolen += 1;
                false
            }
        }
    }
}

/// Repeats a batch of one thread until enough are undisturbed or the time is over.
pub(super) fn repeat<const N: usize>(
    run: &ProbeRun,
    cpu: usize,
    mut batch: impl FnMut() -> (Laps<N>, f64),
) -> Batches {
    let mut tally = Tally::new(run);
    while !tally.is_full() && !run.is_over() {
        let from = Moment::now();
        let (laps, value) = batch();
        let to = Moment::now();
        let value = (!laps.was_stopped(&run.clock)).then_some(value);
        tally.note(value, &[Span { cpu, from, to }]);
    }
    tally.batches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(before: u64, after: u64, cpu: u64) -> Span {
        let moment = |preemptions| Moment { preemptions, cpu };
        Span {
            cpu: 3,
            from: moment(before),
            to: moment(after),
        }
    }

    #[track_caller]
    fn check(value: Option<f64>, spans: &[Span], expected: (usize, usize, usize, bool)) {
        let run = ProbeRun::new(Clock::system(), 10, Duration::ZERO);
        let mut tally = Tally::new(&run);
        tally.note(value, spans);
        let b = tally.batches;
        let got = (b.values.len(), b.switched, b.stolen, b.was_in_place);
        assert_eq!(got, expected);
    }

    #[test]
    fn a_batch_is_good_switched_or_stolen() {
        check(Some(1.0), &[span(5, 5, 3)], (1, 0, 0, true));
        check(Some(1.0), &[span(5, 5, 3), span(1, 2, 3)], (0, 1, 0, true));
        check(None, &[span(5, 6, 3)], (0, 1, 0, true));
        check(None, &[span(5, 5, 3)], (0, 0, 1, true));
        check(Some(f64::NAN), &[span(5, 5, 3)], (0, 0, 1, true));
    }

    #[test]
    fn a_thread_on_another_cpu_is_reported() {
        check(Some(1.0), &[span(5, 5, 4)], (1, 0, 0, false));
    }

    #[test]
    fn times_are_packed_without_loss() {
        for (preemptions, cpu) in [(0, 0), (1, 16_383), (1 << 40, 7)] {
            let moment = Moment { preemptions, cpu };
            assert_eq!(Moment::unpack(moment.pack()), moment);
        }
        assert!(Moment::now().preemptions < 1 << 40);
    }

    #[test]
    fn no_batch_is_repeated_after_the_limit() {
        let run = ProbeRun::new(Clock::system(), 10, Duration::ZERO);
        let batches = repeat(&run, 0, || (Laps::from_ticks([1]), 1.0));
        assert!(batches.values.is_empty());
    }
}
