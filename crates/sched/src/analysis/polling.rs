//! Polled figures of threads: the only data of the poorest tier, and a complement for the others.

use super::super::{Crossed, Sample};
use super::looks::Polled;
use super::thread::{State, Thread};
use super::{Analysis, Occupant};

impl Analysis {
    pub(super) fn sample(&mut self, sample: &Sample) {
        let slot = self.threads.slot_or_new(sample.thread, self.now_ns);
        if self.scope.has_switches {
            self.guess_running(slot, sample);
        } else {
            self.count_polled(slot, sample);
        }
        let now_ns = self.now_ns;
        let on_cpu_ns = match self.state_of(slot) {
            State::Running { cpu } => now_ns.saturating_sub(self.cpu_state(cpu).since_ns),
            _ => 0,
        };
        let Some(thread) = self.threads.thread_mut(slot) else {
            return;
        };
        if let Some(what) = sample.blocked_in.filter(|_| thread.is_own) {
            let process = thread.process.unwrap_or(thread.tid);
            let (tid, name) = (thread.tid, &thread.name);
            let place = sample.blocked_at.as_deref();
            self.blocked.add(process, tid, name, what, place);
        }
        thread.polled_ns = Some(now_ns);
        thread.class = sample.class.or(thread.class);
        thread.looked_cpu_ns.1 = thread.tally.cpu_ns + on_cpu_ns;
        if thread.polled.is_none() {
            thread.looked_cpu_ns.0 = thread.looked_cpu_ns.1;
        }
        match &mut thread.polled {
            Some(polled) => polled.last = sample.clone(),
            None => thread.polled = Some(Box::new(Polled::new(sample))),
        }
    }

    /// At the start of a trace the threads on CPUs are unknown. A runnable thread that was last on
    /// a CPU is assumed to run there; the first switch corrects mistakes.
    fn guess_running(&mut self, slot: usize, sample: &Sample) {
        let cpu_state = self.cpu_state(sample.cpu);
        let is_open = cpu_state.is_fresh && cpu_state.occupant == Occupant::Unknown;
        let is_fresh = self.threads.thread(slot).is_some_and(|t| t.is_fresh);
        if is_open && is_fresh && sample.is_runnable && self.state_of(slot) == State::Unknown {
            let now_ns = self.now_ns;
            self.cpu_state(sample.cpu).since_ns = now_ns;
            self.occupy(sample.cpu, Occupant::Thread(slot));
            if let Some(thread) = self.threads.thread_mut(slot) {
                thread.is_fresh = true;
            }
        }
    }

    fn count_polled(&mut self, slot: usize, sample: &Sample) {
        let now_ns = self.now_ns;
        let cpu_map = &self.cpu_map;
        let Some(thread) = self.threads.thread_mut(slot) else {
            return;
        };
        let ran_ns = growth_since_last_look(thread, |s| Some(s.run_ns), sample);
        let tally = &mut thread.tally;
        tally.ran(sample.cpu, ran_ns);
        let crossed = thread
            .last_cpu
            .filter(|&last| last != sample.cpu)
            .map(|last| cpu_map.classify_move(last, sample.cpu));
        thread.last_cpu = Some(sample.cpu);
        if let Some(crossed) = crossed {
            thread.tally.migrations.add(crossed, 1);
        }
        // The kernel counted the moves between two polls, but not their CPUs.
        let moved = growth_since_last_look(thread, |s| s.migrations, sample);
        let seen = u64::from(crossed.is_some());
        let unseen = match &mut thread.polled {
            Some(polled) => polled.count_unseen(moved, seen),
            None => moved.saturating_sub(seen),
        };
        thread.tally.migrations.add(Crossed::Unknown, unseen);
        let pushed = growth_since_last_look(thread, |s| s.involuntary, sample);
        thread.tally.preemptions += pushed;
        thread.tally.switches += pushed + growth_since_last_look(thread, |s| s.voluntary, sample);
        thread.tally.wait_ns += growth_since_last_look(thread, |s| s.wait_ns, sample);
        let is_own = thread.is_own;
        self.drawing
            .add_busy(sample.cpu, is_own, now_ns.saturating_sub(ran_ns), now_ns);
        let cpu_state = self.cpu_state(sample.cpu);
        if is_own {
            cpu_state.own_ns += ran_ns;
        } else {
            cpu_state.foreign_ns += ran_ns;
        }
    }

    pub(super) fn usage(&mut self, cpu: u32, busy_ns: u64) {
        let cpu_state = self.cpu_state(cpu);
        let first = cpu_state.polled_ns.map_or(busy_ns, |(first, _)| first);
        cpu_state.polled_ns = Some((first, busy_ns));
    }
}

/// How much a cumulative figure has grown since the last poll, or since the thread's beginning if
/// that was in the trace.
fn growth_since_last_look(
    thread: &Thread,
    figure: impl Fn(&Sample) -> Option<u64>,
    now: &Sample,
) -> u64 {
    let before = match thread.polled.as_deref() {
        Some(polled) => figure(&polled.last),
        None if thread.was_born => Some(0),
        None => figure(now),
    };
    let grown = figure(now).zip(before);
    grown.map_or(0, |(now, before)| now.saturating_sub(before))
}
