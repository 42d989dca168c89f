//! Sums up interrupts during a trace, from tracepoints on all CPUs.
//!
//! Every record names the thread that had the CPU. Whether that thread is traced is known from the
//! trace's events, which may come a round later.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::os::fd::RawFd;

use super::super::counts::Counts;
use super::interrupt_points::{InterruptPoints, PointChoice};
use super::threads;
use crate::MachineError;
use pinwise_sched::jitter::{Cause, Report, ReportKind};
use pinwise_sched::{Event, EventKind, IDLE, InterruptAccount, InterruptSummary, Tid};

/// The sums so far.
#[derive(Debug)]
pub(super) struct Interrupts {
    points: InterruptPoints,
    /// CPUs in the order of their buffers.
    cpus: Vec<usize>,
    account: InterruptAccount,
    traced: TracedThreads,
    /// Start of the trace: earlier records do not count.
    from_ns: u64,
    /// The kernel's counts at the start.
    before: Counts,
}

/// The traced threads.
#[derive(Debug, Default)]
struct TracedThreads {
    /// Are only some threads traced? Otherwise all are.
    is_limited: bool,
    live: BTreeSet<Tid>,
    /// Threads that ended in this round and in the one before.
    ended: [BTreeSet<Tid>; 2],
}

impl TracedThreads {
    fn learn(&mut self, events: &[Event]) {
        for event in events {
            match event.what {
                EventKind::Follow { thread } => {
                    self.is_limited = true;
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

    fn contains(&self, thread: Tid) -> bool {
        let is_known = |threads: &BTreeSet<Tid>| threads.contains(&thread);
        match self.is_limited {
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
        points.set_enabled(true);
        Ok(Self {
            points,
            cpus: cpus.iter().collect(),
            account: InterruptAccount::default(),
            traced: TracedThreads::default(),
            from_ns: 0,
            before: Counts::default(),
        })
    }

    /// Notes that the trace begins.
    pub(super) fn begin(&mut self, now_ns: u64) {
        self.from_ns = now_ns;
        self.before = Counts::read();
    }

    /// Descriptors that become readable when a buffer is half full.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.points.descriptors()
    }

    /// Learns which threads are traced.
    pub(super) fn learn(&mut self, events: &[Event]) {
        self.traced.learn(events);
    }

    /// Reads the kernel's records. Call it after [`Self::learn`] got the events of the same time.
    pub(super) fn drain(&mut self) {
        let Self {
            points,
            cpus,
            account,
            from_ns,
            ..
        } = self;
        points.drain(add_to(cpus, account, *from_ns..=u64::MAX));
        self.account
            .assign_threads(&|thread| self.traced.contains(thread));
        self.traced.end_round();
    }

    /// Stops recording and returns the sums; records after `until_ns` do not count.
    pub(super) fn finish(mut self, until_ns: u64) -> InterruptSummary {
        let time = self.from_ns..=until_ns;
        self.points.set_enabled(false);
        let now = Counts::read();
        self.points
            .drain(add_to(&self.cpus, &mut self.account, time));
        let mut summary = self.account.finish(&|thread| self.traced.contains(thread));
        let counted = |cause: &Cause| Some((cause.clone(), now.count_since(&self.before, cause)?));
        summary.counted = summary
            .shares
            .chunk_by(|a, b| a.cause == b.cause)
            .filter_map(|of_cause| counted(&of_cause[0].cause))
            .collect();
        summary
    }
}

/// Makes a receiver that adds to `account` the records within this time, and all losses after its
/// start: the kernel reports a loss with the next record, which may come after the end.
fn add_to(
    cpus: &[usize],
    account: &mut InterruptAccount,
    time: RangeInclusive<u64>,
) -> impl FnMut(usize, Tid, Report) {
    move |index, thread, report| {
        let is_loss = report.what == ReportKind::Lost && report.time_ns >= *time.start();
        if (is_loss || time.contains(&report.time_ns))
            && let Some(&cpu) = cpus.get(index)
        {
            account.add_report(cpu, thread, &report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(all: &[EventKind]) -> TracedThreads {
        let mut own = TracedThreads::default();
        let events = all.iter().map(|what| Event {
            time_ns: 0,
            cpu: 0,
            what: what.clone(),
        });
        own.learn(&events.collect::<Vec<_>>());
        own
    }

    #[test]
    fn threads_started_by_a_followed_thread_are_traced() {
        let fork = |parent, child| EventKind::Fork {
            parent,
            child,
            process: child,
        };
        let own = own(&[EventKind::Follow { thread: 5 }, fork(5, 6), fork(9, 10)]);
        assert!(own.contains(5) && own.contains(6));
        assert!(!own.contains(9) && !own.contains(10) && !own.contains(IDLE));
    }

    #[test]
    fn all_threads_are_traced_if_none_is_followed() {
        let own = own(&[EventKind::Exit { thread: 5 }]);
        assert!(own.contains(5) && !own.contains(IDLE));
    }

    #[test]
    fn a_loss_counts_even_if_reported_after_the_end() {
        let mut account = InterruptAccount::default();
        let mut take = add_to(&[3], &mut account, 10..=20);
        for time_ns in [5, 15, 25] {
            let what = ReportKind::Lost;
            take(0, IDLE, Report { time_ns, what });
        }
        drop(take);
        assert_eq!(account.finish(&|_| true).gaps, 2);
    }

    /// Reports of a round are attributed to threads at the end of the next.
    #[test]
    fn an_ended_thread_is_traced_for_one_more_round() {
        let mut own = own(&[
            EventKind::Follow { thread: 5 },
            EventKind::Exit { thread: 5 },
        ]);
        own.end_round();
        assert!(own.contains(5));
        own.end_round();
        assert!(!own.contains(5));
    }
}
