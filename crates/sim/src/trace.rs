//! Traces of a simulated machine: the mechanism's steps, reported as by a kernel.
//!
//! The truth is known, so an analysis can be judged: switches, wake-ups, masks and names are those
//! of the simulated run, which is the same whether traced or not. Tiers leave out the events that
//! they do not show on a real machine. Machines without a mechanism are refused: their traces would
//! be invented.

mod threads;

use std::time::Duration;

use super::mechanism::{Step, Witness, parse_kernel};
use super::{PreparedRun, SimulatedMachine};
use pinwise_format::whole;
use pinwise_machine::{
    End, Listener, MachineError, Request, Run, Subject, Throttling, TierCost, TraceOrder,
    TraceResult, Tracer,
};
use pinwise_sched::{Availability, Event, EventKind, IDLE, LeaveReason, Refusal, Scope, Tid, Tier};
use pinwise_topology::CpuSet;
use pinwise_workload::Counts;
use threads::{Thread, Threads};

/// Limits the events handed over at once.
const BATCH: usize = 4096;
/// Limit on the silent rounds emitted individually; endless time is emitted as one.
const MAX_SILENT_ROUNDS: u32 = 100;

/// Why a tier is not available on this machine. `has_mechanism`: are runs simulated step by step?
/// `has_performance`: are they computed by the performance model?
fn find_refusal(tier: Tier, has_mechanism: bool, has_performance: bool) -> Option<Refusal> {
    let reason = if tier == Tier::Proc {
        "a simulated machine has no /proc to poll"
    } else if has_mechanism {
        return None;
    } else if has_performance {
        "runs of this simulated machine are computed from [performance] and have no events; \
         describe a [scheduler] instead"
    } else {
        "runs of this simulated machine have no events; describe a [scheduler] (kernels have \
         events without one)"
    };
    Some(Refusal {
        reason: reason.to_owned(),
        remedy: None,
    })
}

impl Tracer for SimulatedMachine {
    /// All tiers except polling, if there is a mechanism to watch.
    fn tiers(&mut self) -> Vec<Availability> {
        let has_mechanism = self.uses_mechanism(None);
        let has_performance = self.description.performance.is_some();
        let availability = |&tier: &Tier| Availability {
            tier,
            refusal: find_refusal(tier, has_mechanism, has_performance),
        };
        Tier::ALL.iter().map(availability).collect()
    }

    /// Simulates a run for a listener.
    fn trace(
        &mut self,
        order: &TraceOrder<'_>,
        listener: &mut dyn Listener,
    ) -> Result<TraceResult, MachineError> {
        if order.interrupts {
            return Err(MachineError::InterruptsUnseen {
                reason: "a simulated machine has no interrupts".to_owned(),
                remedy: None,
            });
        }
        let tier = order.tier.unwrap_or(Tier::Bpf);
        let has_performance = self.description.performance.is_some();
        let check_tier = |has_mechanism| match find_refusal(tier, has_mechanism, has_performance) {
            None => Ok(()),
            Some(refusal) => Err(MachineError::Untraceable {
                tier: tier.name(),
                reason: refusal.reason,
                remedy: refusal.remedy,
            }),
        };
        match order.subject {
            Subject::Command(request) => {
                let kernel = parse_kernel(request.workload.command.argv());
                check_tier(self.uses_mechanism(kernel.as_ref()))?;
                let prepared = self.prepare(request);
                let traced_run = TracedRun {
                    cpus: request.cpus,
                    environment: &request.workload.environment,
                    request: Some(request),
                };
                Ok(trace_run(self, &prepared, &traced_run, order, listener))
            }
            Subject::Process(pid) => Err(MachineError::Process {
                pid,
                reason: "a simulated machine has no running processes".to_owned(),
            }),
            Subject::Everything => {
                check_tier(self.uses_mechanism(None))?;
                let prepared = PreparedRun::endless(self.description.workload("default"));
                let cpus = self.description.topology.allowed.clone();
                let traced_run = TracedRun {
                    cpus: &cpus,
                    environment: &[],
                    request: None,
                };
                Ok(trace_run(self, &prepared, &traced_run, order, listener))
            }
        }
    }

    fn tracing_cost(
        &mut self,
        _tiers: &[Tier],
        _time: Duration,
    ) -> Result<Vec<TierCost>, MachineError> {
        Ok(Vec::new())
    }
}

/// The run to trace.
struct TracedRun<'a> {
    cpus: &'a CpuSet,
    environment: &'a [(String, String)],
    /// `None`: the default workload, which never ends.
    request: Option<&'a Request<'a>>,
}

fn trace_run(
    machine: &mut SimulatedMachine,
    prepared: &PreparedRun,
    traced_run: &TracedRun<'_>,
    order: &TraceOrder<'_>,
    listener: &mut dyn Listener,
) -> TraceResult {
    let tier = order.tier.unwrap_or(Tier::Bpf);
    let from_ns = to_ns(machine.now_s);
    let mut writer = EventWriter {
        threads: Threads::new(machine, prepared, traced_run),
        scope: tier.scope(),
        listener,
        prepared,
        from_ns,
        limit_ns: order.limit.map(|limit| to_ns(limit.as_secs_f64())),
        round_ns: to_ns(order.round.as_secs_f64()).max(1),
        next_round_ns: to_ns(order.round.as_secs_f64()).max(1),
        pending: Vec::new(),
        leaving: None,
        main_cpu: 0,
        is_endless: traced_run.request.is_none(),
        ended_ns: None,
    };
    writer.emit_idle_cpus(&machine.description.topology.allowed);
    let played = machine.play(
        prepared,
        traced_run.cpus,
        traced_run.environment,
        &mut writer,
    );
    let followed_s = played.map_or(0.0, |played| prepared.apply_effects_s(played.followed_s));
    let cut_ns = writer.close(to_ns(followed_s));
    let length_ns = cut_ns.unwrap_or(to_ns(followed_s));
    let run = traced_run.request.map(|request| {
        let run = machine.finish(prepared, request, played);
        cut_ns.map_or(run.clone(), |cut_ns| cut_run(run, cut_ns))
    });
    if run.is_none() {
        machine.now_s += Duration::from_nanos(length_ns).as_secs_f64();
    }
    let is_short = played.is_some_and(|played| played.followed_s < played.wall_s);
    let note = format!(
        "The simulated run has too many steps: only its first {followed_s:.3} s are traced."
    );
    TraceResult {
        tier,
        scope: tier.scope(),
        from_ns,
        to_ns: from_ns + length_ns,
        run,
        own_cpu: Duration::ZERO,
        throttled: Some(Throttling::default()),
        quota: None,
        memory_limit: None,
        pages: Vec::new(),
        interrupts: None,
        numa_balancing: None,
        notes: is_short.then_some(note).into_iter().collect(),
    }
}

/// The result of a run that was ended early. Its CPU time and counters are unknown.
fn cut_run(run: Run, cut_ns: u64) -> Run {
    Run {
        wall: Duration::from_nanos(cut_ns),
        user: None,
        system: None,
        counts: Counts::default(),
        foreign_cpu: None,
        end: End::TimedOut,
        ..run
    }
}

fn to_ns(seconds: f64) -> u64 {
    const LONGEST_NS: f64 = 4e18;
    whole((seconds * 1e9).clamp(0.0, LONGEST_NS))
}

/// A thread that has left its CPU, until its successor is known.
#[derive(Clone, Copy)]
struct Leaving {
    time_ns: u64,
    thread: usize,
    cpu: usize,
    reason: LeaveReason,
}

/// Turns steps into events and passes them to the listener.
struct EventWriter<'a> {
    threads: Threads,
    scope: Scope,
    listener: &'a mut dyn Listener,
    prepared: &'a PreparedRun,
    from_ns: u64,
    limit_ns: Option<u64>,
    round_ns: u64,
    /// Relative to the beginning, like all times here.
    next_round_ns: u64,
    /// Events not yet passed to the listener.
    pending: Vec<Event>,
    leaving: Option<Leaving>,
    /// The main thread's last CPU, on which it starts the others.
    main_cpu: usize,
    /// Does the run end only when the listener or the limit ends it?
    is_endless: bool,
    /// When the limit or the listener ended the trace.
    ended_ns: Option<u64>,
}

impl Witness for EventWriter<'_> {
    fn observe(&mut self, at_s: f64, step: Step) {
        let time_ns = to_ns(self.prepared.apply_effects_s(at_s));
        self.end_rounds(time_ns);
        if self.ended_ns.is_some() {
            return;
        }
        let is_switch = matches!(
            (step, self.leaving),
            (Step::Arrives { cpu, .. }, Some(leaving))
                if cpu == leaving.cpu && time_ns == leaving.time_ns
        );
        if !is_switch {
            self.switch_to_idle();
        }
        match step {
            Step::Begins { thread } => self.emit_begin(time_ns, thread),
            Step::Wakes { thread, cpu } => self.emit_wake(time_ns, thread, cpu),
            Step::Arrives { thread, cpu } => self.emit_arrival(time_ns, thread, cpu),
            Step::Leaves {
                thread,
                cpu,
                reason,
            } => {
                self.leaving = Some(Leaving {
                    time_ns,
                    thread,
                    cpu,
                    reason,
                });
            }
            Step::Ends { thread } => {
                let tid = self.threads.all[thread].tid;
                self.emit(time_ns, self.main_cpu, EventKind::Exit { thread: tid });
            }
        }
    }

    fn is_done(&self) -> bool {
        self.is_endless && self.ended_ns.is_some()
    }
}

impl EventWriter<'_> {
    /// Emits that all CPUs are idle before the run. A CPU that stays idle would otherwise have no
    /// event, and its state would be unknown.
    fn emit_idle_cpus(&mut self, cpus: &CpuSet) {
        if self.scope.has_all_cpus {
            for cpu in cpus.iter() {
                self.emit_switch(0, cpu, IDLE, LeaveReason::Preempted, IDLE);
            }
        }
    }

    /// Ends the rounds that are over at this time, and the trace at its limit.
    fn end_rounds(&mut self, time_ns: u64) {
        let mut silent = 0;
        while self.ended_ns.is_none() {
            let end_ns = self.limit_ns.filter(|&limit| limit <= time_ns);
            let round_ns = self.next_round_ns;
            if round_ns > time_ns || end_ns.is_some_and(|end| end < round_ns) {
                if let Some(end_ns) = end_ns {
                    self.flush();
                    self.ended_ns = Some(end_ns);
                }
                return;
            }
            self.switch_to_idle();
            self.flush();
            if !self.listener.round(self.from_ns + round_ns) {
                self.ended_ns = Some(round_ns);
            }
            silent += 1;
            let rounds = match silent {
                0..MAX_SILENT_ROUNDS => 1,
                _ => (time_ns - round_ns) / self.round_ns + 1,
            };
            self.next_round_ns = round_ns.saturating_add(rounds.saturating_mul(self.round_ns));
        }
    }

    /// Emits a switch to the idle task on the CPU that a thread has left.
    fn switch_to_idle(&mut self) {
        if let Some(Leaving {
            time_ns,
            thread,
            cpu,
            reason,
        }) = self.leaving.take()
        {
            let prev = self.threads.all[thread].tid;
            self.emit_switch(time_ns, cpu, prev, reason, IDLE);
        }
    }

    fn emit_begin(&mut self, time_ns: u64, thread: usize) {
        let Thread {
            tid,
            process,
            ref name,
            ref mask,
        } = self.threads.all[thread];
        let (name, mask) = (name.clone(), Box::new(mask.clone()));
        let is_own = thread < self.threads.own;
        if !is_own && !self.scope.has_all_cpus {
            return;
        }
        let kind = if is_own && thread > 0 {
            EventKind::Fork {
                parent: process,
                child: tid,
                process,
            }
        } else {
            EventKind::Known {
                thread: tid,
                process,
            }
        };
        let is_followed = (is_own && thread == 0) || (!is_own && self.is_endless);
        self.emit(time_ns, self.main_cpu, kind);
        self.emit(
            time_ns,
            self.main_cpu,
            EventKind::Name { thread: tid, name },
        );
        self.emit(
            time_ns,
            self.main_cpu,
            EventKind::Mask {
                thread: tid,
                cpus: mask,
            },
        );
        if is_followed {
            self.emit(time_ns, self.main_cpu, EventKind::Follow { thread: tid });
        }
    }

    fn emit_wake(&mut self, time_ns: u64, thread: usize, cpu: usize) {
        if self.scope.has_wakeups {
            let tid = self.threads.all[thread].tid;
            let target = cpu_number(cpu);
            self.emit(
                time_ns,
                cpu,
                EventKind::Wake {
                    thread: tid,
                    target,
                },
            );
        }
    }

    fn emit_arrival(&mut self, time_ns: u64, thread: usize, cpu: usize) {
        if thread == 0 {
            self.main_cpu = cpu;
        }
        let next = self.threads.all[thread].tid;
        match self.leaving.take() {
            // A kernel that continues with the same thread does not switch.
            Some(leaving) if leaving.thread == thread => {}
            Some(leaving) => {
                let prev = self.threads.all[leaving.thread].tid;
                self.emit_switch(time_ns, cpu, prev, leaving.reason, next);
            }
            None => self.emit_switch(time_ns, cpu, IDLE, LeaveReason::Preempted, next),
        }
    }

    /// Emits a switch, or the halves visible to a poorer tier.
    fn emit_switch(&mut self, time_ns: u64, cpu: usize, prev: Tid, left: LeaveReason, next: Tid) {
        if self.scope.has_all_cpus {
            self.emit(time_ns, cpu, EventKind::Switch { prev, left, next });
            return;
        }
        if self.is_own(prev) {
            self.emit(time_ns, cpu, EventKind::Out { thread: prev, left });
        }
        if self.is_own(next) {
            self.emit(time_ns, cpu, EventKind::In { thread: next });
        }
    }

    fn is_own(&self, tid: Tid) -> bool {
        let first = self.threads.all[0].tid;
        usize::try_from(tid - first).is_ok_and(|rank| rank < self.threads.own)
    }

    fn emit(&mut self, time_ns: u64, cpu: usize, kind: EventKind) {
        self.pending.push(Event {
            time_ns: self.from_ns + time_ns,
            cpu: cpu_number(cpu),
            what: kind,
        });
        if self.pending.len() >= BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.listener.events(&self.pending);
            self.pending.clear();
        }
    }

    /// Ends the trace of a run of this length; returns when the trace ended if that was earlier.
    fn close(mut self, length_ns: u64) -> Option<u64> {
        if self.ended_ns.is_none() {
            self.switch_to_idle();
        }
        self.end_rounds(length_ns);
        self.flush();
        self.ended_ns.filter(|&ended| ended < length_ns)
    }
}

/// CPUs have small numbers.
fn cpu_number(cpu: usize) -> u32 {
    u32::try_from(cpu).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
