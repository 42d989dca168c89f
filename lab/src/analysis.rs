//! The scheduler events per second that the analysis handles on one core, and the growth of its
//! memory, with threads and CPUs and with the contents of the timeline, up to its bounds.
//! The best of several rounds counts, since others use this machine, too.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark may fail by panicking; its figures are small"
)]

use std::time::Instant;

use anyhow::Result;
use pinwise_sched::{Analysis, Event, EventKind, IDLE, LeaveReason, Tid, Tier};
use pinwise_topology::Topology;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::table::Table;

const EVENTS: usize = 4_000_000;
/// Events are generated in portions, outside the measured time, so that they do not fill memory.
const PORTION: usize = 100_000;
const ROUNDS: usize = 5;

pub(crate) fn run(_: &[String]) -> Result<()> {
    let mut table = Table::new(
        "trace-analysis",
        "machine | threads | load | events/s | memory grows by",
    );
    for (machine, threads) in [
        ("package:1 core:2 pu:1", 4),
        ("package:1 l3:1 core:8 pu:2", 32),
        ("package:2 l3:4 core:8 pu:2", 256),
        ("package:2 l3:8 core:8 pu:2", 1024),
    ] {
        for (load, busy) in [("light", 0.3), ("heavy", 0.9)] {
            let (rate, grown) = measure(machine, threads, busy);
            table.add_row(format!(
                "`{machine}` | {threads} | {load} | {rate:.1} M | {grown} KiB"
            ));
        }
    }
    table.publish()
}

/// Million events per second, and the growth of memory over the second half of the events, KiB.
fn measure(machine: &str, threads: usize, busy: f64) -> (f64, u64) {
    let topology = Topology::from_synthetic(machine).unwrap();
    let mut best = f64::INFINITY;
    let mut grown = 0;
    for round in 0..ROUNDS {
        let mut world = World::new(topology.cpus.len(), threads, busy, round as u64);
        let mut analysis = Analysis::new(&topology, Tier::Bpf.scope());
        for event in world.first_events() {
            analysis.add_event(&event);
        }
        let mut took = 0.0;
        let mut half = 0;
        for portion in 0..EVENTS / PORTION {
            let events = world.next_events();
            let start = Instant::now();
            for event in &events {
                analysis.add_event(event);
            }
            took += start.elapsed().as_secs_f64();
            if portion == EVENTS / PORTION / 2 {
                half = read_resident_kib();
            }
        }
        grown = read_resident_kib().saturating_sub(half);
        let summary = analysis.finish(None);
        assert_eq!(summary.unknown.contradictions, 0);
        assert!(summary.switches.unwrap() > EVENTS as u64 / 8);
        best = best.min(took);
    }
    (EVENTS as f64 / best / 1e6, grown)
}

fn read_resident_kib() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4
}

/// A machine whose threads wake, run and wait at random.
struct World {
    chance: ChaCha8Rng,
    on: Vec<Tid>,
    waiting: Vec<Tid>,
    time_ns: u64,
    busy: f64,
}

impl World {
    fn new(cpus: usize, threads: usize, busy: f64, seed: u64) -> Self {
        Self {
            chance: ChaCha8Rng::seed_from_u64(seed),
            on: vec![IDLE; cpus],
            waiting: (1..=threads as Tid).collect(),
            time_ns: 1,
            busy,
        }
    }

    /// Half of the threads are followed.
    fn first_events(&mut self) -> Vec<Event> {
        let at = |cpu: usize, what| Event {
            time_ns: 1,
            cpu: cpu as u32,
            what,
        };
        let mut events: Vec<Event> = (0..self.on.len())
            .map(|cpu| {
                let left = LeaveReason::Blocked;
                let (prev, next) = (IDLE, IDLE);
                at(cpu, EventKind::Switch { prev, left, next })
            })
            .collect();
        for &thread in self.waiting.iter().step_by(2) {
            events.push(at(0, EventKind::Follow { thread }));
        }
        events
    }

    fn next_events(&mut self) -> Vec<Event> {
        let mut events = Vec::with_capacity(PORTION + 2);
        while events.len() < PORTION {
            self.time_ns += self.chance.random_range(200..2_000);
            let cpu = self.chance.random_range(0..self.on.len());
            let prev = self.on[cpu];
            let left = if self.chance.random_bool(0.3) {
                LeaveReason::Preempted
            } else {
                LeaveReason::Blocked
            };
            let next = if self.waiting.is_empty() || !self.chance.random_bool(self.busy) {
                IDLE
            } else {
                let at = self.chance.random_range(0..self.waiting.len());
                self.waiting.swap_remove(at)
            };
            if next == prev {
                continue;
            }
            if next != IDLE {
                let target = cpu as u32;
                events.push(self.event(
                    cpu,
                    EventKind::Wake {
                        thread: next,
                        target,
                    },
                ));
                self.time_ns += 100;
            }
            if prev != IDLE {
                self.waiting.push(prev);
            }
            self.on[cpu] = next;
            events.push(self.event(cpu, EventKind::Switch { prev, left, next }));
        }
        events
    }

    fn event(&self, cpu: usize, what: EventKind) -> Event {
        Event {
            time_ns: self.time_ns,
            cpu: cpu as u32,
            what,
        }
    }
}
