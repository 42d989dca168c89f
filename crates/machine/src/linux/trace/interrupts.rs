//! Interrupts during a trace: the tracepoints of all CPUs, summed as they are read.
//!
//! Every record names the thread that had the CPU. Whether that belongs to the trace is learned
//! from its events, which may come a round later.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;

use super::super::counts::Counts;
use super::interrupt_points::{InterruptPoints, PointChoice};
use super::threads;
use crate::MachineError;
use pinwise_sched::jitter::{Cause, Step, StepKind};
use pinwise_sched::{Event, EventKind, IDLE, InterruptAccount, InterruptSummary, Tid};

/// Adds up interrupts.
#[derive(Debug)]
pub(super) struct Interrupts {
    points: InterruptPoints,
    /// CPUs in the order of their buffers.
    cpus: Vec<usize>,
    account: InterruptAccount,
    own: Own,
    /// Reports from before the trace do not count.
    from_ns: u64,
    /// The kernel's counts at the start.
    before: Counts,
}

/// The traced threads.
#[derive(Debug, Default)]
struct Own {
    /// If false, all threads are.
    is_named: bool,
    live: BTreeSet<Tid>,
    /// Threads that ended in this round and in the one before.
    ended: [BTreeSet<Tid>; 2],
}

impl Own {
    fn learn(&mut self, events: &[Event]) {
        for event in events {
            match event.what {
                EventKind::Follow { thread } => {
                    self.is_named = true;
                    self.live.insert(thread);
                }
                EventKind::Fork { parent, child, .. } if self.live.contains(&parent) => {
                    self.live.insert(child);
                }
                EventKind::Exit { thread } if self.live.remove(&thread) => {
                    self.ended[0].insert(thread);
                }
                _ => {}
            }
        }
    }

    fn has(&self, thread: Tid) -> bool {
        let is_known = |threads: &BTreeSet<Tid>| threads.contains(&thread);
        match self.is_named {
            true => is_known(&self.live) || self.ended.iter().any(is_known),
            false => thread != IDLE,
        }
    }

    fn end_round(&mut self) {
        self.ended.rotate_right(1);
        self.ended[0].clear();
    }
}

impl Interrupts {
    /// Opens the tracepoints on all CPUs and begins to record.
    pub(super) fn open() -> Result<Self, MachineError> {
        let cpus = threads::online_cpus();
        let mut points =
            InterruptPoints::open(&cpus, PointChoice::Interrupts).map_err(|refusal| {
                MachineError::InterruptsUnseen {
                    reason: refusal.reason,
                    remedy: refusal.remedy,
                }
            })?;
        points.switch(true);
        Ok(Self {
            points,
            cpus: cpus.iter().collect(),
            account: InterruptAccount::default(),
            own: Own::default(),
            from_ns: 0,
            before: Counts::default(),
        })
    }

    /// The trace begins.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.from_ns = now_ns;
        self.before = Counts::read();
    }

    /// Readable when a buffer is half full.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.points.descriptors()
    }

    /// Learns which threads belong to the trace.
    pub(super) fn learn(&mut self, events: &[Event]) {
        self.own.learn(events);
    }

    /// Takes the kernel's reports, after the events of the same time.
    pub(super) fn drain(&mut self) {
        let Self {
            points,
            cpus,
            account,
            from_ns,
            ..
        } = self;
        points.drain(counting(cpus, account, *from_ns..=u64::MAX));
        self.account.settle(&|thread| self.own.has(thread));
        self.own.end_round();
    }

    /// Ends it; reports after this moment do not count.
    pub(super) fn finish(mut self, until_ns: u64) -> InterruptSummary {
        let time = self.from_ns..=until_ns;
        self.points.switch(false);
        let now = Counts::read();
        self.points
            .drain(counting(&self.cpus, &mut self.account, time));
        let mut summary = self.account.finish(&|thread| self.own.has(thread));
        let counted = |cause: &Cause| Some((cause.clone(), now.count_since(&self.before, cause)?));
        summary.counted = summary
            .shares
            .chunk_by(|a, b| a.cause == b.cause)
            .filter_map(|of_cause| counted(&of_cause[0].cause))
            .collect();
        summary
    }
}

/// Counts what was reported within this time, and all losses: the kernel reports a loss with the
/// next record.
fn counting(
    cpus: &[usize],
    account: &mut InterruptAccount,
    time: RangeInclusive<u64>,
) -> impl FnMut(usize, Tid, Step) {
    move |place, thread, step| {
        let is_loss = step.what == StepKind::Lost && step.time_ns >= *time.start();
        if (is_loss || time.contains(&step.time_ns))
            && let Some(&cpu) = cpus.get(place)
        {
            account.take(cpu, thread, &step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(all: &[EventKind]) -> Own {
        let mut own = Own::default();
        let events = all.iter().map(|what| Event {
            time_ns: 0,
            cpu: 0,
            what: what.clone(),
        });
        own.learn(&events.collect::<Vec<_>>());
        own
    }

    #[test]
    fn threads_that_a_followed_one_starts_are_its_own() {
        let fork = |parent, child| EventKind::Fork {
            parent,
            child,
            process: child,
        };
        let own = own(&[EventKind::Follow { thread: 5 }, fork(5, 6), fork(9, 10)]);
        assert!(own.has(5) && own.has(6));
        assert!(!own.has(9) && !own.has(10) && !own.has(IDLE));
    }

    #[test]
    fn all_threads_count_if_none_is_named() {
        let own = own(&[EventKind::Exit { thread: 5 }]);
        assert!(own.has(5) && !own.has(IDLE));
    }

    #[test]
    fn a_loss_counts_whenever_the_kernel_reports_it() {
        let mut account = InterruptAccount::default();
        let mut take = counting(&[3], &mut account, 10..=20);
        for time_ns in [5, 15, 25] {
            let what = StepKind::Lost;
            take(0, IDLE, Step { time_ns, what });
        }
        drop(take);
        assert_eq!(account.finish(&|_| true).gaps, 2);
    }

    /// Reports of a round are attributed to threads at the end of the next.
    #[test]
    fn an_ended_thread_is_known_for_one_more_round() {
        let mut own = own(&[
            EventKind::Follow { thread: 5 },
            EventKind::Exit { thread: 5 },
        ]);
        own.end_round();
        assert!(own.has(5));
        own.end_round();
        assert!(!own.has(5));
    }
}
