//! Threads on CPUs: arrival, departure, and the time between.

use super::super::summary::Slice;
use super::super::{IDLE, LeaveReason, Tid};
use super::sharing::Use;
use super::thread::State;
use super::{Analysis, Occupant};

impl Analysis {
    /// A CPU switches from one thread to another.
    pub(super) fn switch(&mut self, cpu: u32, prev: Tid, left: LeaveReason, next: Tid) {
        let leaver = (prev != IDLE).then(|| self.threads.slot_or_new(prev, self.now_ns));
        let comer = (next != IDLE).then(|| self.threads.slot_or_new(next, self.now_ns));
        let expected = leaver.map_or(Occupant::Idle, Occupant::Thread);
        let occupant = self.cpu_state(cpu).occupant;
        if occupant == Occupant::Unknown {
            self.assume_since_begin(cpu, expected);
        } else if occupant != expected {
            let was_idle = occupant == Occupant::Idle;
            self.cpu_state(cpu).unseen_arrivals += u64::from(was_idle);
            self.contradict(cpu);
            self.cpu_state(cpu).occupant = expected;
        }
        for slot in leaver.into_iter().chain(comer) {
            self.forget_elsewhere(slot, cpu);
        }
        self.credit(cpu, left);
        if let Some(slot) = leaver {
            self.leave(slot, cpu, left);
        }
        self.cpu_state(cpu).switches += 1;
        self.occupy(cpu, comer.map_or(Occupant::Idle, Occupant::Thread));
        self.remember_event(cpu);
        self.retire_if_ended(leaver, left);
    }

    /// Half a switch: a thread arrives on a CPU.
    pub(super) fn take_arrival(&mut self, cpu: u32, thread: Tid) {
        let slot = self.threads.slot_or_new(thread, self.now_ns);
        match self.cpu_state(cpu).occupant {
            Occupant::Thread(other) if other == slot => return,
            Occupant::Thread(_) => self.contradict(cpu),
            Occupant::Idle | Occupant::Unknown => {}
        }
        self.forget_elsewhere(slot, cpu);
        self.credit(cpu, LeaveReason::Unreported);
        self.occupy(cpu, Occupant::Thread(slot));
        self.remember_event(cpu);
    }

    /// The other half: a thread leaves a CPU.
    pub(super) fn take_departure(&mut self, cpu: u32, thread: Tid, left: LeaveReason) {
        let slot = self.threads.slot_or_new(thread, self.now_ns);
        let occupant = self.cpu_state(cpu).occupant;
        if occupant != Occupant::Thread(slot) {
            let fresh_since = self.threads.thread(slot).filter(|t| t.is_fresh);
            let fresh_since = fresh_since.map(|thread| thread.since_ns);
            match (occupant, fresh_since) {
                // It was on the CPU when it was first seen.
                (Occupant::Unknown, Some(since_ns)) => {
                    let cpu_state = self.cpu_state(cpu);
                    cpu_state.occupant = Occupant::Thread(slot);
                    cpu_state.since_ns = since_ns.max(cpu_state.since_ns);
                }
                _ => {
                    self.counts.contradictions += 1;
                    self.forget_elsewhere(slot, cpu);
                    self.set_state(slot, State::Unknown);
                    self.retire_if_ended(Some(slot), left);
                    return;
                }
            }
        }
        self.credit(cpu, left);
        self.leave(slot, cpu, left);
        self.cpu_state(cpu).switches += 1;
        self.occupy(cpu, Occupant::Unknown);
        self.remember_event(cpu);
        self.retire_if_ended(Some(slot), left);
    }

    /// The first switch of a CPU shows its earlier occupant: since every switch is seen, the
    /// leaving thread has been there since the trace began, unless it may have been elsewhere.
    fn assume_since_begin(&mut self, cpu: u32, occupant: Occupant) {
        let now_ns = self.now_ns;
        let was_elsewhere = match occupant {
            Occupant::Thread(slot) => self.threads.may_be_known(slot),
            Occupant::Idle | Occupant::Unknown => false,
        };
        let sees_all = self.scope.has_all_cpus && !was_elsewhere;
        let cpu_state = self.cpu_state(cpu);
        if !(sees_all && cpu_state.is_fresh) {
            cpu_state.since_ns = now_ns;
        }
        cpu_state.occupant = occupant;
    }

    /// The assumed occupant was wrong: nothing since then counts. Before its first event that was a
    /// guess from the list of processes.
    pub(super) fn contradict(&mut self, cpu: u32) {
        self.counts.contradictions += u64::from(!self.cpu_state(cpu).is_fresh);
        self.forget_occupant(cpu);
    }

    /// The CPU's state becomes unknown, and so does the thread it ran.
    pub(super) fn forget_occupant(&mut self, cpu: u32) {
        let now_ns = self.now_ns;
        let last = self.cpu_state(cpu).moment;
        self.cores.take_back(last, now_ns);
        let cpu_state = self.cpu_state(cpu);
        cpu_state.is_fresh = false;
        let since_ns = std::mem::replace(&mut cpu_state.since_ns, now_ns);
        let was = cpu_state.occupant;
        for slot in std::mem::take(&mut self.cpu_state(cpu).starting) {
            self.set_state(slot, State::Unknown);
        }
        if let Occupant::Thread(slot) = was {
            if self.threads.is_own(slot) {
                self.miss_wait(since_ns);
            }
            self.set_state(slot, State::Unknown);
        }
        self.occupy(cpu, Occupant::Unknown);
    }

    /// A thread on this CPU is on no other.
    fn forget_elsewhere(&mut self, slot: usize, cpu: u32) {
        if let State::Running { cpu: other } = self.state_of(slot)
            && other != cpu
            && self.cpu_state(other).occupant == Occupant::Thread(slot)
        {
            self.contradict(other);
        }
    }

    pub(super) fn state_of(&self, slot: usize) -> State {
        let thread = self.threads.thread(slot);
        thread.map_or(State::Unknown, |thread| thread.state)
    }

    /// Credits the time since the CPU's last change to the thread it ran.
    pub(super) fn credit(&mut self, cpu: u32, left: LeaveReason) {
        let now_ns = self.now_ns;
        let cpu_state = self.cpu_state(cpu);
        let start_ns = std::mem::replace(&mut cpu_state.since_ns, now_ns);
        cpu_state.is_fresh = false;
        let passed = now_ns.saturating_sub(start_ns);
        let slot = match cpu_state.occupant {
            Occupant::Unknown => return,
            Occupant::Idle => {
                cpu_state.idle_ns += passed;
                return;
            }
            Occupant::Thread(slot) => slot,
        };
        let Some(thread) = self.threads.thread_mut(slot) else {
            return;
        };
        let cpu_state = &mut self.cpu_states[cpu as usize];
        if thread.is_own {
            cpu_state.own_ns += passed;
            thread.tally.ran(cpu, passed);
            let slice = Slice {
                thread: thread.tid,
                cpu,
                start_ns,
                end_ns: now_ns,
                ended_by: left,
            };
            self.drawing.add_slice(slice, &mut thread.tally.place);
        } else {
            cpu_state.foreign_ns += passed;
        }
        self.drawing.add_busy(cpu, thread.is_own, start_ns, now_ns);
    }

    /// A thread leaves its CPU, whose time was credited.
    fn leave(&mut self, slot: usize, cpu: u32, left: LeaveReason) {
        let now_ns = self.now_ns;
        let Some(thread) = self.threads.thread_mut(slot) else {
            return;
        };
        thread.is_fresh = false;
        thread.last_cpu = Some(cpu);
        thread.left_ns = now_ns;
        thread.tally.switches += 1;
        thread.tally.preemptions += u64::from(left == LeaveReason::Preempted);
        let is_queued = left == LeaveReason::Preempted && thread.is_own;
        // If it was thought to wait, the end of that wait was not seen.
        self.set_state(
            slot,
            match left {
                LeaveReason::Blocked => State::Blocked,
                LeaveReason::Preempted | LeaveReason::Ended | LeaveReason::Unreported => {
                    State::Unknown
                }
            },
        );
        if is_queued {
            self.queue(slot, cpu, true);
        }
    }

    /// Changes the CPU's occupant, from now on.
    pub(super) fn occupy(&mut self, cpu: u32, to: Occupant) {
        self.settle_core(cpu);
        let starting = std::mem::take(&mut self.cpu_state(cpu).starting);
        if let Occupant::Thread(slot) = to {
            self.arrive(slot, cpu);
        }
        self.cpu_state(cpu).occupant = to;
        self.update_use(cpu);
        for slot in starting {
            self.forget_start(slot, cpu);
        }
    }

    /// Credits a core's shared time so far to the followed threads on it.
    pub(super) fn settle_core(&mut self, cpu: u32) {
        let Some((cpus, shared_ns)) = self.cores.settle(cpu, self.now_ns) else {
            return;
        };
        if shared_ns == 0 {
            return;
        }
        for &sibling in cpus {
            if let Some(Occupant::Thread(slot)) = self.cpu_states.get(sibling).map(|s| s.occupant)
                && let Some(thread) = self.threads.thread_mut(slot)
            {
                thread.tally.shared_ns += shared_ns;
            }
        }
    }

    /// A thread arrives on a CPU: its wait is over, and it may have moved.
    fn arrive(&mut self, slot: usize, cpu: u32) {
        self.end_wait(slot);
        let cpu_map = &self.cpu_map;
        let Some(thread) = self.threads.thread_mut(slot) else {
            return;
        };
        if let Some(last) = thread.last_cpu.filter(|&last| last != cpu) {
            thread
                .tally
                .migrations
                .add(cpu_map.classify_move(last, cpu), 1);
        }
        thread.last_cpu = Some(cpu);
        thread.is_fresh = false;
        thread.state = State::Running { cpu };
    }

    /// Updates the sums over cores and queues from a CPU's state.
    pub(super) fn update_use(&mut self, cpu: u32) {
        let cpu_state = &self.cpu_states[cpu as usize];
        let used = match cpu_state.occupant {
            Occupant::Unknown => Use::Unknown,
            Occupant::Idle => Use::Idle,
            Occupant::Thread(slot) => match self.threads.thread(slot) {
                Some(thread) if thread.is_own => Use::Own {
                    mask: thread.mask.unwrap_or(0),
                },
                _ => Use::Foreign,
            },
        };
        let is_free = used == Use::Idle && cpu_state.starting.is_empty();
        let runs_own = matches!(used, Use::Own { .. });
        self.cores.change(cpu, self.now_ns, used);
        self.parallel.set(cpu, runs_own, self.now_ns);
        if self.scope.has_all_cpus {
            self.queues.set_free(cpu, is_free, self.now_ns);
            self.queues
                .set_foreign(cpu, used == Use::Foreign, self.now_ns);
            self.queues.set_own(cpu, runs_own, self.now_ns);
        }
    }

    /// Remembers the sums, to return to them if records of this CPU are lost.
    pub(super) fn remember_event(&mut self, cpu: u32) {
        let now_ns = self.now_ns;
        let moment = self.cores.moment(now_ns);
        let cpu_state = self.cpu_state(cpu);
        cpu_state.moment = moment;
        cpu_state.last_event_ns = now_ns;
    }
}
