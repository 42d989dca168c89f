//! What the time of a program's threads was mostly lost to.

use super::super::blocking::{is_awake, is_deadlock, locked_out, split_blocked};
use super::super::limits::find_tight_memory;
use super::super::runtimes;
use super::super::shares::blocked_s;
use super::super::waiters::{self, list_active};
use super::find_mask;
use pinwise_record::{
    BlockedIn, BlockedThread, Finding, MemoryLimitRecord, Severity, ThreadRecord, TraceRecord,
};

/// A cause of this part of a time is the cause of it.
const MOST: f64 = 0.5;
/// A program in Go works if this many of its threads ran or waited for a CPU on average.
const GO_AWAKE: f64 = 0.5;
/// Waits for a lock, or for a CPU, of this part of all time are named beside a larger cause.
const MUCH: f64 = 0.15;
/// A thread that made at least this part of the wake-ups of the others is what they wait for …
const WAKES: f64 = 0.5;
/// … and one that made less than this part is not.
const HARDLY_WAKES: f64 = 0.1;
/// Threads that ran for this part of the time or more, and hardly ever two at once, took turns: by
/// chance two would have run at once for a fifth of that time.
const TURNS: f64 = 0.75;
const AT_ONCE: f64 = 0.1;
/// One was awake for nearly all the time then …
const TURNS_AWAKE: f64 = 0.85;
/// … no thread had more of it than this …
const LARGEST_TURN: f64 = 0.6;
/// … and other programs, which may have held the second CPU, took less than this part of it.
const HINDERED: f64 = 0.25;
/// A collector that runs for a smaller part of the time holds nobody up.
const COLLECTS: f64 = 0.2;
/// Starting a process takes about a millisecond of CPU time: this many a second are a tenth of a
/// CPU. Who keeps several CPUs busy starts as many more.
const STARTS: f64 = 100.0;
/// In a shorter trace a few processes are many per second.
const MIN_STARTING_S: f64 = 0.5;
/// Threads that take turns wake each other, and then wait for a CPU for less than this part of it.
const CROWDED: f64 = 0.5;

/// Why threads were mostly queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueuedBy {
    OwnThreads,
    Others,
    Quota,
    Mask,
    Scheduler,
    Class,
    /// Several, or unknown.
    Mixed,
}

impl QueuedBy {
    pub(super) fn main_cause(record: &TraceRecord) -> Self {
        Self::find_main(record).0
    }

    /// What a program waits for beside something larger: named only if it is much by itself.
    pub(super) fn second_cause(record: &TraceRecord, times: &Times) -> Self {
        match Self::find_main(record) {
            (cause, part_s) if part_s >= MUCH * times.all_s() => cause,
            _ => Self::Mixed,
        }
    }

    /// The main cause, and the time that was lost to it, seconds.
    fn find_main(record: &TraceRecord) -> (Self, f64) {
        let waited_s = record.figures.waits.total_s.unwrap_or(0.0);
        let Some(causes) = record.figures.waits.because else {
            return (Self::Mixed, waited_s);
        };
        let all = [
            (causes.own_threads_s, Self::OwnThreads),
            (causes.other_processes_s, Self::Others),
            (causes.throttled_s, Self::Quota),
            (causes.mask_s, Self::Mask),
            (causes.scheduler_s + causes.starting_s, Self::Scheduler),
            (causes.scheduling_class_s, Self::Class),
        ];
        let total: f64 = all.iter().map(|(part, _)| part).sum();
        // Who uses up a quota gets no more from CPUs that others leave.
        let throttled = record.figures.throttled.as_ref();
        if throttled.is_some_and(|quota| quota.times > 0 && 2 * quota.times >= quota.periods) {
            return (Self::Quota, causes.throttled_s.max(waited_s));
        }
        // What others take does not matter where the program's own threads fill all CPUs.
        let crowded_s = ready_threads(record) - allowed_cpus(record) as f64;
        if crowded_s * record.elapsed_s > MOST * waited_s && waited_s > 0.0 {
            return (Self::OwnThreads, waited_s);
        }
        let most = all.into_iter().find(|(part, _)| *part > MOST * total);
        most.map_or((Self::Mixed, waited_s), |(part_s, cause)| (cause, part_s))
    }

    pub(super) const fn headline(self) -> &'static str {
        match self {
            Self::OwnThreads => "Short of CPUs for its own threads",
            Self::Others => "Held up by other programs on its CPUs",
            Self::Quota => "Held back by a CPU quota",
            Self::Mask => "Held back by its affinity mask",
            Self::Scheduler => "Held up by the scheduler, which left CPUs idle",
            Self::Class => "Held back by its scheduling class",
            Self::Mixed => "Waited for CPUs",
        }
    }

    /// The finding that has the advice.
    pub(super) const fn check(self) -> &'static str {
        match self {
            Self::OwnThreads => "own_threads",
            Self::Mixed => "queued",
            Self::Others => "other_processes",
            Self::Quota => "throttled",
            Self::Mask => "mask",
            Self::Scheduler => "idle_while_waiting",
            Self::Class => "scheduling_class",
        }
    }
}

/// Threads that ran or waited for a CPU, on average.
pub(super) fn ready_threads(record: &TraceRecord) -> f64 {
    let waited_s = record.figures.waits.total_s.unwrap_or(0.0);
    (record.figures.totals.cpu_s + waited_s) / record.elapsed_s
}

/// The CPUs that the program may use.
pub(super) fn allowed_cpus(record: &TraceRecord) -> usize {
    find_mask(record).map_or(record.host.counts.cpus, |mask| mask.len())
}

/// What is said to limit a program.
#[derive(Debug)]
pub(super) enum Cause<'a> {
    Work,
    SharedCores(f64),
    Queued(QueuedBy),
    Lock,
    /// All wait for locks, and nobody runs.
    Deadlock,
    Waiting(BlockedIn),
    /// In several things, or unknown.
    Blocked,
    /// This one was awake all the time, while the others waited for threads.
    OneThread(&'a ThreadRecord),
    /// This one was awake all the time, while the others waited for something else: it may be what
    /// they wait for, or have nothing to do with them.
    BusyThread(&'a ThreadRecord),
    /// One thread at a time ran.
    Turns,
    /// The collector of the Java virtual machine, for this share of the CPU time.
    Collection(f64),
    /// So many processes were started, per second.
    Starting(f64),
    /// The memory limit of its cgroup.
    Memory(&'a MemoryLimitRecord),
}

/// Where the time of all threads went, seconds.
pub(super) struct Times {
    pub(super) ran_s: f64,
    pub(super) queued_s: f64,
    pub(super) blocked_s: f64,
    /// What they were blocked in, as far as that is known, the longest first.
    pub(super) kinds: Vec<(BlockedIn, f64)>,
}

impl Times {
    pub(super) fn read(record: &TraceRecord) -> Option<Self> {
        let figures = &record.figures;
        let (ran_s, queued_s) = (figures.totals.cpu_s, figures.waits.total_s?);
        let held_s = figures.throttled.as_ref().map_or(0.0, |held| held.seconds);
        // For at least so long all threads were blocked, those that count as idle too.
        let all_blocked_s = record.elapsed_s - ran_s - queued_s - held_s;
        let blocked_s = blocked_s(figures)?.max(all_blocked_s);
        // What the threads of Go wait for says nothing about its goroutines.
        let kinds = match runtimes::is_go(record) {
            true => Vec::new(),
            false => split_blocked(record),
        };
        let kinds = kinds.into_iter();
        Some(Self {
            ran_s,
            queued_s,
            blocked_s,
            kinds: kinds
                .map(|(what, share)| (what, share * blocked_s))
                .collect(),
        })
    }

    pub(super) fn all_s(&self) -> f64 {
        self.ran_s + self.queued_s + self.blocked_s
    }

    /// Did threads wait for a CPU for much of the time?
    pub(super) fn is_much_queued(&self) -> bool {
        self.queued_s >= MUCH * self.all_s()
    }

    /// Did threads wait for a lock for much of the time?
    pub(super) fn is_much_at_lock(&self) -> bool {
        let mut kinds = self.kinds.iter();
        let at_lock = kinds.find(|(what, _)| *what == BlockedIn::Mutex);
        at_lock.is_some_and(|(_, part_s)| *part_s >= MUCH * self.all_s())
    }
}

/// The cause of the largest part of the time: of running, queueing and being blocked.
pub(super) fn find_cause<'a>(record: &'a TraceRecord, times: &Times) -> Cause<'a> {
    if let Some(limit) = find_tight_memory(record) {
        return Cause::Memory(limit);
    }
    let shared = shared(record);
    let collected_s = runtimes::collector_cpu_s(record);
    if collected_s >= MOST * times.ran_s && collected_s >= COLLECTS * record.elapsed_s {
        return Cause::Collection(collected_s / times.ran_s);
    }
    let started = record.figures.totals.started_processes.unwrap_or(0) as f64 / record.elapsed_s;
    let ran = times.ran_s / record.elapsed_s;
    if started >= STARTS * ran.max(1.0) && record.elapsed_s >= MIN_STARTING_S {
        return Cause::Starting(started);
    }
    if let Some(cause) = find_saturated(record, times).filter(|_| shared.is_none()) {
        return cause;
    }
    if take_turns(record, times) {
        return Cause::Turns;
    }
    // Go parks threads that it does not need: as long as others are awake, they tell nothing.
    let are_parked =
        runtimes::is_go(record) && times.ran_s + times.queued_s >= GO_AWAKE * record.elapsed_s;
    if !are_parked && times.blocked_s > times.ran_s + times.queued_s {
        return match times.kinds.first() {
            Some((BlockedIn::Mutex, _)) if is_deadlock(record) => Cause::Deadlock,
            _ if wait_for_python(record, times) => Cause::Turns,
            Some((BlockedIn::Mutex, _)) => Cause::Lock,
            // The rest of the program goes on, as if nothing had happened.
            _ if locked_out(record) > 1 => Cause::Lock,
            Some((what, part_s)) if *part_s > MOST * times.blocked_s => {
                Cause::Waiting(what.clone())
            }
            _ => Cause::Blocked,
        };
    }
    match (times.queued_s > times.ran_s, shared) {
        (true, _) => Cause::Queued(QueuedBy::main_cause(record)),
        (false, Some(share)) => Cause::SharedCores(share),
        (false, None) => Cause::Work,
    }
}

/// The only thread that was awake all the time, if the others mostly waited meanwhile.
fn find_saturated<'a>(record: &'a TraceRecord, times: &Times) -> Option<Cause<'a>> {
    let mut awake = record.threads.iter().filter(|one| is_awake(record, one));
    let only = awake.next().filter(|_| awake.next().is_none())?;
    let others_s = times.ran_s + times.queued_s - only.cpu_s - only.wait_s.unwrap_or(0.0);
    let is_alone = list_active(&record.blocked).all(|other| other.thread == only.thread);
    if !is_alone && others_s >= times.blocked_s {
        return None;
    }
    let woken = share_woken_by(record, only);
    if !is_alone && woken.is_some_and(|share| share < HARDLY_WAKES) {
        return None;
    }
    let wakes = woken.is_some_and(|share| share >= WAKES);
    let is_limit = wakes || woken.is_none() && others_wait_for_threads(record, only);
    match (is_limit, woken) {
        (true, _) => Some(Cause::OneThread(only)),
        (false, None) if is_alone => None,
        (false, _) => Some(Cause::BusyThread(only)),
    }
}

/// The part of the other threads' wake-ups by threads that this one made; `None` if too few are
/// known.
fn share_woken_by(record: &TraceRecord, by: &ThreadRecord) -> Option<f64> {
    let wakes = waiters::tally_wakers(list_others(record, by));
    let all: u64 = wakes.values().sum();
    let own = wakes.iter().filter(|((thread, _), _)| *thread == by.thread);
    let own: u64 = own.map(|(_, times)| times).sum();
    (all >= waiters::MIN_WAKES).then(|| own as f64 / all as f64)
}

/// Did the others mostly wait for threads? More of them would not help then.
fn others_wait_for_threads(record: &TraceRecord, but: &ThreadRecord) -> bool {
    let parts = waiters::sum_parts(list_others(record, but));
    let all: u64 = parts.iter().map(|part| part.looks).sum();
    let wait = parts.iter().filter(|part| waits_for_threads(&part.what));
    let wait: u64 = wait.map(|part| part.looks).sum();
    2 * wait > all
}

/// Other threads than this one: idle ones only if there are no others.
pub(super) fn list_others<'a>(
    record: &'a TraceRecord,
    but: &ThreadRecord,
) -> impl Iterator<Item = &'a BlockedThread> {
    let but = but.thread;
    let is_alone = list_active(&record.blocked).all(|other| other.thread == but);
    let all = record.blocked.iter().flat_map(|seen| &seen.threads);
    all.filter(move |other| other.thread != but && (is_alone || !other.is_idle))
}

const fn waits_for_threads(what: &BlockedIn) -> bool {
    matches!(
        what,
        BlockedIn::Lock
            | BlockedIn::Mutex
            | BlockedIn::Condition
            | BlockedIn::Thread
            | BlockedIn::Child
            | BlockedIn::Unknown
    )
}

/// What threads were blocked in for most of that time, if that is for other threads.
fn main_wait_for_threads(times: &Times) -> Option<&BlockedIn> {
    let (what, part_s) = times.kinds.first()?;
    let is_other = matches!(what, BlockedIn::Lock | BlockedIn::Condition);
    (is_other && *part_s > MOST * times.blocked_s).then_some(what)
}

/// Do they mostly wait in the function of Python that takes its global lock?
pub(super) fn wait_for_python(record: &TraceRecord, times: &Times) -> bool {
    main_wait_for_threads(times).is_some_and(|what| {
        waiters::main_place(&record.blocked, what).starts_with(runtimes::TAKES_GIL)
    })
}

/// Did one thread after the other run, each waiting for the others, though there were CPUs for more?
fn take_turns(record: &TraceRecord, times: &Times) -> bool {
    let Some(parallel_s) = record.figures.totals.parallel_s else {
        return false;
    };
    let largest_s = record.threads.iter().map(|thread| thread.cpu_s);
    let largest_s = largest_s.fold(0.0, f64::max);
    // The number of the only CPU.
    let has_one_cpu = |cpus: &str| cpus.parse::<usize>().is_ok();
    let mut allowed = record
        .threads
        .iter()
        .filter_map(|thread| thread.allowed.as_deref());
    // Threads of one program that are ready at once could have run at once.
    let because = record.figures.waits.because;
    let crowded_s = because.map_or(0.0, |causes| causes.own_threads_s);
    let hindered_s = match because {
        Some(causes) => causes.other_processes_s + causes.mask_s + causes.scheduling_class_s,
        None => times.queued_s,
    };
    (runtimes::is_go(record) || main_wait_for_threads(times).is_some())
        && times.ran_s >= TURNS * record.elapsed_s
        && times.ran_s <= (1.0 + AT_ONCE) * record.elapsed_s
        && times.ran_s + times.queued_s >= TURNS_AWAKE * record.elapsed_s
        && parallel_s <= AT_ONCE * times.ran_s
        && largest_s <= LARGEST_TURN * times.ran_s
        && record.host.counts.cpus > 1
        && !allowed.any(has_one_cpu)
        && hindered_s < HINDERED * times.ran_s
        && crowded_s < CROWDED * times.ran_s
        && record
            .figures
            .throttled
            .as_ref()
            .is_none_or(|quota| quota.times == 0)
}

/// The share of the CPU time beside a busy sibling that could have been avoided, if it is much.
fn shared(record: &TraceRecord) -> Option<f64> {
    let mut findings = record.findings.iter();
    let is_much = |finding: &&Finding| {
        finding.check == "avoidable_smt_sharing" && finding.severity > Severity::Note
    };
    findings.find(is_much)?;
    let percent = record.figures.avoidable_smt_sharing.percent?;
    Some(percent / 100.0)
}
