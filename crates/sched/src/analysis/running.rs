//! Handles threads that arrive on CPUs and leave them, and counts the time between.

use super::super::summary::Slice;
use super::super::{IDLE, LeaveReason, Tid};
use super::sharing::Use;
use super::thread::State;
use super::{Analysis, Occupant};

impl Analysis {
    pub(super) fn handle_switch(&mut self, cpu: u32, prev: Tid, left: LeaveReason, next: Tid) {
        let leaving = (prev != IDLE).then(|| self.threads.slot_or_new(prev, self.now_ns));
        let arriving = (next != IDLE).then(|| self.threads.slot_or_new(next, self.now_ns));
        let expected = leaving.map_or(Occupant::Idle, Occupant::Thread);
        let occupant = self.cpu_state(cpu).occupant;
        if occupant == Occupant::Unknown {
            self.set_first_occupant(cpu, expected);
        } else if occupant != expected {
            let was_idle = occupant == Occupant::Idle;
            self.cpu_state(cpu).unseen_arrivals += u64::from(was_idle);
            self.contradict(cpu);
            self.cpu_state(cpu).occupant = expected;
        }
        for slot in leaving.into_iter().chain(arriving) {
            self.correct_other_cpu(slot, cpu);
        }
        self.count_cpu_time(cpu, left);
        if let Some(slot) = leaving {
            self.leave(slot, cpu, left);
        }
        self.cpu_state(cpu).switches += 1;
        self.set_occupant(cpu, arriving.map_or(Occupant::Idle, Occupant::Thread));
        self.save_sums(cpu);
        self.retire_if_ended(leaving, left);
    }

    /// Handles half a switch: a thread arrives on a CPU.
    pub(super) fn handle_arrival(&mut self, cpu: u32, thread: Tid) {
        let slot = self.threads.slot_or_new(thread, self.now_ns);
        match self.cpu_state(cpu).occupant {
            Occupant::Thread(other) if other == slot => return,
            Occupant::Thread(_) => self.contradict(cpu),
            Occupant::Idle | Occupant::Unknown => {}
        }
        self.correct_other_cpu(slot, cpu);
        self.count_cpu_time(cpu, LeaveReason::Unreported);
        self.set_occupant(cpu, Occupant::Thread(slot));
        self.save_sums(cpu);
    }

    /// Handles the other half: a thread leaves a CPU.
    pub(super) fn handle_departure(&mut self, cpu: u32, thread: Tid, left: LeaveReason) {
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
                    self.correct_other_cpu(slot, cpu);
                    self.set_state(slot, State::Unknown);
                    self.retire_if_ended(Some(slot), left);
                    return;
                }
            }
        }
        self.count_cpu_time(cpu, left);
        self.leave(slot, cpu, left);
        self.cpu_state(cpu).switches += 1;
        self.set_occupant(cpu, Occupant::Unknown);
        self.save_sums(cpu);
        self.retire_if_ended(Some(slot), left);
    }

    /// Sets the occupant of a CPU that its first switch reveals. If every switch is seen, it has
    /// been there since the trace began, unless it may have been elsewhere.
    fn set_first_occupant(&mut self, cpu: u32, occupant: Occupant) {
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

    /// Handles an occupant that turned out to be wrong: the time since the CPU's last event does
    /// not count. Before the CPU's first event this is no contradiction: its occupant was a guess
    /// from the list of processes.
    pub(super) fn contradict(&mut self, cpu: u32) {
        self.counts.contradictions += u64::from(!self.cpu_state(cpu).is_fresh);
        self.set_occupant_unknown(cpu);
    }

    /// Sets the state of a CPU and of the thread it ran to unknown; the time since the CPU's last
    /// event does not count.
    pub(super) fn set_occupant_unknown(&mut self, cpu: u32) {
        let now_ns = self.now_ns;
        let last = self.cpu_state(cpu).sums_at_last_event;
        self.cores.deduct_since(last, now_ns);
        let cpu_state = self.cpu_state(cpu);
        cpu_state.is_fresh = false;
        let since_ns = std::mem::replace(&mut cpu_state.since_ns, now_ns);
        let occupant = cpu_state.occupant;
        for slot in std::mem::take(&mut self.cpu_state(cpu).starting) {
            self.set_state(slot, State::Unknown);
        }
        if let Occupant::Thread(slot) = occupant {
            if self.threads.is_own(slot) {
                self.count_unseen_wait(since_ns);
            }
            self.set_state(slot, State::Unknown);
        }
        self.set_occupant(cpu, Occupant::Unknown);
    }

    /// If a thread on this CPU seems to be on another one, too, that was wrong.
    fn correct_other_cpu(&mut self, slot: usize, cpu: u32) {
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

    /// Counts the time since the CPU's last change for the thread it ran.
    pub(super) fn count_cpu_time(&mut self, cpu: u32, left: LeaveReason) {
        let now_ns = self.now_ns;
        let cpu_state = self.cpu_state(cpu);
        let start_ns = std::mem::replace(&mut cpu_state.since_ns, now_ns);
        cpu_state.is_fresh = false;
        let passed = now_ns.saturating_sub(start_ns);
        let occupied_ns = self.queues.take_occupied_ns(cpu, now_ns);
        let cpu_state = self.cpu_state(cpu);
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
            thread.tally.add_cpu_time(cpu, passed);
            let slice = Slice {
                thread: thread.tid,
                cpu,
                start_ns,
                end_ns: now_ns,
                ended_by: left,
            };
            self.timeline
                .add_slice(slice, &mut thread.tally.slice_index);
        } else {
            cpu_state.foreign_ns += passed;
            thread.tally.occupied_ns += occupied_ns;
        }
        self.timeline.add_busy(cpu, thread.is_own, start_ns, now_ns);
    }

    /// Updates a thread that leaves its CPU; its time was counted.
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
        // If it seemed to wait, the end of that wait was not seen.
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

    pub(super) fn set_occupant(&mut self, cpu: u32, occupant: Occupant) {
        self.count_shared_time(cpu);
        let starting = std::mem::take(&mut self.cpu_state(cpu).starting);
        if let Occupant::Thread(slot) = occupant {
            self.arrive(slot, cpu);
        }
        self.cpu_state(cpu).occupant = occupant;
        self.update_use(cpu);
        for slot in starting {
            self.cancel_start(slot, cpu);
        }
    }

    /// Counts a core's shared time so far for the threads on it.
    pub(super) fn count_shared_time(&mut self, cpu: u32) {
        let Some((cpus, shared_ns)) = self.cores.count_core_time(cpu, self.now_ns) else {
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

    /// Updates a thread that arrives on a CPU: ends its wait, and counts its move.
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

    /// Tells cores and queues what a CPU is used for now.
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
        self.cores.set_use(cpu, self.now_ns, used);
        self.parallel.set(cpu, runs_own, self.now_ns);
        if self.scope.has_all_cpus {
            self.queues.set_free(cpu, is_free, self.now_ns);
            self.queues
                .set_foreign(cpu, used == Use::Foreign, self.now_ns);
            self.queues.set_own(cpu, runs_own, self.now_ns);
        }
    }

    /// Saves the sums; they are restored if the next records of this CPU are lost.
    pub(super) fn save_sums(&mut self, cpu: u32) {
        let now_ns = self.now_ns;
        let sums = self.cores.sums_at(now_ns);
        let cpu_state = self.cpu_state(cpu);
        cpu_state.sums_at_last_event = sums;
        cpu_state.last_event_ns = now_ns;
    }
}
