//! Adds polled figures of threads and CPUs: the only data of the poorest tier, and a complement for
//! the others.

use super::super::{Crossed, Sample};
use super::looks::Polled;
use super::thread::{State, Thread};
use super::{Analysis, Occupant};

impl Analysis {
    pub(super) fn add_sample(&mut self, sample: &Sample) {
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
        if let Some(blocked_in) = sample.blocked_in.filter(|_| thread.is_own) {
            let process = thread.process.unwrap_or(thread.tid);
            let (tid, name) = (thread.tid, &thread.name);
            let place = sample.blocked_at.as_deref();
            self.blocked.add(process, tid, name, blocked_in, place);
        }
        thread.polled_ns = Some(now_ns);
        thread.class = sample.class.or(thread.class);
        thread.cpu_ns_at_last_poll = thread.tally.cpu_ns + on_cpu_ns;
        if thread.polled.is_none() {
            thread.cpu_ns_at_first_poll = thread.cpu_ns_at_last_poll;
        }
        match &mut thread.polled {
            Some(polled) => polled.last = sample.clone(),
            None => thread.polled = Some(Box::new(Polled::new(sample))),
        }
    }

    /// At the start of a trace it is unknown which threads run. A runnable thread is assumed to run
    /// on its last CPU; the CPU's first switch corrects mistakes.
    fn guess_running(&mut self, slot: usize, sample: &Sample) {
        let cpu_state = self.cpu_state(sample.cpu);
        let is_cpu_unknown = cpu_state.is_fresh && cpu_state.occupant == Occupant::Unknown;
        let is_fresh = self.threads.thread(slot).is_some_and(|t| t.is_fresh);
        if is_cpu_unknown && is_fresh && sample.is_runnable && self.state_of(slot) == State::Unknown
        {
            let now_ns = self.now_ns;
            self.cpu_state(sample.cpu).since_ns = now_ns;
            self.set_occupant(sample.cpu, Occupant::Thread(slot));
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
        let ran_ns = growth_since_last_poll(thread, |s| Some(s.run_ns), sample);
        let tally = &mut thread.tally;
        tally.add_cpu_time(sample.cpu, ran_ns);
        let crossed = thread
            .last_cpu
            .filter(|&last| last != sample.cpu)
            .map(|last| cpu_map.classify_move(last, sample.cpu));
        thread.last_cpu = Some(sample.cpu);
        if let Some(crossed) = crossed {
            thread.tally.migrations.add(crossed, 1);
        }
        // The kernel counts all moves between two polls, but does not say between which CPUs.
        let moved = growth_since_last_poll(thread, |s| s.migrations, sample);
        let seen = u64::from(crossed.is_some());
        let unseen = match &mut thread.polled {
            Some(polled) => polled.count_unseen(moved, seen),
            None => moved.saturating_sub(seen),
        };
        thread.tally.migrations.add(Crossed::Unknown, unseen);
        let preemptions = growth_since_last_poll(thread, |s| s.involuntary, sample);
        thread.tally.preemptions += preemptions;
        thread.tally.switches +=
            preemptions + growth_since_last_poll(thread, |s| s.voluntary, sample);
        thread.tally.wait_ns += growth_since_last_poll(thread, |s| s.wait_ns, sample);
        let is_own = thread.is_own;
        self.timeline
            .add_busy(sample.cpu, is_own, now_ns.saturating_sub(ran_ns), now_ns);
        let cpu_state = self.cpu_state(sample.cpu);
        if is_own {
            cpu_state.own_ns += ran_ns;
        } else {
            cpu_state.foreign_ns += ran_ns;
        }
    }

    pub(super) fn add_cpu_usage(&mut self, cpu: u32, busy_ns: u64) {
        let cpu_state = self.cpu_state(cpu);
        let first = cpu_state.polled_ns.map_or(busy_ns, |(first, _)| first);
        cpu_state.polled_ns = Some((first, busy_ns));
    }
}

/// How much a cumulative figure has grown since the last poll, or since the thread's start if that
/// was in the trace.
fn growth_since_last_poll(
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
