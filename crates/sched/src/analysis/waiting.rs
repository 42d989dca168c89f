//! Threads in run queues: how long, and why.

use super::super::summary::{Wait, WaitCause, WaitCauseTotals};
use super::super::{SchedulingClass, Tid};
use super::thread::{Place, Queued, State};
use super::{Analysis, Occupant};

impl Analysis {
    /// A thread became runnable; the event comes from `cpu`.
    pub(super) fn wake(&mut self, cpu: u32, thread: Tid, target: u32) {
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

    /// A followed thread is queued on a CPU.
    pub(super) fn queue(&mut self, slot: usize, cpu: u32, is_preempted: bool) {
        let is_idle = self.cpu_state(cpu).occupant == Occupant::Idle;
        let place = if !self.scope.has_all_cpus {
            Place::Unreported(cpu)
        } else if is_idle && !is_preempted {
            self.cpu_state(cpu).starting.push(slot);
            self.update_use(cpu);
            Place::Starting(cpu)
        } else {
            self.find_cause(slot, cpu)
        };
        let queued = Queued {
            since_ns: self.now_ns,
            is_preempted,
            place,
            before: WaitCauseTotals::default(),
        };
        self.queues.set_queued(cpu, true, self.now_ns);
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.state = State::Queued(queued);
        }
    }

    fn find_cause(&mut self, slot: usize, cpu: u32) -> Place {
        let mask = self.mask_of(slot);
        Place::Behind(self.queues.enter(slot, mask, cpu, self.now_ns))
    }

    /// The number of a thread's mask; that of all CPUs if unknown.
    fn mask_of(&self, slot: usize) -> usize {
        let thread = self.threads.thread(slot);
        thread.and_then(|thread| thread.mask).unwrap_or(0)
    }

    /// The CPU that was about to start a thread took another one first, or became unknown.
    pub(super) fn forget_start(&mut self, slot: usize, cpu: u32) {
        let State::Queued(mut queued) = self.state_of(slot) else {
            return;
        };
        if queued.place != Place::Starting(cpu) {
            return;
        }
        queued.before.starting += self.now_ns.saturating_sub(queued.since_ns);
        queued.place = self.find_cause(slot, cpu);
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.state = State::Queued(queued);
        }
    }

    /// A thread that may have waited stops waiting.
    pub(super) fn end_wait(&mut self, slot: usize) {
        let State::Queued(queued) = self.state_of(slot) else {
            return;
        };
        if let Place::Starting(cpu) = queued.place {
            let cpu_state = self.cpu_state(cpu);
            // If it starts as expected, the CPU is about to be busy.
            let many = cpu_state.starting.len();
            cpu_state.starting.retain(|&other| other != slot);
            if cpu_state.starting.len() < many {
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

    /// Adds a wait to the sums, finished or not.
    pub(super) fn count_wait(&mut self, slot: usize, queued: Queued) -> u64 {
        let waited_ns = self.now_ns.saturating_sub(queued.since_ns);
        let held = self.held_by_class(slot, queued.is_preempted);
        let mut causes = match queued.place {
            Place::Unreported(_) => WaitCauseTotals::default(),
            Place::Starting(_) => WaitCauseTotals {
                starting: waited_ns,
                ..WaitCauseTotals::default()
            },
            Place::Behind(mark) => {
                let could_run = held != Some(HeldByClass::Always);
                self.queues.leave(slot, mark, could_run, self.now_ns)
            }
        };
        causes.add(queued.before);
        causes.blame_class(held);
        self.counts.causes.add(causes);
        if queued.is_preempted {
            self.counts.after_preemption_ns += waited_ns;
        } else {
            self.counts.after_wakeup_ns += waited_ns;
        }
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.tally.wait_ns += waited_ns;
            self.drawing.add_wait(Wait {
                thread: thread.tid,
                cpu: queued.place.cpu(),
                start_ns: queued.since_ns,
                end_ns: self.now_ns.max(queued.since_ns),
                why: causes.foremost(),
            });
        }
        waited_ns
    }

    /// Idle CPUs and other programs are not to blame if the kernel itself holds a thread back. A
    /// real-time thread precedes all others: once it runs, only the limit of its class or a higher
    /// priority stops it.
    fn held_by_class(&self, slot: usize, is_preempted: bool) -> Option<HeldByClass> {
        match self.threads.thread(slot)?.class? {
            SchedulingClass::Deadline => Some(HeldByClass::Always),
            SchedulingClass::RealTime => is_preempted.then_some(HeldByClass::Always),
            SchedulingClass::Idle => Some(HeldByClass::BehindOthers),
            SchedulingClass::Normal => None,
        }
    }

    /// Sets a state without counting the wait before.
    pub(super) fn set_state(&mut self, slot: usize, state: State) {
        let Some(thread) = self.threads.thread_mut(slot) else {
            return;
        };
        let before = std::mem::replace(&mut thread.state, state);
        if let State::Queued(queued) = before {
            self.miss_wait(queued.since_ns);
            self.queues
                .set_queued(queued.place.cpu(), false, self.now_ns);
            match queued.place {
                Place::Unreported(_) => {}
                Place::Behind(_) => self.queues.forget(slot, self.now_ns),
                Place::Starting(cpu) => {
                    let cpu_state = self.cpu_state(cpu);
                    let many = cpu_state.starting.len();
                    cpu_state.starting.retain(|&other| other != slot);
                    if cpu_state.starting.len() < many {
                        self.update_use(cpu);
                    }
                }
            }
        }
    }

    /// A followed thread's state since then is unknown: it may have been queued.
    pub(super) fn miss_wait(&mut self, since_ns: u64) {
        let missed_ns = self.now_ns.saturating_sub(since_ns);
        let all = &mut self.counts.unseen_wait_ns;
        *all = all.saturating_add(missed_ns);
    }

    /// A queued thread's mask changed: its wait is split there.
    pub(super) fn requeue(&mut self, slot: usize) {
        let State::Queued(mut queued) = self.state_of(slot) else {
            return;
        };
        let Place::Behind(mark) = queued.place else {
            return;
        };
        let mask = self.mask_of(slot);
        let (causes, mark) = self.queues.renew(slot, mark, mask, self.now_ns);
        queued.before.add(causes);
        queued.place = Place::Behind(mark);
        if let Some(thread) = self.threads.thread_mut(slot) {
            thread.state = State::Queued(queued);
        }
    }
}

/// How a thread's own class keeps it from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeldByClass {
    /// Even if a CPU idles.
    Always,
    /// Only if other threads run.
    BehindOthers,
}

impl Place {
    const fn cpu(self) -> u32 {
        match self {
            Self::Unreported(cpu) | Self::Starting(cpu) => cpu,
            Self::Behind(mark) => mark.cpu(),
        }
    }
}

impl WaitCauseTotals {
    /// The cause of the longest part.
    fn foremost(self) -> WaitCause {
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
            .map_or(WaitCause::Unreported, |(_, why)| why)
    }

    /// Time explained by the class has no other cause.
    fn blame_class(&mut self, held: Option<HeldByClass>) {
        let parts = match held {
            None => return,
            Some(HeldByClass::BehindOthers) => vec![&mut self.others],
            Some(HeldByClass::Always) => vec![
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
