//! Makes a record from events: passes them to the analysis, and writes its sums, in nanoseconds,
//! into the record, in seconds.

use super::{seconds, timeline, waiters};
use pinwise_machine::Throttling;
use pinwise_record::{
    CoreTimeRecord, CpuTimeRecord, Header, HostRecord, IdleWaitingRecord, LostRecord, LowerBound,
    MigrationCounts, OtherProgramRecord, SharingCauses, SmtSharingRecord, ThreadCpu, ThreadRecord,
    ThrottledRecord, TraceFigures, TraceRecord, TraceSource, TraceTier, TraceTotals, WaitBasis,
    WaitCauses, WaitRecord,
};
use pinwise_sched::{Analysis, Event, Migrations, Scope, Summary, ThreadSummary, Tid, Waits};
use pinwise_topology::Topology;

/// Takes events, in bounded memory, and makes a record of them.
#[derive(Debug)]
pub struct TraceRecorder {
    analysis: Analysis,
    scope: Scope,
    /// CPUs of each core, as lists.
    cores: Vec<String>,
    has_smt: bool,
}

/// CPU time in excess of the kernel's figure is marked if it is more than this …
const DOUBTFUL_NS: u64 = 2_000_000;
/// … and more than one part in this many of the CPU time (3 %). Less is normal, as the kernel is not
/// polled at the very moments of events.
const DOUBTFUL_DIVISOR: u64 = 33;
/// Time in which a CPU's state is unknown counts as 0 if it is less than one part in this many of
/// the whole (0.5 %).
const UNKNOWN_DIVISOR: u64 = 200;

/// The contents of a record that do not follow from events.
#[derive(Debug, Clone)]
pub struct TraceDetails {
    /// The traced command, process or machine.
    pub source: TraceSource,
    /// How the events were obtained.
    pub tier: TraceTier,
    /// The machine.
    pub host: HostRecord,
    /// Start and end of the trace, ns; `None`: those of the events.
    pub span_ns: Option<(u64, u64)>,
    /// Time that quotas on CPU time took; `None` if unknown.
    pub throttled: Option<Throttling>,
    /// Notes of the record.
    pub notes: Vec<String>,
    /// Tags of the record.
    pub tags: Vec<String>,
}

impl TraceRecorder {
    /// A recorder for events of this scope on this machine.
    #[must_use]
    pub fn new(topology: &Topology, scope: Scope) -> Self {
        Self {
            analysis: Analysis::new(topology, scope),
            scope,
            cores: topology.cores.iter().map(ToString::to_string).collect(),
            has_smt: topology.cores.iter().any(|core| core.len() > 1),
        }
    }

    /// Adds events, in the order of time.
    pub fn add(&mut self, events: &[Event]) {
        for event in events {
            self.analysis.add_event(event);
        }
    }

    /// Names the other programs that are still there, if events did not.
    pub(super) fn name_other_programs(
        &mut self,
        find_name: &mut dyn FnMut(Tid) -> Option<Box<str>>,
    ) {
        self.analysis.name_other_programs(find_name);
    }

    /// Makes the record and judges it. The caller adds its name, its date and the cost of tracing.
    #[must_use]
    pub fn finish(self, details: TraceDetails) -> TraceRecord {
        let summary = self.analysis.finish(details.span_ns);
        let is_simulated = details.tier == TraceTier::Simulated;
        let lower_bounds = find_lower_bounds(&summary, self.scope, is_simulated);
        let mut notes = details.notes;
        // Tiers without wake-ups never see the start and end of a thread, so it means nothing there.
        if self.scope.has_wakeups && summary.unknown.hidden_threads > 0 {
            notes.push(describe_hidden_threads(&summary));
        }
        let knows_quotas = details.throttled.is_some();
        let throttled = details.throttled.filter(|quota| quota.periods > 0);
        let quota_share = throttled.map_or(0.0, |quota| share_held_by_quota(&summary.waits, quota));
        let figures = TraceFigures {
            totals: record_totals(&summary),
            waits: record_waits(&summary, quota_share),
            avoidable_smt_sharing: record_sharing(&summary, self.has_smt, self.scope),
            idle_while_waiting: record_idle_waiting(&summary, self.scope, quota_share),
            lost: record_lost(&summary),
            lower_bounds,
            throttled: throttled.map(|quota| ThrottledRecord {
                periods: quota.periods,
                times: quota.times,
                seconds: quota.held.as_secs_f64(),
                quota: None,
            }),
            memory_limit: None,
            memory: None,
        };
        let mut record = TraceRecord {
            header: Header {
                notes,
                tags: details.tags,
                ..Header::default()
            },
            host: details.host,
            source: details.source,
            tier: details.tier,
            tiers: Vec::new(),
            elapsed_s: seconds(summary.to_ns - summary.from_ns),
            cost: None,
            figures,
            answer: None,
            blocked: waiters::record_blocked(&summary),
            threads: summary.by_thread.iter().map(record_thread).collect(),
            threads_left_out: summary.threads_left_out,
            cpus: record_cpus(&summary),
            cores: record_cores(&summary, &self.cores),
            interrupts: None,
            timeline: timeline::make_record(&summary.timeline, summary.from_ns),
            exit: None,
        };
        super::findings::judge(&mut record, knows_quotas);
        record
    }
}

/// The figures that the trace saw only in part.
fn find_lower_bounds(summary: &Summary, scope: Scope, is_simulated: bool) -> Vec<LowerBound> {
    let unknown = &summary.unknown;
    let waits = &summary.waits;
    let is_partly_unseen = !unknown.idle_task_unseen.is_empty();
    let misses_waits = waits.is_lower_bound || is_partly_unseen;
    // Threads that live between two polls are missed.
    let polls = !scope.has_switches;
    let hides = scope.has_wakeups && unknown.hidden_threads > 0;
    let is_uncounted = hides && unknown.hidden_uncounted > 0;
    let misses_switches = !is_simulated && misses_ends(summary, scope);
    let bounds = [
        (LowerBound::CpuTime, is_partly_unseen),
        (
            LowerBound::Queued,
            waits.total_ns.is_some() && (misses_waits || polls),
        ),
        (
            LowerBound::Switches,
            polls || misses_switches || is_uncounted,
        ),
        (LowerBound::Threads, polls),
        (LowerBound::Migrations, polls || hides),
    ];
    let held = bounds.into_iter().filter(|(_, holds)| *holds);
    held.map(|(bound, _)| bound).collect()
}

/// Does the trace miss many switches at the ends of threads? Perf has no records of a thread from
/// early in its exit on: of 1,000 threads that only began and ended, a third of the switches was
/// missing (Linux 6.18).
fn misses_ends(summary: &Summary, scope: Scope) -> bool {
    let ends = summary.unknown.ended_threads;
    let is_by_perf_alone = scope.has_switches && !scope.has_wakeups;
    is_by_perf_alone && ends.saturating_mul(SWITCHES_PER_END) > summary.switches.unwrap_or(0)
}

/// Seen on Linux 6.18, which calls no tracepoint while certain threads are on a CPU.
fn describe_hidden_threads(summary: &Summary) -> String {
    let unknown = &summary.unknown;
    let switches = match unknown.hidden_uncounted {
        0 => "so are their switches",
        _ => "their switches are unknown",
    };
    let whose = match unknown.hidden_threads {
        1 => "one thread".to_owned(),
        many => format!("{many} threads"),
    };
    format!(
        "The kernel's tracepoints missed {} of the CPU time of {whose}: their CPU time and time queued are the kernel's own totals, and {switches}.",
        pinwise_format::seconds(seconds(unknown.hidden_cpu_ns)),
    )
}

/// Per cent, at most 100; 0 if the whole is 0.
fn percent_of(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        (100.0 * part / whole).min(100.0)
    } else {
        0.0
    }
}

fn record_migrations(counted: &Migrations) -> MigrationCounts {
    MigrationCounts {
        smt: counted.smt,
        core: counted.core,
        llc: counted.llc,
        numa: counted.numa,
        package: counted.package,
        unknown: counted.unknown,
    }
}

fn record_totals(summary: &Summary) -> TraceTotals {
    TraceTotals {
        threads: summary.threads,
        processes: summary.processes,
        started_processes: Some(summary.started_processes),
        switches: summary.switches,
        preemptions: summary.preemptions,
        wakeups: summary.wakeups,
        life_s: Some(seconds(waiters::involved_life_ns(summary))),
        migrations: record_migrations(&summary.migrations),
        cpu_s: seconds(summary.cpu_ns),
        parallel_s: summary.parallel_ns.map(seconds),
        cpu_is_upper_bound: summary.unknown.doubtful_cpu_ns
            > DOUBTFUL_NS.max(summary.cpu_ns / DOUBTFUL_DIVISOR),
        foreign_cpu_s: summary.foreign_ns.map(seconds),
        idle_s: summary.idle_ns.map(seconds),
        all_switches: summary.all_switches,
        events: summary.events,
    }
}

/// `quota_share`: see [`share_held_by_quota`].
fn record_waits(summary: &Summary, quota_share: f64) -> WaitRecord {
    let waits = &summary.waits;
    let basis = match waits.is_from_kernel {
        true => WaitBasis::Schedstat,
        false => WaitBasis::Events,
    };
    WaitRecord {
        total_s: waits.total_ns.map(seconds),
        after_preemption_s: waits.after_preemption_ns.map(seconds),
        after_wakeup_s: waits.after_wakeup_ns.map(seconds),
        basis: waits.total_ns.map(|_| basis),
        is_upper_bound: summary.unknown.idle_task_unseen.is_empty() && may_be_too_long(waits),
        count: waits.count,
        p50_s: waits.p50_ns.map(seconds),
        p99_s: waits.p99_ns.map(seconds),
        longest_s: waits.longest_ns.map(seconds),
        behind: record_other_programs(summary),
        because: waits.causes.map(|causes| {
            let rest = |ns: u64| (1.0 - quota_share) * seconds(ns);
            let blamed = causes.scheduler + causes.mask + causes.others + causes.starting;
            WaitCauses {
                scheduler_s: rest(causes.scheduler),
                mask_s: rest(causes.mask),
                other_processes_s: rest(causes.others),
                own_threads_s: seconds(causes.own),
                starting_s: rest(causes.starting),
                throttled_s: quota_share * seconds(blamed),
                scheduling_class_s: seconds(causes.class),
            }
        }),
    }
}

/// A wait by events is longer than the kernel's own figure by up to this much. Compared with
/// `schedstat` it was 0.2 µs on average for threads that only switch and 1 µs if a wake-up preempts
/// (AMD Zen 5), and 2.5 µs for a shell that forks all the time (virtual machine on an Intel Xeon).
const EVENT_DELAY_NS: u64 = 3_000;
/// Such an error is marked if it is more than one part in this many of the time queued (3 %) …
const ERROR_DIVISOR: u64 = 33;
/// … and more than this.
const MIN_ERROR_NS: u64 = 1_000_000;
/// Switches missed at the ends of threads are marked if there are fewer switches per end than this.
const SWITCHES_PER_END: u64 = 33;

/// May the time queued be clearly too long because of the delay of events?
fn may_be_too_long(waits: &Waits) -> bool {
    if waits.is_from_kernel {
        return false;
    }
    // A thread whose switches are missing may have run while it seemed queued.
    if waits.is_lower_bound {
        return true;
    }
    let late_ns = waits.count.unwrap_or(0).saturating_mul(EVENT_DELAY_NS);
    late_ns > (waits.total_ns.unwrap_or(0) / ERROR_DIVISOR).max(MIN_ERROR_NS)
}

/// The share of the waits that a quota caused, of those that the program's own threads did not
/// cause. It is estimated by the share of CPU time in which the quota held threads back.
fn share_held_by_quota(waits: &Waits, quota: Throttling) -> f64 {
    if waits.occupied_cpu_ns == 0 {
        return 0.0;
    }
    (quota.held.as_secs_f64() / seconds(waits.occupied_cpu_ns)).min(1.0)
}

/// Other programs that ran for at least this part of the time in which threads were queued.
const MIN_SHARE: f64 = 0.1;

fn record_other_programs(summary: &Summary) -> Vec<OtherProgramRecord> {
    let whole_ns = summary.waits.occupied_cpu_ns;
    let programs = summary
        .other_programs
        .iter()
        .map(|program| OtherProgramRecord {
            name: program.name.to_string(),
            cpu_s: seconds(program.cpu_ns),
            share: program.cpu_ns as f64 / whole_ns as f64,
        });
    let programs = programs.filter(|program| program.share >= MIN_SHARE);
    programs.collect()
}

fn record_sharing(summary: &Summary, has_smt: bool, scope: Scope) -> SmtSharingRecord {
    let silent = summary.unknown.silent_cpus;
    let note = if !has_smt {
        Some("the system reports one CPU per core".to_owned())
    } else if !scope.has_switches {
        Some("polling does not show which threads run at the same time".to_owned())
    } else if !scope.has_all_cpus {
        Some("only the program's own threads are seen: a lower bound, and whether cores idled is unknown".to_owned())
    } else {
        (silent > 0).then(|| {
            format!("{silent} CPUs reported no events; whether they idled is unknown, so avoidable sharing is a lower bound")
        })
    };
    let cpu_s = seconds(summary.cpu_ns);
    let shared_s = summary.sharing.map(|sharing| seconds(sharing.shared));
    let avoidable = summary.sharing.and_then(|sharing| sharing.avoidable);
    let avoidable_s = avoidable.map(|causes| seconds(causes.total()));
    SmtSharingRecord {
        shared_s,
        shared_percent: shared_s.map(|shared| percent_of(shared, cpu_s)),
        seconds: avoidable_s,
        percent: avoidable_s.map(|avoidable| percent_of(avoidable, cpu_s)),
        by: avoidable.map(|causes| SharingCauses {
            scheduler_s: seconds(causes.scheduler),
            mask_s: seconds(causes.mask),
            other_processes_s: seconds(causes.others),
        }),
        note,
    }
}

/// The quota's share is subtracted as it is from the causes of waiting, since these times are part
/// of them.
fn record_idle_waiting(summary: &Summary, scope: Scope, quota_share: f64) -> IdleWaitingRecord {
    let Some(listed) = summary.idle_waiting else {
        return IdleWaitingRecord {
            note: Some("which CPUs idled is unknown".to_owned()),
            ..IdleWaitingRecord::default()
        };
    };
    let rest = |ns: u64| (1.0 - quota_share) * seconds(ns);
    let total_s = rest(listed.scheduler + listed.mask);
    let is_whole = quota_share == 0.0;
    let waits_s = summary.waits.total_ns.filter(|_| scope.has_wakeups);
    let note = "only waits after preemption are seen";
    IdleWaitingRecord {
        seconds: Some(total_s),
        percent: waits_s.map(|waits| percent_of(total_s, seconds(waits))),
        episodes: is_whole.then_some(listed.episodes),
        longest_s: is_whole.then_some(seconds(listed.longest)),
        scheduler_s: Some(rest(listed.scheduler)),
        mask_s: Some(rest(listed.mask)),
        note: (!scope.has_wakeups).then(|| note.to_owned()),
    }
}

fn record_lost(summary: &Summary) -> LostRecord {
    let unknown = &summary.unknown;
    LostRecord {
        records: unknown.records,
        windows: unknown.windows,
        seconds: seconds(unknown.lost_ns),
        backwards: unknown.backwards,
        contradictions: unknown.contradictions,
        silent_cpus: unknown.silent_cpus,
        idle_task_unseen: unknown.idle_task_unseen.clone(),
    }
}

fn record_thread(listed: &ThreadSummary) -> ThreadRecord {
    let record_cpu = |&(cpu, ns): &(u32, u64)| ThreadCpu {
        cpu: cpu as usize,
        cpu_s: seconds(ns),
    };
    ThreadRecord {
        thread: listed.thread,
        process: listed.process,
        name: listed.name.clone(),
        cpu_s: seconds(listed.cpu_ns),
        wait_s: listed.wait_ns.map(seconds),
        wait_is_lower_bound: listed.is_wait_lower_bound,
        switches: listed.switches,
        preemptions: listed.preemptions,
        migrations: record_migrations(&listed.migrations),
        shared_s: listed.shared_ns.map(seconds),
        cpus: listed.cpus.iter().map(record_cpu).collect(),
        allowed: listed.allowed.as_ref().map(ToString::to_string),
        nice: listed.nice,
    }
}

fn record_cpus(summary: &Summary) -> Vec<CpuTimeRecord> {
    let all_ns = summary.to_ns - summary.from_ns;
    let record = |cpu: &pinwise_sched::CpuSummary| CpuTimeRecord {
        cpu: cpu.cpu as usize,
        own_s: seconds(cpu.own_ns),
        foreign_s: cpu.foreign_ns.map(seconds),
        idle_s: cpu.idle_ns.map(seconds),
        unknown_s: unknown_ns(cpu, all_ns).map(seconds),
        switches: cpu.switches,
    };
    summary.by_cpu.iter().map(record).collect()
}

/// The part of `all_ns` in which a CPU's state is unknown; 0 if it is short. `None` if the tier does
/// not see other programs or idle time.
fn unknown_ns(cpu: &pinwise_sched::CpuSummary, all_ns: u64) -> Option<u64> {
    let known_ns = cpu.own_ns + cpu.foreign_ns? + cpu.idle_ns?;
    let unknown_ns = all_ns.saturating_sub(known_ns);
    let is_much = unknown_ns.saturating_mul(UNKNOWN_DIVISOR) >= all_ns;
    Some(if is_much { unknown_ns } else { 0 })
}

fn record_cores(summary: &Summary, names: &[String]) -> Vec<CoreTimeRecord> {
    let record = |core: &pinwise_sched::CoreSummary| CoreTimeRecord {
        core: core.core,
        cpus: names.get(core.core).cloned().unwrap_or_default(),
        own_s: seconds(core.own_ns),
        busy_s: core.busy_ns.map(seconds),
        shared_s: core.shared_ns.map(seconds),
    };
    summary.by_core.iter().map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_sched::{EventKind, LeaveReason, Tier};
    use proptest::prelude::*;

    /// Traced threads 1 to 3, and threads of other programs, switch on two CPUs.
    fn any_events() -> impl Strategy<Value = Vec<Event>> {
        let left = prop_oneof![Just(LeaveReason::Blocked), Just(LeaveReason::Preempted)];
        let what = prop_oneof![
            4 => (0i32..6, left, 0i32..6)
                .prop_map(|(prev, left, next)| EventKind::Switch { prev, left, next }),
            2 => (1i32..6, 0u32..2).prop_map(|(thread, target)| EventKind::Wake { thread, target }),
            1 => (1i32..6, 0usize..2).prop_map(|(thread, cpu)| {
                let cpus = Box::new(pinwise_topology::CpuSet::single(cpu));
                EventKind::Mask { thread, cpus }
            }),
        ];
        prop::collection::vec((0u64..5, 0u32..2, what), 0..200).prop_map(|steps| {
            let mut time_ns = 0;
            let followed = (1..4).map(|thread| EventKind::Follow { thread });
            let mut events: Vec<Event> = followed
                .map(|what| Event {
                    time_ns,
                    cpu: 0,
                    what,
                })
                .collect();
            for (step, cpu, what) in steps {
                time_ns += step * 1_000_000;
                events.push(Event { time_ns, cpu, what });
            }
            events
        })
    }

    proptest! {
        /// Time queued beside idle CPUs is part of the time blamed on the scheduler and the mask,
        /// whatever a quota took.
        #[test]
        fn causes_include_waits_beside_idle_cpus_and_add_up_to_all_waits(
            events in any_events(),
            periods in 0u64..3,
            held_ms in 0u64..2_000,
        ) {
            let topology = Topology::from_synthetic("core:2 pu:1").unwrap();
            let mut recorder = TraceRecorder::new(&topology, Tier::Bpf.scope());
            recorder.add(&events);
            let record = recorder.finish(TraceDetails {
                source: TraceSource::Machine,
                tier: TraceTier::Bpf,
                host: HostRecord::new("local".to_owned(), false, &topology),
                span_ns: None,
                throttled: Some(Throttling {
                    periods,
                    times: periods,
                    held: std::time::Duration::from_millis(held_ms),
                }),
                notes: Vec::new(),
                tags: Vec::new(),
            });
            let figures = &record.figures;
            let because = figures.waits.because.unwrap();
            let idle = &figures.idle_while_waiting;
            let least = 1e-9;
            prop_assert!(idle.scheduler_s.unwrap() <= because.scheduler_s + least);
            prop_assert!(idle.mask_s.unwrap() <= because.mask_s + least);
            let all_s = because.scheduler_s
                + because.mask_s
                + because.other_processes_s
                + because.own_threads_s
                + because.starting_s
                + because.throttled_s
                + because.scheduling_class_s;
            prop_assert!((all_s - figures.waits.total_s.unwrap()).abs() < least);
        }
    }

    /// Checks the lower bounds of a thread that ended after this many switches.
    #[track_caller]
    fn check_bounds(tier: Tier, switches: u64, expected: &[LowerBound]) {
        let topology = Topology::from_synthetic("core:2 pu:1").unwrap();
        let mut recorder = TraceRecorder::new(&topology, tier.scope());
        let left = LeaveReason::Blocked;
        let mut events = vec![
            EventKind::Follow { thread: 1 },
            EventKind::Fork {
                parent: 1,
                child: 2,
                process: 2,
            },
        ];
        for _ in 0..switches {
            events.push(EventKind::In { thread: 2 });
            events.push(EventKind::Out { thread: 2, left });
        }
        events.push(EventKind::Exit { thread: 2 });
        for (time_ns, what) in (0..).zip(events) {
            recorder.add(&[Event {
                time_ns,
                cpu: 0,
                what,
            }]);
        }
        let record = recorder.finish(TraceDetails {
            source: TraceSource::Machine,
            tier: tier.into(),
            host: HostRecord::new("local".to_owned(), false, &topology),
            span_ns: None,
            throttled: Some(Throttling::default()),
            notes: Vec::new(),
            tags: Vec::new(),
        });
        assert_eq!(record.figures.lower_bounds, expected, "{tier} {switches}");
    }

    #[test]
    fn figures_that_a_tier_sees_in_part_are_lower_bounds() {
        check_bounds(Tier::Switch, 3, &[LowerBound::Switches]);
        check_bounds(Tier::Switch, 100, &[]);
        check_bounds(Tier::Bpf, 3, &[]);
        let of_polling = [
            LowerBound::Switches,
            LowerBound::Threads,
            LowerBound::Migrations,
        ];
        check_bounds(Tier::Proc, 0, &of_polling);
    }

    #[test]
    fn short_waits_by_events_are_upper_bounds() {
        let check = |count: u64, total_ns: u64, is_from_kernel: bool, expected: bool| {
            let summary = Waits {
                total_ns: Some(total_ns),
                count: Some(count),
                is_from_kernel,
                ..Waits::default()
            };
            assert_eq!(may_be_too_long(&summary), expected, "{count} {total_ns}");
        };
        check(2000, 190_000_000, false, true);
        check(2000, 200_000_000, false, false);
        check(2000, 190_000_000, true, false);
        check(333, 0, false, false);
    }

    #[test]
    fn unknown_time_of_a_cpu_counts_from_half_a_percent_on() {
        let unknown = |own_ns, foreign_ns, idle_ns| {
            let cpu = pinwise_sched::CpuSummary {
                cpu: 0,
                own_ns,
                foreign_ns,
                idle_ns,
                switches: None,
            };
            unknown_ns(&cpu, 1_000)
        };
        assert_eq!(unknown(500, Some(200), Some(200)), Some(100));
        assert_eq!(unknown(500, Some(300), Some(196)), Some(0));
        assert_eq!(unknown(500, Some(300), Some(201)), Some(0));
        assert_eq!(unknown(500, None, Some(200)), None);
        assert_eq!(unknown(500, Some(200), None), None);
    }
}
