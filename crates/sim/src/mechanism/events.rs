//! The run itself: from event to event, until the work is done.
//!
//! An event is a thread's wake-up, the end of its burst or slice, or the end of all work. Between
//! two events speeds do not change.

use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::refill::refill_s;
use super::run_setup::RunSetup;
use super::{PlayedRun, Policy, Step, Witness};
use pinwise_sched::LeaveReason;

/// More events show nothing new: the rest continues at the speed so far.
const MAX_EVENTS: u32 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// Until then it waits.
    Waiting { left_s: f64 },
    /// No CPU is free for it.
    Queued,
    /// On the CPU at this position.
    Running { at: usize },
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    state: State,
    /// Work before it waits.
    burst_s: f64,
    /// Time until it is placed again.
    slice_s: f64,
    /// Caches to fill before it progresses.
    refill_s: f64,
    last: Option<usize>,
}

struct Play<'a> {
    setup: &'a RunSetup<'a>,
    chance: &'a mut ChaCha8Rng,
    threads: Vec<Thread>,
    /// Thread on each CPU.
    on: Vec<Option<usize>>,
    busy_in_core: Vec<u32>,
    queue: VecDeque<usize>,
    left_s: f64,
    played: PlayedRun,
    witness: &'a mut dyn Witness,
}

pub(super) fn play(
    setup: &RunSetup<'_>,
    chance: &mut ChaCha8Rng,
    witness: &mut dyn Witness,
) -> PlayedRun {
    let unborn = Thread {
        state: State::Queued,
        burst_s: 0.0,
        slice_s: f64::INFINITY,
        refill_s: 0.0,
        last: None,
    };
    let mut play = Play {
        threads: vec![unborn; setup.threads.len()],
        on: vec![None; setup.cpus.len()],
        busy_in_core: vec![0; setup.core_slots],
        queue: VecDeque::new(),
        left_s: setup.workload.base_s,
        played: PlayedRun {
            wall_s: 0.0,
            busy_s: 0.0,
            foreign_s: 0.0,
            migrations: 0,
            followed_s: 0.0,
        },
        setup,
        chance,
        witness,
    };
    play.begin();
    let mut events = 0;
    let may_go_on = |play: &Play<'_>| play.left_s > 0.0 && !play.witness.is_done();
    while may_go_on(&play) && events < MAX_EVENTS && play.step() {
        events += 1;
    }
    play.end();
    play.add_rest();
    play.played
}

impl Play<'_> {
    /// Neighbours run before the command; its first thread starts the others.
    fn begin(&mut self) {
        let own = self.setup.own_threads();
        for number in own..self.threads.len() {
            self.see(Step::Begins { thread: number });
            // Exponential times have no memory: a neighbour that has run for long is waiting with
            // the stationary probability.
            let group = self.setup.group(number);
            let (burst, wait) = (group.burst_s.unwrap_or(0.0), group.wait_s.unwrap_or(0.0));
            if self.chance.random::<f64>() * (burst + wait) < wait {
                let left_s = self.exponential(wait);
                self.threads[number].state = State::Waiting { left_s };
            } else {
                self.wake(number);
            }
        }
        for number in 0..own {
            self.see(Step::Begins { thread: number });
            self.wake(number);
        }
    }

    /// Ends the threads of finished work, the first one last.
    fn end(&mut self) {
        self.played.followed_s = self.played.wall_s;
        if self.left_s > 0.0 {
            return;
        }
        for thread in (0..self.setup.own_threads()).rev() {
            self.see(Step::Ends { thread });
            if let State::Running { at } = self.threads[thread].state {
                self.leave(thread, at, LeaveReason::Ended);
            }
        }
    }

    fn see(&mut self, step: Step) {
        self.witness.see(self.played.wall_s, step);
    }

    /// Advances to the next event; `false` if there will be none.
    fn step(&mut self) -> bool {
        let (mut next, mut after) = (None, f64::INFINITY);
        let mut speed_of_all = 0.0;
        for (number, thread) in self.threads.iter().enumerate() {
            let until = match thread.state {
                State::Queued => continue,
                State::Waiting { left_s } => left_s,
                State::Running { at } => {
                    let speed = self.speed(at);
                    if thread.refill_s <= 0.0 && self.setup.is_own(number) {
                        speed_of_all += speed;
                    }
                    let fill = thread.refill_s / speed;
                    let burst = fill + thread.burst_s / speed;
                    let event = burst.min(thread.slice_s);
                    if fill > 0.0 { event.min(fill) } else { event }
                }
            };
            if until < after {
                (next, after) = (Some(number), until);
            }
        }
        let end = if speed_of_all > 0.0 {
            self.left_s / speed_of_all
        } else {
            f64::INFINITY
        };
        if end <= after {
            self.pass(end);
            self.left_s = 0.0;
            return true;
        }
        let Some(next) = next.filter(|_| after.is_finite()) else {
            return false;
        };
        self.pass(after);
        self.happen(next);
        true
    }

    /// Adds the part of the run beyond the last event.
    fn add_rest(&mut self) {
        let done = self.setup.workload.base_s - self.left_s;
        if self.left_s > 0.0 && done > 0.0 {
            let scale = self.setup.workload.base_s / done;
            self.played.wall_s *= scale;
            self.played.busy_s *= scale;
            self.played.foreign_s *= scale;
        }
    }

    /// Work per second on the CPU at this position.
    fn speed(&self, at: usize) -> f64 {
        match self.busy_in_core[self.setup.core_of[at]] {
            0 | 1 => 1.0,
            busy => self.setup.smt_throughput / f64::from(busy),
        }
    }

    fn pass(&mut self, time: f64) {
        self.played.wall_s += time;
        for number in 0..self.threads.len() {
            match self.threads[number].state {
                State::Queued => {}
                State::Waiting { left_s } => {
                    self.threads[number].state = State::Waiting {
                        left_s: left_s - time,
                    };
                }
                State::Running { at } => {
                    let mut work = time * self.speed(at);
                    let is_own = self.setup.is_own(number);
                    if is_own {
                        self.played.busy_s += time;
                    } else {
                        self.played.foreign_s += time;
                    }
                    let thread = &mut self.threads[number];
                    thread.slice_s -= time;
                    if thread.refill_s > 0.0 {
                        thread.refill_s = (thread.refill_s - work).max(0.0);
                        // The end of a refill is an event of its own.
                        if thread.refill_s < 1e-12 {
                            thread.refill_s = 0.0;
                        }
                        work = 0.0;
                    }
                    thread.burst_s -= work;
                    if is_own {
                        self.left_s -= work;
                    }
                }
            }
        }
    }

    /// Handles a thread's due event.
    fn happen(&mut self, number: usize) {
        const NOW: f64 = 1e-12;
        let thread = self.threads[number];
        match thread.state {
            State::Waiting { .. } => self.wake(number),
            State::Running { at } if thread.burst_s <= NOW => {
                match self.setup.group(number).wait_s {
                    Some(mean) => {
                        self.leave(number, at, LeaveReason::Blocked);
                        let left_s = self.exponential(mean);
                        self.threads[number].state = State::Waiting { left_s };
                    }
                    None => {
                        self.leave(number, at, LeaveReason::Preempted);
                        self.draw_burst(number);
                        self.place(number, false);
                    }
                }
                self.serve();
            }
            State::Running { at } if thread.slice_s <= NOW => {
                self.leave(number, at, LeaveReason::Preempted);
                // The longest waiting thread comes first.
                self.serve();
                self.place(number, false);
            }
            State::Running { .. } | State::Queued => {}
        }
    }

    fn wake(&mut self, number: usize) {
        self.draw_burst(number);
        self.place(number, true);
    }

    /// Draws the thread's next burst.
    fn draw_burst(&mut self, number: usize) {
        self.threads[number].burst_s = match self.setup.group(number).burst_s {
            Some(mean) => self.exponential(mean),
            None => f64::INFINITY,
        };
    }

    fn leave(&mut self, number: usize, at: usize, left: LeaveReason) {
        let cpu = self.setup.cpus[at];
        self.see(Step::Leaves {
            thread: number,
            cpu,
            left,
        });
        self.on[at] = None;
        self.busy_in_core[self.setup.core_of[at]] -= 1;
        self.threads[number].last = Some(at);
        self.threads[number].state = State::Queued;
    }

    /// Gives a free CPU to the first queued thread that can use one.
    fn serve(&mut self) {
        for _ in 0..self.queue.len() {
            if let Some(number) = self.queue.pop_front() {
                self.place(number, false);
            }
        }
    }

    /// Puts a runnable thread on a free CPU, or else in the queue.
    fn place(&mut self, number: usize, has_woken: bool) {
        let found = self.choose(number);
        let at = found.unwrap_or_else(|| self.waits_at(number));
        let (thread, cpu) = (number, self.setup.cpus[at]);
        if has_woken {
            self.see(Step::Wakes { thread, cpu });
        }
        if found.is_none() {
            self.threads[number].state = State::Queued;
            self.queue.push_back(number);
            return;
        }
        self.see(Step::Comes { thread, cpu });
        self.on[at] = Some(number);
        self.busy_in_core[self.setup.core_of[at]] += 1;
        let setup = self.setup;
        let working_set_bytes = setup.group(number).working_set_bytes;
        let thread = &mut self.threads[number];
        thread.state = State::Running { at };
        thread.slice_s = setup.scheduler.slice_s.unwrap_or(f64::INFINITY);
        if let Some(last) = thread.last.filter(|&last| last != at) {
            self.played.migrations += u64::from(setup.is_own(number));
            thread.refill_s = refill_s(
                setup.topology,
                setup.scheduler,
                working_set_bytes,
                setup.cpus[last],
                setup.cpus[at],
            );
        }
    }

    /// The CPU at which a waiting thread is reported: all CPUs share one queue, so it is the
    /// thread's last one.
    fn waits_at(&self, number: usize) -> usize {
        let role = &self.setup.threads[number];
        let allowed = &self.setup.group(number).allowed;
        let own = || allowed[role.rank % allowed.len()];
        self.threads[number].last.unwrap_or_else(own)
    }

    /// Position of the CPU for a thread, if one is free.
    fn choose(&mut self, number: usize) -> Option<usize> {
        let setup = self.setup;
        let (role, group) = (&setup.threads[number], setup.group(number));
        if group.policy == Policy::Pinned {
            let own = group.allowed[role.rank % group.allowed.len()];
            return self.on[own].is_none().then_some(own);
        }
        if let Some(ideal) = role.ideal
            && setup.scheduler.ideal_share > 0.0
            && self.chance.random::<f64>() < setup.scheduler.ideal_share
            && self.on[ideal].is_none()
        {
            return Some(ideal);
        }
        let is_idle = |at: &usize| self.on[*at].is_none();
        let is_alone = |at: &usize| self.busy_in_core[setup.core_of[*at]] == 0;
        let idle = group.allowed.iter().copied().filter(is_idle);
        let near = match group.policy {
            Policy::LlcFirst => Some(self.fullest(role.group, idle.clone())),
            _ => None,
        };
        let idle = idle.filter(|&at| near.as_ref().is_none_or(|near| near[setup.llc_of[at]]));
        let alone = match group.policy {
            Policy::CoreFirst | Policy::LlcFirst => {
                pick(idle.clone().filter(is_alone), self.chance)
            }
            Policy::RandomIdle | Policy::Pinned => None,
        };
        alone.or_else(|| pick(idle, self.chance))
    }

    /// Last-level caches with the most running threads of a group, among those with an idle CPU.
    fn fullest(&self, group: usize, idle: impl Iterator<Item = usize>) -> Vec<bool> {
        let setup = self.setup;
        let mut running = vec![0u32; setup.llc_slots];
        for (thread, role) in self.threads.iter().zip(&setup.threads) {
            if let State::Running { at } = thread.state
                && role.group == group
            {
                running[setup.llc_of[at]] += 1;
            }
        }
        let mut has_idle = vec![false; setup.llc_slots];
        idle.for_each(|at| has_idle[setup.llc_of[at]] = true);
        let counts = || running.iter().zip(&has_idle);
        let most = counts()
            .filter(|(_, has)| **has)
            .map(|(count, _)| *count)
            .max();
        counts()
            .map(|(count, has)| *has && Some(*count) == most)
            .collect()
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        let uniform: f64 = self.chance.random();
        -mean * (1.0 - uniform).ln()
    }
}

/// A random one.
fn pick(places: impl Iterator<Item = usize> + Clone, chance: &mut ChaCha8Rng) -> Option<usize> {
    let count = places.clone().count();
    if count == 0 {
        return None;
    }
    places.clone().nth(chance.random_range(0..count))
}
