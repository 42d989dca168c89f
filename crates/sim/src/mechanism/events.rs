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
    /// It waits for this long.
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
    /// Time to fill caches before it progresses.
    refill_s: f64,
    /// Position of the CPU that it ran on last.
    last: Option<usize>,
}

/// The state of a run at an event.
struct Play<'a> {
    setup: &'a RunSetup<'a>,
    chance: &'a mut ChaCha8Rng,
    threads: Vec<Thread>,
    /// The thread on each CPU, by position.
    running: Vec<Option<usize>>,
    busy_in_core: Vec<u32>,
    queue: VecDeque<usize>,
    work_left_s: f64,
    played: PlayedRun,
    witness: &'a mut dyn Witness,
}

pub(super) fn play(
    setup: &RunSetup<'_>,
    chance: &mut ChaCha8Rng,
    witness: &mut dyn Witness,
) -> PlayedRun {
    let new_thread = Thread {
        state: State::Queued,
        burst_s: 0.0,
        slice_s: f64::INFINITY,
        refill_s: 0.0,
        last: None,
    };
    let mut play = Play {
        threads: vec![new_thread; setup.threads.len()],
        running: vec![None; setup.cpus.len()],
        busy_in_core: vec![0; setup.core_slots],
        queue: VecDeque::new(),
        work_left_s: setup.workload.base_s,
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
    let must_continue = |play: &Play<'_>| play.work_left_s > 0.0 && !play.witness.is_done();
    while must_continue(&play) && events < MAX_EVENTS && play.advance() {
        events += 1;
    }
    play.end();
    play.extrapolate();
    play.played
}

impl Play<'_> {
    /// Neighbours run before the command; its first thread starts the others.
    fn begin(&mut self) {
        let own = self.setup.own_threads();
        for number in own..self.threads.len() {
            self.report(Step::Begins { thread: number });
            // Exponential times have no memory: a neighbour that has run for long is waiting with
            // the stationary probability.
            let group = self.setup.group(number);
            let (burst, wait) = (group.burst_s.unwrap_or(0.0), group.wait_s.unwrap_or(0.0));
            if self.chance.random::<f64>() * (burst + wait) < wait {
                let left_s = self.draw_exponential(wait);
                self.threads[number].state = State::Waiting { left_s };
            } else {
                self.wake(number);
            }
        }
        for number in 0..own {
            self.report(Step::Begins { thread: number });
            self.wake(number);
        }
    }

    /// Ends the threads of finished work, the first one last.
    fn end(&mut self) {
        self.played.followed_s = self.played.wall_s;
        if self.work_left_s > 0.0 {
            return;
        }
        for thread in (0..self.setup.own_threads()).rev() {
            self.report(Step::Ends { thread });
            if let State::Running { at } = self.threads[thread].state {
                self.leave(thread, at, LeaveReason::Ended);
            }
        }
    }

    fn report(&mut self, step: Step) {
        self.witness.observe(self.played.wall_s, step);
    }

    /// Advances to the next event and handles it; `false` if there will be none.
    fn advance(&mut self) -> bool {
        let (mut next, mut after) = (None, f64::INFINITY);
        let mut total_speed = 0.0;
        for (number, thread) in self.threads.iter().enumerate() {
            let until = match thread.state {
                State::Queued => continue,
                State::Waiting { left_s } => left_s,
                State::Running { at } => {
                    let speed = self.speed(at);
                    if thread.refill_s <= 0.0 && self.setup.is_own(number) {
                        total_speed += speed;
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
        let end = if total_speed > 0.0 {
            self.work_left_s / total_speed
        } else {
            f64::INFINITY
        };
        if end <= after {
            self.pass_time(end);
            self.work_left_s = 0.0;
            return true;
        }
        let Some(next) = next.filter(|_| after.is_finite()) else {
            return false;
        };
        self.pass_time(after);
        self.handle_event(next);
        true
    }

    /// Adds the part of the run beyond the last event, at the mean speed so far.
    fn extrapolate(&mut self) {
        let done = self.setup.workload.base_s - self.work_left_s;
        if self.work_left_s > 0.0 && done > 0.0 {
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

    /// Lets this many seconds pass without an event.
    fn pass_time(&mut self, time: f64) {
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
                        self.work_left_s -= work;
                    }
                }
            }
        }
    }

    /// Handles a thread's due event.
    fn handle_event(&mut self, number: usize) {
        /// What remains of a burst or slice that is over: rounding errors, s.
        const NOTHING_S: f64 = 1e-12;
        let thread = self.threads[number];
        match thread.state {
            State::Waiting { .. } => self.wake(number),
            State::Running { at } if thread.burst_s <= NOTHING_S => {
                match self.setup.group(number).wait_s {
                    Some(mean) => {
                        self.leave(number, at, LeaveReason::Blocked);
                        let left_s = self.draw_exponential(mean);
                        self.threads[number].state = State::Waiting { left_s };
                    }
                    None => {
                        self.leave(number, at, LeaveReason::Preempted);
                        self.draw_burst(number);
                        self.place(number, false);
                    }
                }
                self.serve_queue();
            }
            State::Running { at } if thread.slice_s <= NOTHING_S => {
                self.leave(number, at, LeaveReason::Preempted);
                // The longest waiting thread comes first.
                self.serve_queue();
                self.place(number, false);
            }
            State::Running { .. } | State::Queued => {}
        }
    }

    fn wake(&mut self, number: usize) {
        self.draw_burst(number);
        self.place(number, true);
    }

    fn draw_burst(&mut self, number: usize) {
        self.threads[number].burst_s = match self.setup.group(number).burst_s {
            Some(mean) => self.draw_exponential(mean),
            None => f64::INFINITY,
        };
    }

    fn leave(&mut self, number: usize, at: usize, reason: LeaveReason) {
        let cpu = self.setup.cpus[at];
        self.report(Step::Leaves {
            thread: number,
            cpu,
            reason,
        });
        self.running[at] = None;
        self.busy_in_core[self.setup.core_of[at]] -= 1;
        self.threads[number].last = Some(at);
        self.threads[number].state = State::Queued;
    }

    /// Gives free CPUs to queued threads, the longest waiting first.
    fn serve_queue(&mut self) {
        for _ in 0..self.queue.len() {
            if let Some(number) = self.queue.pop_front() {
                self.place(number, false);
            }
        }
    }

    /// Puts a runnable thread on a free CPU, or else in the queue.
    fn place(&mut self, number: usize, has_woken: bool) {
        let free = self.choose_cpu(number);
        let at = free.unwrap_or_else(|| self.waiting_position(number));
        let (thread, cpu) = (number, self.setup.cpus[at]);
        if has_woken {
            self.report(Step::Wakes { thread, cpu });
        }
        if free.is_none() {
            self.threads[number].state = State::Queued;
            self.queue.push_back(number);
            return;
        }
        self.report(Step::Arrives { thread, cpu });
        self.running[at] = Some(number);
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

    /// Position of the CPU at which a waiting thread is reported: all CPUs share one queue, so it is
    /// the thread's last one.
    fn waiting_position(&self, number: usize) -> usize {
        let thread_setup = &self.setup.threads[number];
        let allowed = &self.setup.group(number).allowed;
        let first = || allowed[thread_setup.rank % allowed.len()];
        self.threads[number].last.unwrap_or_else(first)
    }

    /// Position of a free CPU for a thread, if there is one.
    fn choose_cpu(&mut self, number: usize) -> Option<usize> {
        let setup = self.setup;
        let (thread_setup, group) = (&setup.threads[number], setup.group(number));
        if group.policy == Policy::Pinned {
            let own = group.allowed[thread_setup.rank % group.allowed.len()];
            return self.running[own].is_none().then_some(own);
        }
        if let Some(ideal) = thread_setup.ideal
            && setup.scheduler.ideal_share > 0.0
            && self.chance.random::<f64>() < setup.scheduler.ideal_share
            && self.running[ideal].is_none()
        {
            return Some(ideal);
        }
        let is_idle = |at: &usize| self.running[*at].is_none();
        let is_alone = |at: &usize| self.busy_in_core[setup.core_of[*at]] == 0;
        let idle = group.allowed.iter().copied().filter(is_idle);
        let fullest = match group.policy {
            Policy::LlcFirst => Some(self.find_fullest_llcs(thread_setup.group, idle.clone())),
            _ => None,
        };
        let is_near = |at: usize| fullest.as_ref().is_none_or(|llcs| llcs[setup.llc_of[at]]);
        let idle = idle.filter(|&at| is_near(at));
        let alone = match group.policy {
            Policy::CoreFirst | Policy::LlcFirst => {
                pick_random(idle.clone().filter(is_alone), self.chance)
            }
            Policy::RandomIdle | Policy::Pinned => None,
        };
        alone.or_else(|| pick_random(idle, self.chance))
    }

    /// For each last-level cache: is it among those with the most running threads of a group, of the
    /// caches with an idle CPU?
    fn find_fullest_llcs(&self, group: usize, idle: impl Iterator<Item = usize>) -> Vec<bool> {
        let setup = self.setup;
        let mut running = vec![0u32; setup.llc_slots];
        for (thread, thread_setup) in self.threads.iter().zip(&setup.threads) {
            if let State::Running { at } = thread.state
                && thread_setup.group == group
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

    fn draw_exponential(&mut self, mean: f64) -> f64 {
        let uniform: f64 = self.chance.random();
        -mean * (1.0 - uniform).ln()
    }
}

/// Picks a random position, if there is any.
fn pick_random(
    positions: impl Iterator<Item = usize> + Clone,
    chance: &mut ChaCha8Rng,
) -> Option<usize> {
    let count = positions.clone().count();
    if count == 0 {
        return None;
    }
    positions.clone().nth(chance.random_range(0..count))
}
