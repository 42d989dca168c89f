//! Handles events about the life of threads: their start, names, masks and end; and lost records.

use super::super::SchedulingClass;
use super::super::blocked::Blocked;
use super::super::summary::ThreadSummary;
use super::super::{LeaveReason, Tid};
use super::closing::Totals;
use super::histogram::Histogram;
use super::thread::{QueuePlace, State, SwitchCounts, Thread};
use super::timeline::TimelineBuilder;
use super::{Analysis, Counts, Occupant};
use pinwise_topology::CpuSet;

/// A thread that announced its end and left its CPU this long ago has ended.
const ENDED_AFTER_NS: u64 = 1_000_000_000;
/// Limits the threads that announced their end and are watched.
const MAX_ENDING: usize = 4_096;

impl Analysis {
    pub(super) fn handle_fork(&mut self, parent: Tid, child: Tid, process: Tid) {
        if let Some(old) = self.threads.slot(child)
            && !self.is_same_thread(old, process)
        {
            self.retire_thread(old);
        }
        self.threads.begin(child);
        let parent = self.threads.slot(parent);
        let slot = self.threads.slot_or_new(child, self.now_ns);
        let inherited = parent.and_then(|parent| {
            let parent = self.threads.thread(parent)?;
            Some((
                parent.is_own,
                parent.mask,
                parent.class,
                parent.name.clone(),
            ))
        });
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.process = Some(process);
            thread.was_born = true;
            thread.since_ns = self.now_ns;
            if let Some((_, mask, class, name)) = &inherited {
                thread.mask = *mask;
                thread.class = *class;
                thread.name = name.clone();
            }
        }
        if inherited.is_some_and(|(is_own, ..)| is_own) {
            self.threads.follow(slot);
        }
        if self.threads.is_own(slot) {
            self.threads.note_process(Some(process));
        }
    }

    /// A poll can mention a new thread before the event of its start: such a thread has done
    /// nothing yet. Another thread with the same id has ended.
    fn is_same_thread(&self, slot: usize, process: Tid) -> bool {
        self.threads.thread(slot).is_some_and(|thread| {
            let has_done_nothing = thread.is_fresh && !thread.was_born && !thread.is_ending;
            has_done_nothing && thread.process == Some(process)
        })
    }

    pub(super) fn handle_exit(&mut self, tid: Tid) {
        let Some(slot) = self.threads.slot(tid) else {
            return;
        };
        if let Some(thread) = self.threads.thread_mut(slot) {
            // It is still on its CPU: it ends with the next switch.
            thread.is_ending = true;
        }
        match self.state_of(slot) {
            _ if !self.scope.has_switches => self.retire_thread(slot),
            // A source of single threads has no record of the last switch.
            State::Running { cpu } if !self.scope.has_all_cpus => {
                self.handle_departure(cpu, tid, LeaveReason::Ended);
            }
            _ => {}
        }
    }

    /// Removes a thread that left its CPU for the last time. A thread that announced its end may be
    /// preempted or wait a few more times; if its last switch is not marked, it has ended if it
    /// runs no more for [`ENDED_AFTER_NS`].
    pub(super) fn retire_if_ended(&mut self, slot: Option<usize>, left: LeaveReason) {
        let Some(slot) = slot else { return };
        if left == LeaveReason::Ended {
            if let Some(thread) = self.threads.thread_mut(slot) {
                thread.is_ending = true;
            }
            self.retire_thread(slot);
            return;
        }
        if let Some(thread) = self.threads.thread(slot).filter(|t| t.is_ending) {
            let tid = thread.tid;
            self.ending.push_back((self.now_ns, tid));
            self.retire_ended_threads();
        }
    }

    fn retire_ended_threads(&mut self) {
        while let Some(&(left_ns, tid)) = self.ending.front() {
            let is_due = self.now_ns.saturating_sub(left_ns) >= ENDED_AFTER_NS;
            if !is_due && self.ending.len() <= MAX_ENDING {
                return;
            }
            self.ending.pop_front();
            let slot = self.threads.slot(tid);
            let is_away = |slot: &usize| !matches!(self.state_of(*slot), State::Running { .. });
            let is_ending = |slot: &usize| self.threads.thread(*slot).is_some_and(|t| t.is_ending);
            if let Some(slot) = slot.filter(is_away).filter(is_ending) {
                self.retire_thread(slot);
            }
        }
    }

    /// Removes a thread, whatever its state; if it seems to be running, its CPU's state was wrong.
    fn retire_thread(&mut self, slot: usize) {
        if let State::Running { cpu } = self.state_of(slot)
            && self.cpu_state(cpu).occupant == Occupant::Thread(slot)
        {
            self.contradict(cpu);
        }
        self.set_state(slot, State::Unknown);
        self.retire(slot);
    }

    /// Removes a thread and adds its sums to the totals.
    pub(super) fn retire(&mut self, slot: usize) {
        // The kernel ends perf's records of a thread before it frees the process's memory: the
        // thread may be queued once more, for as long as the longest wait of the trace.
        let longest_ns = self.waits.longest();
        let has_unseen_end = self.scope.has_switches && !self.scope.has_all_cpus;
        if has_unseen_end
            && let Some(thread) = self.threads.thread_mut(slot).filter(|t| t.is_ending)
            && thread.process.is_none_or(|process| process == thread.tid)
        {
            thread.unseen_end_ns = longest_ns;
        }
        let Self {
            threads,
            queues,
            scope,
            totals,
            now_ns,
            ..
        } = self;
        let (scope, now_ns) = (*scope, *now_ns);
        threads.retire(slot, now_ns, |thread| {
            let summary =
                summarise_thread(thread, scope, now_ns, |mask| queues.cpus_of(mask).clone());
            totals.add(&summary);
            summary
        });
    }

    pub(super) fn set_process(&mut self, thread: Tid, process: Tid) {
        let slot = self.threads.slot_or_new(thread, self.now_ns);
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.process = Some(process);
        }
        if self.threads.is_own(slot) {
            self.threads.note_process(Some(process));
        }
    }

    pub(super) fn follow(&mut self, thread: Tid) {
        if self.threads.is_everyone {
            self.restart();
        }
        let slot = self.threads.slot_or_new(thread, self.now_ns);
        self.threads.follow(slot);
        if let State::Running { cpu } = self.state_of(slot) {
            self.count_shared_time(cpu);
            self.update_use(cpu);
        }
    }

    /// An event says that the trace is about particular threads: drops all figures so far, and
    /// keeps the state of threads and CPUs.
    fn restart(&mut self) {
        let now_ns = self.now_ns;
        for slot in self.threads.living() {
            if matches!(self.state_of(slot), State::Queued(_)) {
                self.set_state(slot, State::Unknown);
            }
        }
        self.threads.restart(now_ns);
        self.queues.restart(now_ns);
        self.cores.restart(now_ns);
        self.parallel.restart(now_ns);
        self.timeline = TimelineBuilder::new();
        self.timeline.begin(now_ns);
        self.waits = Histogram::new();
        self.blocked = Blocked::default();
        self.counts = Counts::default();
        self.totals = Totals::default();
        self.ending.clear();
        self.from_ns = Some(now_ns);
        let sums = self.cores.sums_at(now_ns);
        for cpu in 0..self.cpu_states.len() {
            let cpu_state = &mut self.cpu_states[cpu];
            cpu_state.own_ns = 0;
            cpu_state.foreign_ns = 0;
            cpu_state.idle_ns = 0;
            cpu_state.switches = 0;
            cpu_state.since_ns = now_ns;
            cpu_state.last_event_ns = now_ns;
            cpu_state.sums_at_last_event = sums;
            cpu_state.polled_ns = cpu_state.polled_ns.map(|(_, last)| (last, last));
            self.update_use(u32::try_from(cpu).unwrap_or(u32::MAX));
        }
    }

    pub(super) fn set_name(&mut self, thread: Tid, name: &str) {
        let slot = self.threads.slot_or_new(thread, self.now_ns);
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.name = name.into();
        }
    }

    pub(super) fn set_mask(&mut self, thread: Tid, cpus: &CpuSet) {
        let slot = self.threads.slot_or_new(thread, self.now_ns);
        let (mask, is_new) = self.queues.add_mask(cpus);
        if is_new {
            self.cores.add_mask(cpus);
        }
        let Some(thread) = self.threads.thread_mut(slot) else {
            return;
        };
        if thread.mask.replace(mask) == Some(mask) {
            return;
        }
        match thread.state {
            State::Running { cpu } => {
                self.count_shared_time(cpu);
                self.update_use(cpu);
            }
            State::Queued(_) => self.requeue(slot),
            State::Unknown | State::Blocked => {}
        }
    }

    /// Records of a CPU since its last event were lost: its state becomes unknown, and so does that
    /// of the threads it ran and of those queued on it.
    pub(super) fn handle_lost_records(&mut self, cpu: u32, records: u64) {
        let now_ns = self.now_ns;
        let last_ns = self.cpu_state(cpu).last_event_ns;
        let counts = &mut self.counts;
        // The number comes from a file and can be anything.
        counts.lost_records = counts.lost_records.saturating_add(records);
        counts.lost_windows += 1;
        let lost_ns = now_ns.saturating_sub(last_ns);
        counts.lost_ns = counts.lost_ns.saturating_add(lost_ns);
        self.set_occupant_unknown(cpu);
        for slot in self.threads.living() {
            let is_queued_here = match self.state_of(slot) {
                State::Queued(queued) => match queued.place {
                    QueuePlace::Behind(wait) => wait.cpu() == cpu,
                    QueuePlace::Starting(at) => at == cpu,
                    QueuePlace::Unreported(_) => true,
                },
                _ => false,
            };
            if is_queued_here {
                self.set_state(slot, State::Unknown);
            }
        }
        self.save_sums(cpu);
    }
}

pub(super) fn summarise_thread(
    thread: &Thread,
    scope: super::Scope,
    now_ns: u64,
    cpus_of: impl Fn(usize) -> CpuSet,
) -> ThreadSummary {
    let tally = &thread.tally;
    let mut cpus = tally.cpus.clone();
    cpus.retain(|(_, ns)| *ns > 0);
    cpus.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let polled = thread.polled.as_deref();
    let waited = thread.wait_so_far(now_ns);
    // If wake-ups are seen, a thread's waits are computed from its events, unless events are
    // missing.
    let is_hidden = scope.has_wakeups && thread.is_hidden();
    let has_events = scope.has_switches && !is_hidden;
    let from_kernel = thread.counted_switches();
    let is_polled = polled.is_some_and(|p| p.last.voluntary.is_some()) && !scope.has_switches;
    let is_counted = has_events || is_polled || from_kernel.is_some();
    let SwitchCounts {
        switches,
        preemptions,
    } = from_kernel.unwrap_or_default();
    let is_bound = (is_hidden || !scope.has_wakeups) && waited.is_lower_bound();
    ThreadSummary {
        thread: thread.tid,
        process: thread.process,
        name: thread.name.to_string(),
        cpu_ns: if scope.has_switches {
            thread.cpu_so_far().ns
        } else {
            tally.cpu_ns
        },
        wait_ns: if scope.has_wakeups && !is_hidden {
            Some(tally.wait_ns)
        } else {
            (waited.is_reported || waited.ns > 0).then_some(waited.ns)
        },
        is_wait_lower_bound: is_bound,
        switches: is_counted.then_some(tally.switches.max(switches)),
        preemptions: is_counted.then_some(tally.preemptions.max(preemptions)),
        migrations: tally.migrations,
        shared_ns: has_events.then_some(tally.shared_ns),
        cpus,
        allowed: thread.mask.map(cpus_of),
        nice: match thread.class {
            Some(SchedulingClass::Nice(nice)) => Some(nice),
            _ => None,
        },
        life_ns: now_ns.saturating_sub(thread.since_ns),
        wakers: tally.wakers.clone(),
    }
}
