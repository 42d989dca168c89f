//! Lives of threads: beginning, names, masks and end; and lost records.

use super::super::blocked::Blocked;
use super::super::summary::ThreadSummary;
use super::super::{LeaveReason, Tid};
use super::closing::Totals;
use super::histogram::Histogram;
use super::thread::{Place, State, Thread};
use super::timeline::Drawing;
use super::{Analysis, Counts, Occupant};
use pinwise_topology::CpuSet;

/// A thread that announced its end and left its CPU this long ago is gone.
const STAYS_AWAY_NS: u64 = 1_000_000_000;
/// Limits the threads that may be about to end.
const MAX_DYING: usize = 4_096;

impl Analysis {
    pub(super) fn fork(&mut self, parent: Tid, child: Tid, process: Tid) {
        if let Some(old) = self.threads.slot(child)
            && !self.is_announced(old, process)
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

    /// A thread polled before the stream is processed is known before its first event: it has done
    /// nothing yet.
    fn is_announced(&self, slot: usize, process: Tid) -> bool {
        self.threads.thread(slot).is_some_and(|thread| {
            let has_done_nothing = thread.is_fresh && !thread.was_born && !thread.is_ending;
            has_done_nothing && thread.process == Some(process)
        })
    }

    pub(super) fn exit(&mut self, tid: Tid) {
        let Some(slot) = self.threads.slot(tid) else {
            return;
        };
        if let Some(thread) = self.threads.thread_mut(slot) {
            // It is still on its CPU: the switch that follows ends it.
            thread.is_ending = true;
        }
        match self.state_of(slot) {
            _ if !self.scope.has_switches => self.retire_thread(slot),
            // A source of single threads has no record of the last switch.
            State::Running { cpu } if !self.scope.has_all_cpus => {
                self.take_departure(cpu, tid, LeaveReason::Ended);
            }
            _ => {}
        }
    }

    /// Removes a thread that left its CPU for good. A thread that announced its end may be
    /// preempted or wait a few times more before its last switch; if that is not marked, it is gone
    /// once it stays away.
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
            self.dying.push_back((self.now_ns, tid));
            self.retire_ended_threads();
        }
    }

    fn retire_ended_threads(&mut self) {
        while let Some(&(left_ns, tid)) = self.dying.front() {
            let is_due = self.now_ns.saturating_sub(left_ns) >= STAYS_AWAY_NS;
            if !is_due && self.dying.len() <= MAX_DYING {
                return;
            }
            self.dying.pop_front();
            let slot = self.threads.slot(tid);
            let is_away = |slot: &usize| !matches!(self.state_of(*slot), State::Running { .. });
            let is_ending = |slot: &usize| self.threads.thread(*slot).is_some_and(|t| t.is_ending);
            if let Some(slot) = slot.filter(is_away).filter(is_ending) {
                self.retire_thread(slot);
            }
        }
    }

    /// Retires a thread, whatever its state.
    fn retire_thread(&mut self, slot: usize) {
        if let State::Running { cpu } = self.state_of(slot)
            && self.cpu_state(cpu).occupant == Occupant::Thread(slot)
        {
            self.contradict(cpu);
        }
        self.set_state(slot, State::Unknown);
        self.retire(slot);
    }

    /// A thread is gone; its sums go to the totals.
    pub(super) fn retire(&mut self, slot: usize) {
        // The kernel ends perf's records of a thread before the process's memory is torn down: it
        // may be queued once more, for as long as other threads were.
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
            let summary = summarise(thread, scope, now_ns, |mask| queues.cpus_of(mask).clone());
            totals.add(&summary);
            summary
        });
    }

    pub(super) fn know(&mut self, thread: Tid, process: Tid) {
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
            self.settle_core(cpu);
            self.update_use(cpu);
        }
    }

    /// The trace turns out to be about particular threads: drops all figures so far, and keeps the
    /// state of threads and CPUs.
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
        self.drawing = Drawing::new();
        self.drawing.begin(now_ns);
        self.waits = Histogram::new();
        self.blocked = Blocked::default();
        self.counts = Counts::default();
        self.totals = Totals::default();
        self.dying.clear();
        self.from_ns = Some(now_ns);
        let moment = self.cores.moment(now_ns);
        for cpu in 0..self.cpu_states.len() {
            let cpu_state = &mut self.cpu_states[cpu];
            cpu_state.own_ns = 0;
            cpu_state.foreign_ns = 0;
            cpu_state.idle_ns = 0;
            cpu_state.switches = 0;
            cpu_state.since_ns = now_ns;
            cpu_state.last_event_ns = now_ns;
            cpu_state.moment = moment;
            cpu_state.polled_ns = cpu_state.polled_ns.map(|(_, last)| (last, last));
            self.update_use(u32::try_from(cpu).unwrap_or(u32::MAX));
        }
    }

    pub(super) fn name(&mut self, thread: Tid, name: &str) {
        let slot = self.threads.slot_or_new(thread, self.now_ns);
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.name = name.into();
        }
    }

    pub(super) fn set_mask(&mut self, thread: Tid, cpus: &CpuSet) {
        let slot = self.threads.slot_or_new(thread, self.now_ns);
        let (mask, is_new) = self.queues.mask_number(cpus);
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
                self.settle_core(cpu);
                self.update_use(cpu);
            }
            State::Queued(_) => self.requeue(slot),
            State::Unknown | State::Blocked => {}
        }
    }

    /// Records of a CPU are missing since its last event: what it did is unknown, and so are the
    /// threads it ran and those queued on it.
    pub(super) fn mark_lost(&mut self, cpu: u32, records: u64) {
        let now_ns = self.now_ns;
        let last_ns = self.cpu_state(cpu).last_event_ns;
        let counts = &mut self.counts;
        // The number comes from a file.
        counts.lost_records = counts.lost_records.saturating_add(records);
        counts.lost_windows += 1;
        let lost_ns = now_ns.saturating_sub(last_ns);
        counts.lost_ns = counts.lost_ns.saturating_add(lost_ns);
        self.forget_occupant(cpu);
        for slot in self.threads.living() {
            let is_there = match self.state_of(slot) {
                State::Queued(queued) => match queued.place {
                    Place::Behind(mark) => mark.cpu() == cpu,
                    Place::Starting(at) => at == cpu,
                    Place::Unreported(_) => true,
                },
                _ => false,
            };
            if is_there {
                self.set_state(slot, State::Unknown);
            }
        }
        self.remember_event(cpu);
    }
}

/// The summary of a thread.
pub(super) fn summarise(
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
    // If wake-ups are seen, the events of other threads are complete.
    let is_hidden = scope.has_wakeups && thread.is_hidden();
    let has_events = scope.has_switches && !is_hidden;
    let by_kernel = thread.counted_switches();
    let is_polled = polled.is_some_and(|p| p.last.voluntary.is_some()) && !scope.has_switches;
    let is_counted = has_events || is_polled || by_kernel.is_some();
    let (switches, preemptions) = by_kernel.unwrap_or_default();
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
        life_ns: now_ns.saturating_sub(thread.since_ns),
        wakers: tally.wakers.clone(),
    }
}
