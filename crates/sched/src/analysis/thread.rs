//! A thread of a trace: its state and its figures, from events and from the kernel's own counts.

use super::super::summary::{WaitCauseTotals, Wakers};
use super::super::{Migrations, Sample, SchedulingClass, Tid};
use super::{looks::Polled, queues::WaitStart};

/// Events are incomplete if they lack more of a thread's CPU time than this, ns, and than one part
/// in `HIDDEN_SHARE`. Smaller differences arise because polls are not exactly at the trace's end.
const HIDDEN_NS: u64 = 1_000_000;
const HIDDEN_SHARE: u64 = 33;
/// The kernel's report of an ending thread can miss its time since the last tick, at most this.
const LATE_END_NS: u64 = 10_000_000;
/// Threads from before the trace can be first polled this late.
const LATE_FIRST_POLL_NS: u64 = 50_000_000;

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Unknown.
    Unknown,
    /// It waits for something other than a CPU.
    Blocked,
    /// It is queued.
    Queued(Queued),
    /// It is on a CPU.
    Running {
        /// The CPU.
        cpu: u32,
    },
}

/// A thread in a run queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queued {
    /// Since when.
    pub(super) since_ns: u64,
    /// Was it preempted, and not woken?
    pub(super) is_preempted: bool,
    pub(super) place: QueuePlace,
    /// Causes of the part of this wait before it came to this place.
    pub(super) earlier_causes: WaitCauseTotals,
}

/// Where a thread is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueuePlace {
    /// On this CPU; the state of the others is unknown.
    Unreported(u32),
    /// On an idle CPU that is about to start it.
    Starting(u32),
    /// Behind other threads.
    Behind(WaitStart),
}

/// A living thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) tid: Tid,
    pub(super) process: Option<Tid>,
    pub(super) name: Box<str>,
    pub(super) is_own: bool,
    /// No switch of the thread was seen yet.
    pub(super) is_fresh: bool,
    /// It has announced its end.
    pub(super) is_ending: bool,
    /// Did it begin during the trace?
    pub(super) was_born: bool,
    pub(super) state: State,
    /// Index of its mask; `None`: unknown.
    pub(super) mask: Option<usize>,
    /// `None`: unknown.
    pub(super) class: Option<SchedulingClass>,
    pub(super) last_cpu: Option<u32>,
    pub(super) since_ns: u64,
    /// When it last left a CPU.
    pub(super) left_ns: u64,
    pub(super) tally: Tally,
    /// Its first and latest poll.
    pub(super) polled: Option<Box<Polled>>,
    /// When it was last polled.
    pub(super) polled_ns: Option<u64>,
    /// Its CPU time by events at its first and at its latest poll.
    pub(super) cpu_ns_at_first_poll: u64,
    pub(super) cpu_ns_at_last_poll: u64,
    /// It seemed to have ended, and its earlier figures are counted already.
    pub(super) is_back: bool,
    /// How long it may have been queued between its last event and its end.
    pub(super) unseen_end_ns: u64,
}

/// The figures of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) cpu_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) switches: u64,
    pub(super) preemptions: u64,
    pub(super) migrations: Migrations,
    pub(super) shared_ns: u64,
    /// Of a thread that is not followed: CPU time while followed threads were queued on its CPU.
    pub(super) occupied_ns: u64,
    /// CPUs and the time on them, ns.
    pub(super) cpus: Vec<(u32, u64)>,
    /// Its index among the threads of the timeline's slices, once it has one.
    pub(super) slice_index: Option<u32>,
    pub(super) wakers: Wakers,
}

impl Tally {
    /// Adds time on a CPU.
    pub(super) fn add_cpu_time(&mut self, cpu: u32, ns: u64) {
        self.cpu_ns += ns;
        match self.cpus.iter().position(|(other, _)| *other == cpu) {
            Some(at) => {
                self.cpus[at].1 += ns;
                // Finds its present CPU faster next time.
                if at > 3 {
                    self.cpus.swap(0, at);
                }
            }
            None => self.cpus.push((cpu, ns)),
        }
    }
}

impl Thread {
    pub(super) fn new(tid: Tid, time_ns: u64, is_own: bool) -> Self {
        Self {
            tid,
            process: None,
            name: "".into(),
            is_own,
            is_fresh: true,
            is_ending: false,
            was_born: false,
            state: State::Unknown,
            mask: None,
            class: None,
            last_cpu: None,
            since_ns: time_ns,
            left_ns: time_ns,
            tally: Tally::default(),
            polled: None,
            polled_ns: None,
            cpu_ns_at_first_poll: 0,
            cpu_ns_at_last_poll: 0,
            is_back: false,
            unseen_end_ns: 0,
        }
    }

    /// Time queued if wake-ups are not seen: the kernel's figure, or the seen waits if those are
    /// longer. If the kernel reported the thread's end, its figure is exceeded only by waits after
    /// that report: a wait by events includes some of the switch itself, and all time to the next
    /// event if one is missing.
    pub(super) fn wait_so_far(&self, now_ns: u64) -> PartialWait {
        let polled_ns = self.polled_wait_ns();
        let last_poll_ns = self.polled_ns.unwrap_or(self.since_ns);
        let is_whole = self.polled.as_deref().is_some_and(|p| p.last.is_last);
        let max_ns = match polled_ns {
            Some(ns) if is_whole => ns.saturating_add(self.unexplained_ns()),
            _ => u64::MAX,
        };
        PartialWait {
            is_reported: polled_ns.is_some(),
            ns: polled_ns.unwrap_or(0).max(self.tally.wait_ns.min(max_ns)),
            unseen_ns: if is_whole {
                self.unexplained_ns().saturating_add(self.unseen_end_ns)
            } else {
                now_ns.saturating_sub(last_poll_ns)
            },
        }
    }

    /// How long it did not run between the kernel's report of its end and its last switch: it may
    /// have been queued.
    fn unexplained_ns(&self) -> u64 {
        let Some(last) = self.polled.as_deref().map(|polled| &polled.last) else {
            return 0;
        };
        let Some(life_ns) = last.life_ns.filter(|_| self.was_born) else {
            return 0;
        };
        let after_ns = self
            .left_ns
            .saturating_sub(self.since_ns.saturating_add(life_ns));
        after_ns.saturating_sub(self.tally.cpu_ns.saturating_sub(last.run_ns))
    }

    /// Switches counted by the kernel since the trace began; `None` if the thread was not polled at
    /// its end.
    pub(super) fn counted_switches(&self) -> Option<SwitchCounts> {
        let Polled { first, last, .. } = self.polled.as_deref()?;
        let grown = |figure: fn(&Sample) -> Option<u64>| {
            let before = if self.was_born { 0 } else { figure(first)? };
            Some(figure(last)?.saturating_sub(before))
        };
        let involuntary = grown(|sample| sample.involuntary)?;
        let voluntary = grown(|sample| sample.voluntary)?;
        last.is_last.then_some(SwitchCounts {
            switches: voluntary.saturating_add(involuntary),
            preemptions: involuntary,
        })
    }

    /// CPU time if switches are seen. The kernel's own count is better: it includes time without
    /// events, and excludes time that a hypervisor took from the CPU.
    pub(super) fn cpu_so_far(&self) -> PartialCpu {
        let by_events_ns = self.tally.cpu_ns;
        let Some(Polled { first, last, .. }) = self.polled.as_deref() else {
            return PartialCpu {
                ns: by_events_ns,
                unseen_ns: 0,
                doubtful_ns: 0,
            };
        };
        let counted_ns = if self.was_born {
            last.run_ns
        } else {
            self.cpu_ns_at_first_poll
                .saturating_add(last.run_ns.saturating_sub(first.run_ns))
        };
        // An ending thread runs on for a while after the kernel's report.
        let later_ns = if last.is_last && !self.is_ending {
            0
        } else {
            by_events_ns.saturating_sub(self.cpu_ns_at_last_poll)
        };
        let whole_ns = counted_ns.saturating_add(later_ns);
        let late_ns = if self.was_born {
            LATE_END_NS
        } else {
            LATE_FIRST_POLL_NS
        };
        let is_whole = last.is_last && !self.is_back;
        let is_too_much = is_whole && by_events_ns > whole_ns.saturating_add(late_ns);
        let ns = if is_too_much { whole_ns } else { by_events_ns };
        PartialCpu {
            ns: ns.max(counted_ns),
            unseen_ns: counted_ns.saturating_sub(by_events_ns),
            doubtful_ns: match is_whole && !self.was_born {
                true => ns.max(counted_ns).saturating_sub(whole_ns),
                false => 0,
            },
        }
    }

    /// Do events lack a notable part of its activity?
    pub(super) fn is_hidden(&self) -> bool {
        let cpu = self.cpu_so_far();
        cpu.unseen_ns > HIDDEN_NS.max(cpu.ns / HIDDEN_SHARE)
    }

    /// Time queued that events do not show, if they lack a notable part of the thread's activity.
    pub(super) fn hidden_wait(&self, now_ns: u64) -> PartialWait {
        if !self.is_hidden() {
            return PartialWait::default();
        }
        let waited = self.wait_so_far(now_ns);
        PartialWait {
            ns: waited.ns.saturating_sub(self.tally.wait_ns),
            ..waited
        }
    }

    /// Time queued as counted by the kernel, since the trace began.
    fn polled_wait_ns(&self) -> Option<u64> {
        let Polled { first, last, .. } = self.polled.as_deref()?;
        let before = if self.was_born {
            0
        } else {
            first.wait_ns.unwrap_or(0)
        };
        Some(last.wait_ns?.saturating_sub(before))
    }
}

/// Switches of a thread, and the preemptions among them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SwitchCounts {
    pub(super) switches: u64,
    pub(super) preemptions: u64,
}

/// CPU time, as far as known.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartialCpu {
    pub(super) ns: u64,
    /// The part of `ns` that events lack.
    pub(super) unseen_ns: u64,
    /// The part of `ns` by which events exceed the kernel's count, for a thread that existed before
    /// the trace.
    pub(super) doubtful_ns: u64,
}

/// Time queued, as far as known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PartialWait {
    /// The kernel reported some of it.
    pub(super) is_reported: bool,
    pub(super) ns: u64,
    /// Upper limit of the missing part.
    pub(super) unseen_ns: u64,
}

impl PartialWait {
    /// A missing part is negligible up to 1 in this many.
    const NEGLIGIBLE: u64 = 50;

    pub(super) const fn add(&mut self, other: Self) {
        self.is_reported |= other.is_reported;
        self.ns = self.ns.saturating_add(other.ns);
        self.unseen_ns = self.unseen_ns.saturating_add(other.unseen_ns);
    }

    /// Is it a notable part of the whole?
    pub(super) const fn is_notable_in(&self, whole_ns: u64) -> bool {
        self.ns > whole_ns / Self::NEGLIGIBLE
    }

    pub(super) const fn is_lower_bound(&self) -> bool {
        self.unseen_ns > self.ns / Self::NEGLIGIBLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_waits_saturate() {
        let long = PartialWait {
            is_reported: true,
            ns: u64::MAX - 1,
            unseen_ns: u64::MAX - 1,
        };
        let mut wait = long;
        wait.add(long);
        assert_eq!((wait.ns, wait.unseen_ns), (u64::MAX, u64::MAX));
        assert!(wait.is_lower_bound());
    }
}
