//! Measures how long threads wait in run queues, and why.

use super::super::summary::{Wait, WaitCause, WaitCauseTotals};
use super::super::{SchedulingClass, Tid};
use super::thread::{QueuePlace, Queued, State};
use super::{Analysis, Occupant};

impl Analysis {
    /// Handles an event that a thread became runnable; `cpu` is where it was woken from.
    pub(super) fn handle_wakeup(&mut self, cpu: u32, thread: Tid, target: u32) {
        let slot = self.threads.slot_or_new(thread, self.now_ns);
        if !self.threads.is_own(slot) {
            return;
        }
        self.counts.wakeups += 1;
        let waker = match self.cpu_state(cpu).occupant {
            Occupant::Thread(waker) if waker != slot => self.threads.thread(waker),
            _ => None,
        };
        let process = self.threads.thread(slot).and_then(|woken| woken.process);
        let waker = waker.filter(|waker| process.is_some() && waker.process == process);
        let waker = waker.map(|waker| waker.tid);
        if let Some(woken) = self.threads.thread_mut(slot) {
            woken.tally.wakers.add(waker);
        }
        // A thread may be woken before it has left its CPU: it just continues.
        if matches!(self.state_of(slot), State::Unknown | State::Blocked) {
            self.queue(slot, target, false);
        }
    }

    /// Queues a followed thread on a CPU.
    pub(super) fn queue(&mut self, slot: usize, cpu: u32, is_preempted: bool) {
        let is_idle = self.cpu_state(cpu).occupant == Occupant::Idle;
        let place = if !self.scope.has_all_cpus {
            QueuePlace::Unreported(cpu)
        } else if is_idle && !is_preempted {
            self.cpu_state(cpu).starting.push(slot);
            self.update_use(cpu);
            QueuePlace::Starting(cpu)
        } else {
            self.queue_behind_others(slot, cpu)
        };
        let queued = Queued {
            since_ns: self.now_ns,
            is_preempted,
            place,
            earlier_causes: WaitCauseTotals::default(),
        };
        self.queues.set_queued(cpu, true, self.now_ns);
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.state = State::Queued(queued);
        }
    }

    fn queue_behind_others(&mut self, slot: usize, cpu: u32) -> QueuePlace {
        let mask = self.mask_of(slot);
        QueuePlace::Behind(self.queues.start_wait(slot, mask, cpu, self.now_ns))
    }

    /// The index of a thread's mask; that of all CPUs if unknown.
    fn mask_of(&self, slot: usize) -> usize {
        let thread = self.threads.thread(slot);
        thread.and_then(|thread| thread.mask).unwrap_or(0)
    }

    /// Queues a thread behind others, because the CPU that was about to start it runs another one
    /// first, or became unknown.
    pub(super) fn cancel_start(&mut self, slot: usize, cpu: u32) {
        let State::Queued(mut queued) = self.state_of(slot) else {
            return;
        };
        if queued.place != QueuePlace::Starting(cpu) {
            return;
        }
        queued.earlier_causes.starting += self.now_ns.saturating_sub(queued.since_ns);
        queued.place = self.queue_behind_others(slot, cpu);
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.state = State::Queued(queued);
        }
    }

    /// Ends the wait of a thread, if it waits.
    pub(super) fn end_wait(&mut self, slot: usize) {
        let State::Queued(queued) = self.state_of(slot) else {
            return;
        };
        if let QueuePlace::Starting(cpu) = queued.place {
            let cpu_state = self.cpu_state(cpu);
            // If it starts as expected, the CPU is about to be busy.
            let before = cpu_state.starting.len();
            cpu_state.starting.retain(|&other| other != slot);
            if cpu_state.starting.len() < before {
                self.update_use(cpu);
            }
        }
        let waited_ns = self.count_wait(slot, queued);
        self.queues
            .set_queued(queued.place.cpu(), false, self.now_ns);
        self.waits.add(waited_ns);
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.state = State::Unknown;
        }
    }

    /// Adds a wait up to now to the sums; returns its length, ns.
    pub(super) fn count_wait(&mut self, slot: usize, queued: Queued) -> u64 {
        let waited_ns = self.now_ns.saturating_sub(queued.since_ns);
        let class_hold = self.find_class_hold(slot, queued.is_preempted);
        let mut causes = match queued.place {
            QueuePlace::Unreported(_) => WaitCauseTotals::default(),
            QueuePlace::Starting(_) => WaitCauseTotals {
                starting: waited_ns,
                ..WaitCauseTotals::default()
            },
            QueuePlace::Behind(wait) => {
                let could_run = class_hold != Some(ClassHold::Always);
                self.queues.end_wait(slot, wait, could_run, self.now_ns)
            }
        };
        causes.add(queued.earlier_causes);
        causes.move_to_class(class_hold);
        self.counts.causes.add(causes);
        if queued.is_preempted {
            self.counts.after_preemption_ns += waited_ns;
        } else {
            self.counts.after_wakeup_ns += waited_ns;
        }
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.tally.wait_ns += waited_ns;
            self.timeline.add_wait(Wait {
                thread: thread.tid,
                cpu: queued.place.cpu(),
                start_ns: queued.since_ns,
                end_ns: self.now_ns.max(queued.since_ns),
                cause: causes.main_cause(),
            });
        }
        waited_ns
    }

    /// Does the thread's scheduling class keep it from running? A real-time thread precedes all
    /// others: once it runs, only the limit of its class or a higher priority preempts it.
    fn find_class_hold(&self, slot: usize, is_preempted: bool) -> Option<ClassHold> {
        match self.threads.thread(slot)?.class? {
            SchedulingClass::Deadline => Some(ClassHold::Always),
            SchedulingClass::RealTime => is_preempted.then_some(ClassHold::Always),
            SchedulingClass::Idle => Some(ClassHold::BehindOthers),
            SchedulingClass::Normal | SchedulingClass::Nice(_) => None,
        }
    }

    /// Sets a thread's state. If it was queued, that wait does not count, since its end is unknown.
    pub(super) fn set_state(&mut self, slot: usize, state: State) {
        let Some(thread) = self.threads.thread_mut(slot) else {
            return;
        };
        let before = std::mem::replace(&mut thread.state, state);
        if let State::Queued(queued) = before {
            self.count_unseen_wait(queued.since_ns);
            self.queues
                .set_queued(queued.place.cpu(), false, self.now_ns);
            match queued.place {
                QueuePlace::Unreported(_) => {}
                QueuePlace::Behind(_) => self.queues.drop_wait(slot, self.now_ns),
                QueuePlace::Starting(cpu) => {
                    let cpu_state = self.cpu_state(cpu);
                    let before = cpu_state.starting.len();
                    cpu_state.starting.retain(|&other| other != slot);
                    if cpu_state.starting.len() < before {
                        self.update_use(cpu);
                    }
                }
            }
        }
    }

    /// Counts the time since then as a possible wait, because a followed thread's state is unknown.
    pub(super) fn count_unseen_wait(&mut self, since_ns: u64) {
        let passed_ns = self.now_ns.saturating_sub(since_ns);
        let sum_ns = &mut self.counts.unseen_wait_ns;
        *sum_ns = sum_ns.saturating_add(passed_ns);
    }

    /// Splits the wait of a queued thread, because its mask changed.
    pub(super) fn requeue(&mut self, slot: usize) {
        let State::Queued(mut queued) = self.state_of(slot) else {
            return;
        };
        let QueuePlace::Behind(wait) = queued.place else {
            return;
        };
        let mask = self.mask_of(slot);
        let (causes, wait) = self.queues.change_mask(slot, wait, mask, self.now_ns);
        queued.earlier_causes.add(causes);
        queued.place = QueuePlace::Behind(wait);
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.state = State::Queued(queued);
        }
    }
}

/// How a thread's own class keeps it from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClassHold {
    /// Even if a CPU idles.
    Always,
    /// Only if other threads run.
    BehindOthers,
}

impl QueuePlace {
    const fn cpu(self) -> u32 {
        match self {
            Self::Unreported(cpu) | Self::Starting(cpu) => cpu,
            Self::Behind(wait) => wait.cpu(),
        }
    }
}

impl WaitCauseTotals {
    /// The cause of the longest part.
    fn main_cause(self) -> WaitCause {
        let parts = [
            (self.scheduler, WaitCause::Scheduler),
            (self.mask, WaitCause::Mask),
            (self.others, WaitCause::Others),
            (self.own, WaitCause::Own),
            (self.starting, WaitCause::Starting),
            (self.class, WaitCause::Class),
        ];
        let known = parts.into_iter().filter(|(ns, _)| *ns > 0);
        known
            .max_by_key(|(ns, _)| *ns)
            .map_or(WaitCause::Unreported, |(_, cause)| cause)
    }

    /// Moves the time that the thread's class explains from other causes to the class.
    fn move_to_class(&mut self, hold: Option<ClassHold>) {
        let parts = match hold {
            None => return,
            Some(ClassHold::BehindOthers) => vec![&mut self.others],
            Some(ClassHold::Always) => vec![
                &mut self.scheduler,
                &mut self.mask,
                &mut self.others,
                &mut self.starting,
            ],
        };
        self.class += parts.into_iter().map(std::mem::take).sum::<u64>();
    }

    fn add(&mut self, other: Self) {
        self.scheduler += other.scheduler;
        self.mask += other.mask;
        self.others += other.others;
        self.own += other.own;
        self.starting += other.starting;
        self.class += other.class;
    }
}
