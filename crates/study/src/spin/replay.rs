//! Replays spin algorithms from their parameters, and compares their waits with theory.
//!
//! Algorithms take turns at each delay, and all of that is repeated, so that a slow minute of the
//! machine affects all alike. Contending threads are only measured, not predicted: their results
//! depend on the scheduler.

mod assemble;
mod contend;

use std::time::Duration;

use anyhow::{Result, bail};

use crate::host::host_record;
use pinwise_format::whole;
use pinwise_machine::{
    HandOver, HandOverOrder, HandOverResult, HintKind, Probe, Prober, Replayer, Waiter,
};
use pinwise_record::{Answer, Header, ReplayHint, SpinReplayRecord};
use pinwise_spin::algorithm::{Algorithm, Case, Setting, Wait};
use pinwise_spin::lateness::{Costs, Ending};
use pinwise_stats::describe::{median, quantile};
use pinwise_topology::Topology;

/// The ID of a waiter that parks at once, without spinning.
pub const FUTEX: &str = "futex";

/// The situation that is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Experiment {
    /// A thread holds a lock for each item; a delay after it took the lock, another waits for it.
    ProducerConsumer,
    /// A thread waits for a lock from the moment it is taken; it is released a delay later.
    Handoff,
    /// Threads compete for a lock all the time.
    Contend,
}

impl Experiment {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::ProducerConsumer, Self::Handoff, Self::Contend];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProducerConsumer => "producer-consumer",
            Self::Handoff => "handoff",
            Self::Contend => "contend",
        }
    }
}

/// What to replay.
#[derive(Debug, Clone)]
pub struct ReplayPlan {
    /// The situation.
    pub experiment: Experiment,
    /// Algorithms; `None` parks at once.
    pub algorithms: Vec<Option<&'static Algorithm>>,
    /// Intended duration of a hint, ns; `None`: this processor's own.
    pub hint_ns: Option<f64>,
    /// The chip whose hints take that long.
    pub chip: Option<String>,
    /// Number of CPUs that the algorithms assume; `None`: those allowed here.
    pub cpus_assumed: Option<u64>,
    /// How long the lock is held for an item; a hand-off has delays instead.
    pub hold: Duration,
    /// Times from taking the lock to the start of the wait; in a hand-off, to the release.
    pub delays: Vec<Duration>,
    /// Items per cell (an algorithm at a delay) and repeat.
    pub items: usize,
    /// Number of times that all cells are measured.
    pub repeats: usize,
    /// Numbers of threads that contend; empty: 1, 2 and 4 per CPU.
    pub threads: Vec<usize>,
    /// Do the threads run at real-time priority?
    pub is_realtime: bool,
}

/// Receives the progress of a replay: the number of cells done, and of all cells.
pub type OnCell<'a> = &'a mut dyn FnMut(usize, usize);

/// An algorithm with its steps on a machine.
struct Arm {
    algorithm: Option<&'static Algorithm>,
    wait: Wait,
    ending: Ending,
}

impl Arm {
    fn id(&self) -> &'static str {
        self.algorithm.map_or(FUTEX, |algorithm| algorithm.id)
    }

    fn new(algorithm: Option<&'static Algorithm>, setting: &Setting) -> Result<Self> {
        let Some(known) = algorithm else {
            return Ok(Self {
                algorithm,
                wait: Wait {
                    runs: Vec::new(),
                    is_endless: false,
                },
                ending: Ending::Parks,
            });
        };
        let Some(wait) = known.compute_wait(setting, Case::Typical) else {
            bail!(
                "--algorithm {}: its exact steps are not known, so it cannot be executed",
                known.id
            );
        };
        if wait.blind_gap_hints() == 0 && !wait.runs.is_empty() {
            bail!(
                "--algorithm {}: it waits without spin-wait hints, so there is nothing to stretch \
                 or to predict",
                known.id
            );
        }
        Ok(Self {
            algorithm,
            wait,
            ending: Ending::parse(known.then),
        })
    }

    const fn waiter(&self, hint_ns: Option<f64>) -> Waiter<'_> {
        Waiter {
            wait: &self.wait,
            ending: self.ending,
            hint_ns,
        }
    }
}

/// The results of a cell, over all repeats.
#[derive(Debug, Default)]
struct Cell {
    items: Vec<HandOver>,
    /// Items left out because of a context switch.
    switched: usize,
    /// Items left out because a thread was stopped.
    stopped: usize,
    /// Durations of the processor's own hint right before the waits, one per repeat, ns.
    before_ns: Vec<f64>,
    /// Achieved durations of a hint, one per repeat, ns.
    achieved_ns: Vec<f64>,
    hint_kind: Option<HintKind>,
    yield_ns: Option<f64>,
}

/// Runs a replay and returns its record, which the caller names and dates.
///
/// # Errors
/// If the machine has one CPU only, an algorithm cannot be executed, or the machine refuses (see
/// [`Replayer::hand_over`]).
pub fn run(
    plan: &ReplayPlan,
    machine: &mut (impl Replayer + Prober + ?Sized),
    on_cell: OnCell<'_>,
) -> Result<SpinReplayRecord> {
    let (topology, _) = machine.topology()?;
    let (holder, waiter) = choose_two_cpus(&topology)?;
    let own_ns = probe_median(machine, Probe::Pause { cpu: waiter })?;
    let Some(wanted_ns) = plan.hint_ns.or(own_ns) else {
        bail!("the duration of a spin hint cannot be measured here; give it with --pause-ns");
    };
    let cpus_assumed = plan.cpus_assumed.unwrap_or(topology.allowed.len() as u64);
    let setting = Setting {
        cpus: cpus_assumed,
        hint_ns: wanted_ns,
    };
    let arms = plan.algorithms.iter().map(|a| Arm::new(*a, &setting));
    let arms: Vec<Arm> = arms.collect::<Result<_>>()?;
    let wake_ns = measure_wake(plan, holder, waiter, machine)?;
    let costs = Costs {
        hint_ns: wanted_ns,
        wake_ns,
        yield_ns: None,
    };
    let mut record = SpinReplayRecord {
        header: Header::default(),
        host: host_record(machine, &topology),
        experiment: plan.experiment.name().to_owned().into(),
        chip: plan.chip.clone(),
        cpus_assumed,
        hint: ReplayHint {
            own_ns,
            wanted_ns,
            achieved_ns: None,
            recipe: None,
        },
        wake_ns,
        hold_ms: (plan.experiment == Experiment::ProducerConsumer).then(|| ms(plan.hold)),
        items: (plan.items * plan.repeats) as u64,
        repeats: plan.repeats as u64,
        realtime: plan.is_realtime,
        cpus: vec![holder, waiter],
        algorithms: Vec::new(),
        conclusions: Vec::new(),
        answer: Answer::default(),
    };
    if plan.experiment == Experiment::Contend {
        contend::run(plan, &arms, &topology, machine, on_cell, &mut record)?;
    } else {
        let cells = hand_over_all(plan, &arms, holder, waiter, costs, machine, on_cell)?;
        assemble::record_hand_overs(plan, &arms, &cells, costs, &mut record);
    }
    assemble::add_notes(&topology, &mut record);
    record.conclude();
    Ok(record)
}

/// Two CPUs, on different cores if possible.
fn choose_two_cpus(topology: &Topology) -> Result<(usize, usize)> {
    let core_of = |cpu: usize| topology.cpu(cpu).and_then(|cpu| cpu.core);
    let mut allowed = topology.allowed.iter();
    let Some(first) = allowed.next() else {
        bail!("no CPU is allowed to this process");
    };
    let others: Vec<usize> = allowed.collect();
    let apart = others.iter().find(|&&cpu| core_of(cpu) != core_of(first));
    match apart.or(others.first()) {
        Some(&other) => Ok((first, other)),
        None => bail!(
            "a replay needs two CPUs, one to hold the lock and one to wait, but only CPU {first} is allowed to this process"
        ),
    }
}

/// The median of a probe of the machine, ns; `None` if it is unavailable.
fn probe_median(machine: &mut (impl Prober + ?Sized), probe: Probe) -> Result<Option<f64>> {
    const BATCHES: usize = 60;
    const TIME_LIMIT: Duration = Duration::from_millis(800);
    Ok(super::probe_median(machine, probe, BATCHES, TIME_LIMIT)?)
}

/// Measures the time from the release until a parked waiter has the lock, ns: the median of some
/// hand-overs. The probe of wake-ups is not suitable: after milliseconds of sleep on an idle CPU
/// waking took twice as long as after the probe's 50 µs. `None` if all hand-overs were disturbed,
/// or if threads contend.
fn measure_wake(
    plan: &ReplayPlan,
    holder_cpu: usize,
    waiter_cpu: usize,
    machine: &mut (impl Replayer + ?Sized),
) -> Result<Option<f64>> {
    const ITEMS: usize = 10;
    const MIN_LIMIT: Duration = Duration::from_secs(1);
    let middle = plan.delays.get(plan.delays.len() / 2);
    let Some(&middle) = middle.filter(|_| plan.experiment != Experiment::Contend) else {
        return Ok(None);
    };
    let (hold, delay) = plan.hold_and_delay(middle);
    let parking = Wait {
        runs: Vec::new(),
        is_endless: false,
    };
    let order = HandOverOrder {
        waiter: Waiter {
            wait: &parking,
            ending: Ending::Parks,
            hint_ns: None,
        },
        holder_cpu,
        waiter_cpu,
        hold,
        delay,
        items: ITEMS,
        limit: MIN_LIMIT.max(hold * 4),
        is_realtime: plan.is_realtime,
    };
    let result = machine.hand_over(&order)?;
    let late: Vec<f64> = result.items.iter().map(|item| item.late_ns).collect();
    Ok(median(&late))
}

/// Executes all cells: by algorithm, then by delay.
fn hand_over_all(
    plan: &ReplayPlan,
    arms: &[Arm],
    holder_cpu: usize,
    waiter_cpu: usize,
    costs: Costs,
    machine: &mut (impl Replayer + ?Sized),
    on_cell: OnCell<'_>,
) -> Result<Vec<Vec<Cell>>> {
    let row = || plan.delays.iter().map(|_| Cell::default()).collect();
    let mut cells: Vec<Vec<Cell>> = arms.iter().map(|_| row()).collect();
    let all = plan.repeats * plan.delays.len() * arms.len();
    let mut done = 0;
    for _ in 0..plan.repeats {
        for (at, &delay) in plan.delays.iter().enumerate() {
            for (arm, cells) in arms.iter().zip(&mut cells) {
                on_cell(done, all);
                done += 1;
                let (hold, delay) = plan.hold_and_delay(delay);
                let order = HandOverOrder {
                    waiter: arm.waiter(plan.hint_ns),
                    holder_cpu,
                    waiter_cpu,
                    hold,
                    delay,
                    items: plan.items,
                    limit: limit_time(arm, hold, delay, costs, plan.items),
                    is_realtime: plan.is_realtime,
                };
                cells[at].add(machine.hand_over(&order)?);
            }
        }
    }
    Ok(cells)
}

impl ReplayPlan {
    /// How long a cell's holder keeps the lock, and after how long its waiter comes.
    fn hold_and_delay(&self, delay: Duration) -> (Duration, Duration) {
        match self.experiment {
            Experiment::Handoff => (delay, Duration::ZERO),
            _ => (self.hold, delay),
        }
    }
}

impl Cell {
    fn add(&mut self, result: HandOverResult) {
        self.items.extend(result.items);
        self.switched += result.switched;
        self.stopped += result.stopped;
        self.yield_ns = result.yield_ns.or(self.yield_ns);
        if let Some(hint) = result.hint {
            self.before_ns.push(hint.before_ns);
            self.achieved_ns.push(hint.achieved_ns);
            self.hint_kind = Some(hint.kind);
        }
    }

    fn achieved_ns(&self) -> Option<f64> {
        median(&self.achieved_ns)
    }

    /// Intended duration of a hint, ns: that of the plan, or if the processor's own hints were
    /// used, their duration right before the waits.
    fn wanted_ns(&self, wanted_ns: f64) -> f64 {
        if self.hint_kind == Some(HintKind::Own) && !self.before_ns.is_empty() {
            quantile(&self.before_ns, 0.5)
        } else {
            wanted_ns
        }
    }
}

/// The time limit of a cell: four times the predicted time. If a busy machine needs longer, the
/// items measured by then suffice.
fn limit_time(arm: &Arm, hold: Duration, delay: Duration, costs: Costs, items: usize) -> Duration {
    const PAUSE_PER_ITEM: Duration = Duration::from_millis(20);
    const START: Duration = Duration::from_millis(500);
    let free_after = hold.saturating_sub(delay).as_nanos() as f64;
    let found = arm.wait.compute_lateness(arm.ending, &costs, free_after);
    let late = Duration::from_nanos(whole(found.late_ns.unwrap_or(0.0)));
    let items = u32::try_from(items).unwrap_or(u32::MAX);
    let each = hold.saturating_add(late).saturating_add(PAUSE_PER_ITEM);
    each.saturating_mul(items)
        .saturating_mul(4)
        .saturating_add(START)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
