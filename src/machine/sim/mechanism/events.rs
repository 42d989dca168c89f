//! The run itself: from event to event, until the work is done.
//!
//! An event is a thread that wakes, ends its burst or its slice, or the end of
//! all work. Between two events speeds do not change.

use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::refill::refill_s;
use super::{Played, Policy, Scheduler};
use crate::machine::sim::workload::SimWorkload;
use crate::topology::{CpuSet, Topology};

/// More events show nothing new: what is left goes on at the speed so far.
const MOST_EVENTS: u32 = 1_000_000;

/// What does not change during a run.
pub(super) struct Field<'a> {
    topology: &'a Topology,
    scheduler: &'a Scheduler,
    workload: &'a SimWorkload,
    policy: Policy,
    smt_throughput: f64,
    /// CPUs that may be used.
    cpus: Vec<usize>,
    /// Position among cores of each of them.
    core_of: Vec<usize>,
    cores: usize,
    /// Ideal CPU of each thread, as a position in `cpus`.
    ideal: Vec<Option<usize>>,
}

impl<'a> Field<'a> {
    pub(super) fn new(
        topology: &'a Topology,
        scheduler: &'a Scheduler,
        workload: &'a SimWorkload,
        cpus: &CpuSet,
        preferred: Option<&CpuSet>,
    ) -> Self {
        let list: Vec<usize> = cpus.iter().collect();
        let core = |cpu: usize| topology.cpu(cpu).and_then(|cpu| cpu.core).unwrap_or(cpu);
        let wanted: Vec<usize> = (0..list.len())
            .filter(|&at| preferred.is_none_or(|set| set.contains(list[at])))
            .collect();
        let dealt = |thread: usize| {
            let many = wanted.len();
            (many > 0).then(|| wanted[thread % many])
        };
        let threads = usize::try_from(workload.threads).unwrap_or(1);
        Self {
            topology,
            scheduler,
            workload,
            policy: if workload.places_itself {
                Policy::Pinned
            } else {
                scheduler.policy
            },
            smt_throughput: workload.smt_throughput.unwrap_or(scheduler.smt_throughput),
            core_of: list.iter().map(|&cpu| core(cpu)).collect(),
            cores: topology.cores.len().max(topology.cpus.len()),
            ideal: (0..threads).map(dealt).collect(),
            cpus: list,
        }
    }

    fn threads(&self) -> usize {
        self.ideal.len()
    }
}

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
    /// Work until it waits.
    burst_s: f64,
    /// Time until it is placed anew.
    slice_s: f64,
    /// Caches to fill before it gets on.
    refill_s: f64,
    last: Option<usize>,
}

struct Play<'a> {
    field: &'a Field<'a>,
    chance: &'a mut ChaCha8Rng,
    threads: Vec<Thread>,
    /// Thread on each CPU.
    on: Vec<Option<usize>>,
    busy_in_core: Vec<u32>,
    queue: VecDeque<usize>,
    left_s: f64,
    played: Played,
}

pub(super) fn play(field: &Field<'_>, chance: &mut ChaCha8Rng) -> Played {
    let mut play = Play {
        threads: Vec::with_capacity(field.threads()),
        on: vec![None; field.cpus.len()],
        busy_in_core: vec![0; field.cores],
        queue: VecDeque::new(),
        left_s: field.workload.base_s,
        played: Played {
            wall_s: 0.0,
            busy_s: 0.0,
            migrations: 0,
        },
        field,
        chance,
    };
    for thread in 0..field.threads() {
        play.threads.push(Thread {
            state: State::Queued,
            burst_s: 0.0,
            slice_s: f64::INFINITY,
            refill_s: 0.0,
            last: None,
        });
        play.wake(thread);
    }
    let mut events = 0;
    while play.left_s > 0.0 && events < MOST_EVENTS && play.step() {
        events += 1;
    }
    play.rest();
    play.played
}

impl Play<'_> {
    /// Goes on to the next event; `false` where nothing will ever happen.
    fn step(&mut self) -> bool {
        let (mut next, mut after) = (None, f64::INFINITY);
        let mut speed_of_all = 0.0;
        for (number, thread) in self.threads.iter().enumerate() {
            let until = match thread.state {
                State::Queued => continue,
                State::Waiting { left_s } => left_s,
                State::Running { at } => {
                    let speed = self.speed(at);
                    if thread.refill_s <= 0.0 {
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

    /// What the events did not come to.
    fn rest(&mut self) {
        let done = self.field.workload.base_s - self.left_s;
        if self.left_s > 0.0 && done > 0.0 {
            let scale = self.field.workload.base_s / done;
            self.played.wall_s *= scale;
            self.played.busy_s *= scale;
        }
    }

    /// Work per second on the CPU at this position.
    fn speed(&self, at: usize) -> f64 {
        match self.busy_in_core[self.field.core_of[at]] {
            0 | 1 => 1.0,
            busy => self.field.smt_throughput / f64::from(busy),
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
                    self.played.busy_s += time;
                    let thread = &mut self.threads[number];
                    thread.slice_s -= time;
                    if thread.refill_s > 0.0 {
                        thread.refill_s = (thread.refill_s - work).max(0.0);
                        // What ends a refill is an event of its own.
                        if thread.refill_s < 1e-12 {
                            thread.refill_s = 0.0;
                        }
                        work = 0.0;
                    }
                    thread.burst_s -= work;
                    self.left_s -= work;
                }
            }
        }
    }

    /// Whatever is due for this thread now.
    fn happen(&mut self, number: usize) {
        const NOW: f64 = 1e-12;
        let thread = self.threads[number];
        match thread.state {
            State::Waiting { .. } => self.wake(number),
            State::Running { at } if thread.burst_s <= NOW => {
                self.leave(number, at);
                match self.field.workload.wait_s {
                    Some(mean) => {
                        let left_s = self.exponential(mean);
                        self.threads[number].state = State::Waiting { left_s };
                    }
                    None => self.wake(number),
                }
                self.serve();
            }
            State::Running { at } if thread.slice_s <= NOW => {
                self.leave(number, at);
                // Whoever waited longest comes first.
                self.serve();
                self.place(number);
            }
            State::Running { .. } | State::Queued => {}
        }
    }

    fn wake(&mut self, number: usize) {
        self.threads[number].burst_s = match self.field.workload.burst_s {
            Some(mean) => self.exponential(mean),
            None => f64::INFINITY,
        };
        self.place(number);
    }

    fn leave(&mut self, number: usize, at: usize) {
        self.on[at] = None;
        self.busy_in_core[self.field.core_of[at]] -= 1;
        self.threads[number].last = Some(at);
        self.threads[number].state = State::Queued;
    }

    /// Gives a free CPU to the first of the queue that can take one.
    fn serve(&mut self) {
        for _ in 0..self.queue.len() {
            if let Some(number) = self.queue.pop_front() {
                self.place(number);
            }
        }
    }

    fn place(&mut self, number: usize) {
        let Some(at) = self.choose(number) else {
            self.threads[number].state = State::Queued;
            self.queue.push_back(number);
            return;
        };
        self.on[at] = Some(number);
        self.busy_in_core[self.field.core_of[at]] += 1;
        let field = self.field;
        let thread = &mut self.threads[number];
        thread.state = State::Running { at };
        thread.slice_s = field.scheduler.slice_s.unwrap_or(f64::INFINITY);
        if let Some(last) = thread.last.filter(|&last| last != at) {
            self.played.migrations += 1;
            thread.refill_s = refill_s(
                field.topology,
                field.scheduler,
                field.workload.working_set_bytes,
                field.cpus[last],
                field.cpus[at],
            );
        }
    }

    /// Position of the CPU that a thread is to run on, where one is free.
    fn choose(&mut self, number: usize) -> Option<usize> {
        let field = self.field;
        if field.policy == Policy::Pinned {
            let own = number % field.cpus.len();
            return self.on[own].is_none().then_some(own);
        }
        if let Some(ideal) = field.ideal[number]
            && field.scheduler.ideal_share > 0.0
            && self.chance.random::<f64>() < field.scheduler.ideal_share
            && self.on[ideal].is_none()
        {
            return Some(ideal);
        }
        let is_idle = |at: &usize| self.on[*at].is_none();
        let is_alone = |at: &usize| self.busy_in_core[field.core_of[*at]] == 0;
        let every = 0..field.cpus.len();
        let idle = every.filter(is_idle);
        let alone = match field.policy {
            Policy::CoreFirst => pick(idle.clone().filter(is_alone), self.chance),
            Policy::RandomIdle | Policy::Pinned => None,
        };
        alone.or_else(|| pick(idle, self.chance))
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        let uniform: f64 = self.chance.random();
        -mean * (1.0 - uniform).ln()
    }
}

/// Any of them, all alike.
fn pick(places: impl Iterator<Item = usize> + Clone, chance: &mut ChaCha8Rng) -> Option<usize> {
    let count = places.clone().count();
    if count == 0 {
        return None;
    }
    places.clone().nth(chance.random_range(0..count))
}
