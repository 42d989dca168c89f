//! Ends a trace: counts running and queued threads up to the end, and computes the summary.

use super::super::summary::{
    CoreSummary, CpuSummary, Sharing, Summary, ThreadSummary, Unknown, Waits,
};
use super::super::{LeaveReason, Migrations};
use super::thread::{PartialWait, State};
use super::{Analysis, CpuState, Occupant};

/// A CPU's idle task is unseen if at least this many threads left the CPU while it should have been
/// idle, and more than one in `NOTABLE_SHARE` of its switches; fewer can be chance.
const NOTABLE_ARRIVALS: u64 = 3;
const NOTABLE_SHARE: u64 = 20;

pub(super) fn close(mut analysis: Analysis, span_ns: Option<(u64, u64)>) -> Summary {
    let (first, last) = span_ns.unwrap_or((analysis.now_ns, analysis.now_ns));
    let from_ns = analysis.from_ns.unwrap_or(first);
    analysis.now_ns = analysis.now_ns.max(last);
    let to_ns = analysis.now_ns.max(from_ns);
    let silent_cpus = analysis.count_silent_cpus();
    let idle_task_unseen = analysis.find_unseen_idle_tasks();
    analysis.count_up_to_end();
    let [followed, processes, started_processes] = analysis.threads.counts();
    let scope = analysis.scope;
    let other_programs = analysis.threads.take_other_programs();
    for slot in analysis.threads.living() {
        analysis.retire(slot);
    }
    let waits = analysis.summarise_waits();
    let sharing = analysis.summarise_sharing();
    let by_cpu = analysis.summarise_cpus(to_ns - from_ns);
    let by_core = analysis.summarise_cores();
    let counts = &analysis.counts;
    let idle_waiting = (scope.has_all_cpus).then(|| analysis.queues.episodes());
    let hidden = analysis.threads.hidden;
    let ended_threads = analysis.threads.ended;
    let (by_thread, left_out) = analysis.threads.finish();
    let sum = |figure: fn(&CpuSummary) -> Option<u64>| -> Option<u64> {
        let known: Vec<u64> = by_cpu.iter().filter_map(figure).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    };
    let is_counted = scope.has_switches || by_thread.iter().all(|thread| thread.switches.is_some());
    let parallel_ns = analysis.parallel.advance(to_ns);
    let totals = &analysis.totals;
    let (idle_divisor, life_ns) = totals.tell_idle(to_ns - from_ns);
    let mut timeline = analysis.timeline.finish(to_ns);
    timeline.waits = timeline.waits.filter(|_| scope.has_switches);
    timeline.sharing = sharing
        .and_then(|sharing| sharing.avoidable)
        .map(|_| analysis.cores.finish(to_ns));
    Summary {
        from_ns,
        to_ns,
        events: counts.events,
        threads: followed,
        processes,
        started_processes,
        switches: is_counted.then_some(totals.switches),
        preemptions: is_counted.then_some(totals.preemptions),
        wakeups: scope.has_wakeups.then_some(counts.wakeups),
        migrations: totals.migrations,
        life_ns,
        idle_divisor,
        cpu_ns: totals.cpu_ns,
        parallel_ns: scope.has_switches.then_some(parallel_ns),
        foreign_ns: sum(|cpu| cpu.foreign_ns),
        idle_ns: sum(|cpu| cpu.idle_ns),
        all_switches: sum(|cpu| cpu.switches).filter(|_| scope.has_all_cpus),
        waits,
        sharing,
        other_programs,
        idle_waiting,
        blocked: analysis.blocked.take_ranked(),
        unknown: Unknown {
            records: counts.lost_records,
            windows: counts.lost_windows,
            lost_ns: counts.lost_ns,
            backwards: counts.backwards,
            contradictions: counts.contradictions,
            silent_cpus,
            idle_task_unseen,
            hidden_threads: hidden.threads,
            hidden_uncounted: hidden.uncounted,
            ended_threads,
            hidden_cpu_ns: hidden.cpu_ns,
            doubtful_cpu_ns: hidden.doubtful_ns,
        },
        by_thread,
        threads_left_out: left_out,
        by_cpu,
        by_core,
        timeline,
    }
}

/// Sums over all followed threads, including those not listed.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// By how little threads were awake; the last are those that hardly were.
    lives: [Lives; IDLE_LEVELS + 1],
    cpu_ns: u64,
    switches: u64,
    preemptions: u64,
    migrations: Migrations,
}

impl Totals {
    pub(super) fn add(&mut self, thread: &ThreadSummary) {
        let is_of = |level: &usize| !thread.is_idle(IDLE_DIVISOR << level);
        let level = (0..IDLE_LEVELS).find(is_of).unwrap_or(IDLE_LEVELS);
        let lives = &mut self.lives[level];
        lives.life_ns = lives.life_ns.saturating_add(thread.life_ns);
        lives.awake_ns = lives.awake_ns.saturating_add(thread.awake_ns());
        lives.cpu_ns = lives.cpu_ns.saturating_add(thread.cpu_ns);
        self.cpu_ns += thread.cpu_ns;
        self.switches += thread.switches.unwrap_or(0);
        self.preemptions += thread.preemptions.unwrap_or(0);
        self.migrations.merge(&thread.migrations);
    }

    /// From which part of their life on threads were not idle, and how long those lived. In a
    /// program that is hardly ever awake no thread is idle for being so as well: the rest must have
    /// been awake for most of the time that all were, and alive all the time.
    fn tell_idle(&self, elapsed_ns: u64) -> (u64, u64) {
        let all = self.lives.iter().fold(Lives::default(), Lives::plus);
        let mut rest = Lives::default();
        for (level, lives) in self.lives.iter().take(IDLE_LEVELS).enumerate() {
            rest = rest.plus(lives);
            // A single long wait for a CPU makes no thread more important than the others.
            let is_most = rest.awake_ns >= all.awake_ns - all.awake_ns / 10
                && rest.cpu_ns >= all.cpu_ns - all.cpu_ns / 10;
            if is_most && rest.life_ns >= elapsed_ns - elapsed_ns / 10 {
                return (IDLE_DIVISOR << level, rest.life_ns);
            }
        }
        (u64::MAX, all.life_ns)
    }
}

/// Threads that were awake for less than one part in this many of their life may be idle, or less
/// than half, a quarter … of that.
const IDLE_DIVISOR: u64 = 100;
const IDLE_LEVELS: usize = 16;

/// How long threads lived, were awake, and ran.
#[derive(Debug, Clone, Copy, Default)]
struct Lives {
    life_ns: u64,
    awake_ns: u64,
    cpu_ns: u64,
}

impl Lives {
    const fn plus(self, other: &Self) -> Self {
        Self {
            life_ns: self.life_ns.saturating_add(other.life_ns),
            awake_ns: self.awake_ns.saturating_add(other.awake_ns),
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
        }
    }
}

impl Analysis {
    /// Counts the time up to the end for threads that are still running or queued.
    fn count_up_to_end(&mut self) {
        for cpu in 0..self.cpu_states.len() {
            let cpu = u32::try_from(cpu).unwrap_or(u32::MAX);
            self.count_shared_time(cpu);
            self.count_cpu_time(cpu, LeaveReason::Unreported);
        }
        for slot in self.threads.living() {
            if let State::Queued(queued) = self.state_of(slot) {
                let waited_ns = self.count_wait(slot, queued);
                self.waits.add_open(waited_ns);
            }
        }
        self.cores.advance(self.now_ns);
    }

    /// Counts online CPUs without any event.
    fn count_silent_cpus(&self) -> u64 {
        if !self.scope.has_all_cpus {
            return 0;
        }
        let online = self.cpu_map.online().iter();
        let is_silent = |cpu: &usize| {
            let cpu_state = self.cpu_states.get(*cpu);
            cpu_state.is_none_or(|cpu_state| {
                cpu_state.is_fresh && cpu_state.occupant == Occupant::Unknown
            })
        };
        online.filter(is_silent).count() as u64
    }

    fn find_unseen_idle_tasks(&self) -> Vec<u32> {
        let numbered = (0u32..).zip(&self.cpu_states);
        let is_unseen = |cpu_state: &CpuState| {
            cpu_state.unseen_arrivals >= NOTABLE_ARRIVALS
                && cpu_state.unseen_arrivals * NOTABLE_SHARE > cpu_state.switches
        };
        numbered
            .filter(|(_, cpu_state)| is_unseen(cpu_state))
            .map(|(cpu, _)| cpu)
            .collect()
    }

    fn summarise_waits(&self) -> Waits {
        let scope = self.scope;
        let counts = &self.counts;
        let known_ns = counts.after_preemption_ns + counts.after_wakeup_ns;
        let polled = self.threads.waits;
        let polled_ns = polled.is_reported.then_some(polled.ns);
        let if_wakeups_seen = |value: u64| scope.has_wakeups.then_some(value);
        let mut by_events = PartialWait {
            is_reported: true,
            ns: known_ns,
            unseen_ns: counts.unseen_wait_ns,
        };
        let hidden = self.threads.hidden.waits;
        by_events.add(hidden);
        let has_causes = scope.has_wakeups && scope.has_all_cpus && !hidden.is_notable_in(known_ns);
        let partial = if scope.has_wakeups { by_events } else { polled };
        Waits {
            total_ns: if_wakeups_seen(by_events.ns).or(polled_ns),
            is_from_kernel: !scope.has_wakeups,
            is_lower_bound: partial.is_lower_bound(),
            after_preemption_ns: scope.has_switches.then_some(counts.after_preemption_ns),
            after_wakeup_ns: if_wakeups_seen(counts.after_wakeup_ns),
            count: if_wakeups_seen(self.waits.total()),
            p50_ns: self.waits.quantile(0.5).filter(|_| scope.has_wakeups),
            p99_ns: self.waits.quantile(0.99).filter(|_| scope.has_wakeups),
            longest_ns: if_wakeups_seen(self.waits.longest()),
            occupied_cpu_ns: self.queues.occupied_ns(self.now_ns),
            causes: has_causes.then_some(counts.causes),
        }
    }

    fn summarise_sharing(&self) -> Option<Sharing> {
        if !(self.cpu_map.has_smt() && self.scope.has_switches) {
            return None;
        }
        let (shared, avoidable) = self.cores.totals();
        Some(Sharing {
            shared,
            avoidable: self.scope.has_all_cpus.then_some(avoidable),
        })
    }

    fn summarise_cpus(&self, elapsed_ns: u64) -> Vec<CpuSummary> {
        let online = self.cpu_map.online();
        let numbered = (0u32..).zip(&self.cpu_states);
        let is_reported = |cpu: u32, cpu_state: &CpuState| {
            online.contains(cpu as usize)
                || cpu_state.own_ns + cpu_state.foreign_ns + cpu_state.idle_ns > 0
        };
        numbered
            .filter(|(cpu, cpu_state)| is_reported(*cpu, cpu_state))
            .map(|(cpu, cpu_state)| {
                let polled = cpu_state
                    .polled_ns
                    .map(|(first, last)| last - first.min(last));
                let (foreign_ns, idle_ns) = if self.scope.has_all_cpus {
                    (Some(cpu_state.foreign_ns), Some(cpu_state.idle_ns))
                } else {
                    let foreign = polled.map(|busy| busy.saturating_sub(cpu_state.own_ns));
                    (foreign, polled.map(|busy| elapsed_ns.saturating_sub(busy)))
                };
                CpuSummary {
                    cpu,
                    own_ns: cpu_state.own_ns,
                    foreign_ns,
                    idle_ns,
                    switches: self.scope.has_switches.then_some(cpu_state.switches),
                }
            })
            .collect()
    }

    fn summarise_cores(&self) -> Vec<CoreSummary> {
        let cores = self.cpu_map.cores().iter().enumerate();
        cores
            .map(|(core, cpus)| {
                let states = cpus.iter().filter_map(|cpu| self.cpu_states.get(cpu));
                let (busy_ns, shared_ns) = self.cores.busy_time_of_core(core);
                let is_reported = self.scope.has_all_cpus;
                CoreSummary {
                    core,
                    own_ns: states.map(|cpu_state| cpu_state.own_ns).sum(),
                    busy_ns: is_reported.then_some(busy_ns),
                    shared_ns: is_reported.then_some(shared_ns),
                }
            })
            .collect()
    }
}
