//! The figures of one moment, for display.

use super::occupant::Occupant;
use std::collections::HashMap;

use super::threads::{State, Thread};
use super::{Live, Migrations, Scope, Tid};
use pinwise_topology::CpuSet;

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It is on a CPU.
    Running,
    /// It waits for a CPU.
    Queued,
    /// Running or queued: polling does not show which.
    Runnable,
    /// It waits for something else.
    Waiting,
    /// It ended since the last frame.
    Ended,
    /// No event yet.
    Unreported,
}

/// One frame: the state at its end, and rates since the frame before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Time since the last frame, ns.
    pub span_ns: u64,
    /// What the source can show.
    pub scope: Scope,
    /// All CPUs, by number.
    pub cpus: Vec<CpuFrame>,
    /// Shown threads, by number.
    pub threads: Vec<ThreadFrame>,
    /// Their moves between CPUs.
    pub moves: Migrations,
    /// Cores with several busy CPUs; `None` without SMT, or if the source does not report them.
    pub sharing: Option<Sharing>,
    /// Records lost since tracing began.
    pub lost: u64,
}

/// A CPU. Shares are of the time in which its state is known.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuFrame {
    /// Its number.
    pub cpu: u32,
    /// Its occupant.
    pub now: Occupant,
    /// Its busiest thread: id, name, and share of the interval.
    pub busiest: Option<(Tid, Option<Box<str>>, f64)>,
    /// Its busy share.
    pub busy: Option<f64>,
    /// The shown threads' share.
    pub own: Option<f64>,
    /// Switches per second.
    pub switches_per_s: Option<f64>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadFrame {
    /// Its number.
    pub thread: Tid,
    /// Its process.
    pub process: Option<Tid>,
    /// Its name, according to the kernel.
    pub name: Option<Box<str>>,
    /// Its state.
    pub doing: Doing,
    /// Its present or last CPU.
    pub cpu: Option<u32>,
    /// Share of the interval on a CPU.
    pub busy: Option<f64>,
    /// Share of the interval in which it was queued. If wake-ups are not reported, only the time
    /// after a preemption is known.
    pub wait: Option<f64>,
    /// Moves between CPUs per second.
    pub migrations_per_s: Option<f64>,
    /// Switches per second.
    pub switches_per_s: Option<f64>,
    /// Used CPUs with their shares of the interval, by number.
    pub used: Vec<(u32, f64)>,
    /// CPUs that it may use.
    pub allowed: Option<CpuSet>,
}

/// How sharing was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharingBasis {
    /// From switches: exact except for unknown CPUs.
    Switches,
    /// From the CPUs' busy times: a lower bound. Two CPUs that were busy for the shares a and b of
    /// the time were busy together for at least a + b − 1.
    BusyTimes,
}

/// Cores on which two or more CPUs are busy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    /// How it was determined.
    pub basis: SharingBasis,
    /// Cores in total.
    pub cores: usize,
    /// Cores with two or more busy CPUs at this moment; `None` if busy times are polled.
    pub shared_now: Option<usize>,
    /// Cores whose CPUs all idle at this moment.
    pub idle_now: Option<usize>,
    /// CPUs whose activity is unknown at this moment.
    pub unknown_cpus: usize,
    /// Shared cores, on average over the interval.
    pub shared: f64,
    /// Idle cores, on average over the interval.
    pub idle: f64,
    /// The smaller of both numbers at each moment, on average: sharing that another placement would
    /// have avoided. `None` if busy times are polled.
    pub avoidable: Option<f64>,
}

pub(super) fn make_frame(live: &Live, span_ns: u64) -> Frame {
    let span = Span(span_ns);
    let is_reported = live.watching.scope.has_all_cpus
        && !live
            .cpus
            .numbers()
            .iter()
            .any(|&cpu| live.cpus.is_untouched(cpu));
    let mut threads: Vec<ThreadFrame> = live
        .threads
        .iter()
        .filter(|(tid, _)| live.is_own(**tid))
        .map(|(tid, thread)| {
            make_thread_frame(*tid, thread, span, live.watching.scope, is_reported)
        })
        .collect();
    threads.sort_by_key(|thread| thread.thread);
    Frame {
        span_ns,
        scope: live.watching.scope,
        cpus: make_cpu_frames(live, span),
        threads,
        moves: live.moves,
        sharing: find_sharing(live, span),
        lost: live.lost,
    }
}

/// The length of an interval, ns.
#[derive(Clone, Copy)]
struct Span(u64);

impl Span {
    fn share(self, time_ns: u64) -> Option<f64> {
        (self.0 > 0).then(|| (time_ns as f64 / self.0 as f64).min(1.0))
    }

    /// Average number of cores, from core-nanoseconds.
    fn mean(self, core_ns: u64) -> f64 {
        core_ns as f64 / self.0.max(1) as f64
    }

    /// Per second.
    fn rate(self, count: u64) -> Option<f64> {
        (self.0 > 0).then(|| count as f64 * 1e9 / self.0 as f64)
    }
}

/// `is_reported`: every CPU has had an event, so that a thread without events does not run.
fn make_thread_frame(
    tid: Tid,
    thread: &Thread,
    span: Span,
    scope: Scope,
    is_reported: bool,
) -> ThreadFrame {
    let tally = &thread.tally;
    let span = match scope.has_switches {
        true => span,
        false => Span(tally.polled_ns),
    };
    let is_silent = thread.state == State::Unreported && tally.run_ns == 0;
    let is_known = !(scope.has_switches && is_silent && !is_reported);
    let mut used: Vec<(u32, f64)> = tally
        .used
        .iter()
        .filter_map(|(cpu, time)| Some((*cpu, span.share(*time)?)))
        .collect();
    used.sort_by_key(|(cpu, _)| *cpu);
    let if_known =
        |value: Option<f64>, is_unreported: bool| value.filter(|_| is_known && !is_unreported);
    ThreadFrame {
        thread: tid,
        process: thread.process,
        name: thread.name.clone(),
        doing: convert_state(thread.state),
        cpu: thread.cpu,
        busy: if_known(span.share(tally.run_ns), false),
        wait: if_known(span.share(tally.wait_ns), tally.is_wait_unknown),
        migrations_per_s: if_known(span.rate(tally.migrations), false),
        switches_per_s: if_known(span.rate(tally.switches), tally.is_switching_unknown),
        used,
        allowed: thread.allowed.clone(),
    }
}

const fn convert_state(state: State) -> Doing {
    match state {
        State::Unreported => Doing::Unreported,
        State::Running { .. } => Doing::Running,
        State::Queued { .. } => Doing::Queued,
        State::Runnable => Doing::Runnable,
        State::Waiting => Doing::Waiting,
        State::Ended => Doing::Ended,
    }
}

fn make_cpu_frames(live: &Live, span: Span) -> Vec<CpuFrame> {
    let mut busiest: HashMap<u32, (Tid, u64)> = HashMap::new();
    let threads = live.threads.iter();
    let used = threads.flat_map(|(tid, thread)| thread.tally.used.iter().map(|used| (*tid, *used)));
    for (tid, (cpu, time)) in used {
        let best = busiest.entry(cpu).or_insert((tid, 0));
        // Of equally busy threads the one with the lower id is shown: a frame must not depend on
        // the order of the map.
        if (time, std::cmp::Reverse(tid)) > (best.1, std::cmp::Reverse(best.0)) {
            *best = (tid, time);
        }
    }
    let scope = live.watching.scope;
    let make_cpu_frame = |(number, cpu): (u32, &super::cpus::Cpu)| {
        let known = Span(cpu.known_ns);
        let polled = cpu
            .polled
            .and_then(|(busy, polled)| Span(polled).share(busy));
        let own = match (scope.has_all_cpus, scope.has_switches) {
            (true, _) => known.share(cpu.own_ns),
            (false, true) => span.share(cpu.own_ns),
            (false, false) => None,
        };
        CpuFrame {
            cpu: number,
            now: cpu.now,
            busiest: busiest.get(&number).and_then(|&(tid, time)| {
                let name = live.threads.get(&tid).and_then(|t| t.name.clone());
                Some((tid, name, span.share(time)?))
            }),
            busy: match scope.has_all_cpus {
                true => known.share(cpu.busy_ns).or(polled),
                false => polled,
            },
            own,
            switches_per_s: span.rate(cpu.switches).filter(|_| scope.has_all_cpus),
        }
    };
    live.cpus.iter().map(make_cpu_frame).collect()
}

fn find_sharing(live: &Live, span: Span) -> Option<Sharing> {
    let cores = live.cpus.cores_now(live.watching.observer);
    if !cores.iter().any(|cpus| cpus.len() >= 2) {
        return None;
    }
    if !live.watching.scope.has_all_cpus {
        return estimate_sharing(&live.cpus.polled_cores()?);
    }
    let is_busy = |now: &&Occupant| matches!(now, Occupant::Thread(_));
    let is_idle = |now: &Occupant| *now == Occupant::Idle;
    let shared = |cpus: &&Vec<Occupant>| cpus.iter().filter(is_busy).count() >= 2;
    let idle = |cpus: &&Vec<Occupant>| !cpus.is_empty() && cpus.iter().all(is_idle);
    let unknown = cores.iter().flatten().filter(|n| **n == Occupant::Unknown);
    let time = live.cpus.time;
    Some(Sharing {
        basis: SharingBasis::Switches,
        cores: cores.len(),
        shared_now: Some(cores.iter().filter(shared).count()),
        idle_now: Some(cores.iter().filter(idle).count()),
        unknown_cpus: unknown.count(),
        shared: span.mean(time.shared_ns),
        idle: span.mean(time.idle_ns),
        avoidable: Some(span.mean(time.avoidable_ns)),
    })
}

/// Estimates sharing from the busy shares of cores, summed over their CPUs, and their numbers of
/// CPUs.
fn estimate_sharing(cores: &[(f64, usize)]) -> Option<Sharing> {
    if cores.iter().all(|(_, cpus)| *cpus == 0) {
        return None;
    }
    // If n CPUs have busy shares that sum to b, two or more are busy for at least (b − 1) / (n − 1)
    // of the time.
    let shared = |&(busy, cpus): &(f64, usize)| match cpus {
        0 | 1 => 0.0,
        n => ((busy - 1.0) / (n - 1) as f64).max(0.0),
    };
    Some(Sharing {
        basis: SharingBasis::BusyTimes,
        cores: cores.len(),
        shared_now: None,
        idle_now: None,
        unknown_cpus: 0,
        shared: cores.iter().map(shared).sum(),
        idle: cores.iter().map(|(busy, _)| (1.0 - busy).max(0.0)).sum(),
        avoidable: None,
    })
}
