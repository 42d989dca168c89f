//! Where the time of a program's threads went, and the largest cause of that, in one sentence: what
//! somebody with a slow program wants to know. It judges nothing that the findings do not.

use super::blocking::{advise_calls, advise_spin_attach, is_awake, spin_target, split_blocked};
use super::shares::blocked_s;
use super::waiters::{self, list_active};
use pinwise_format::{join_words, percent, shell};
use pinwise_record::{
    BlockedIn, BlockedPart, BlockedThread, Finding, LowerBound, Severity, ThreadRecord,
    TraceAnswer, TraceFigures, TraceRecord, TraceSource, TraceTier, WaitCauses,
};

/// A smaller share is not named.
const NAMED: f64 = 0.005;
/// What threads were blocked in for a smaller share of their time is not named by itself.
const SEPARATE: f64 = 0.05;
/// A cause of this part of a time is the cause of it.
const MOST: f64 = 0.5;
/// Who waits for events for this part of the time may have nothing to do.
const IDLE: f64 = 0.95;
/// The function of Python that takes its global lock.
const TAKES_GIL: &str = "take_gil";
/// Peers of a server's sockets.
const SERVES: [&str; 2] = ["clients of port", "(new connections)"];
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

/// Why threads were mostly queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueuedBy {
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
    fn main_cause(causes: Option<WaitCauses>) -> Self {
        let Some(causes) = causes else {
            return Self::Mixed;
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
        let most = all.into_iter().find(|(part, _)| *part > MOST * total);
        most.map_or(Self::Mixed, |(_, cause)| cause)
    }

    const fn headline(self) -> &'static str {
        match self {
            Self::OwnThreads => "Short of CPUs for its own threads",
            Self::Others => "Held up by other programs on its CPUs",
            Self::Quota => "Held back by a CPU quota",
            Self::Mask => "Held back by its affinity mask",
            Self::Scheduler => "Held up by the scheduler, which left CPUs idle",
            Self::Class => "Held back by its scheduling class",
            Self::Mixed => "Short of CPUs",
        }
    }

    /// The finding that has the advice.
    const fn check(self) -> &'static str {
        match self {
            Self::OwnThreads | Self::Mixed => "own_threads",
            Self::Others => "other_processes",
            Self::Quota => "throttled",
            Self::Mask => "mask",
            Self::Scheduler => "idle_while_waiting",
            Self::Class => "scheduling_class",
        }
    }
}

/// What is said to limit a program.
#[derive(Debug)]
enum Cause<'a> {
    Work,
    SharedCores(f64),
    Queued(QueuedBy),
    Lock,
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
}

/// Where the time of all threads went, seconds.
struct Times {
    ran_s: f64,
    queued_s: f64,
    blocked_s: f64,
    /// What they were blocked in, as far as that is known, the longest first.
    kinds: Vec<(BlockedIn, f64)>,
}

impl Times {
    fn read(record: &TraceRecord) -> Option<Self> {
        let blocked_s = blocked_s(&record.figures)?;
        let kinds = split_blocked(record).into_iter();
        Some(Self {
            ran_s: record.figures.totals.cpu_s,
            queued_s: record.figures.waits.total_s?,
            blocked_s,
            kinds: kinds
                .map(|(what, share)| (what, share * blocked_s))
                .collect(),
        })
    }

    fn all_s(&self) -> f64 {
        self.ran_s + self.queued_s + self.blocked_s
    }
}

/// Fills in the answer of a record with all its findings; of a whole machine, which is no program,
/// there is none.
pub(super) fn write(record: &mut TraceRecord) {
    record.answer = None;
    if let TraceSource::Machine | TraceSource::Import { pid: None, .. } = record.source {
        return;
    }
    let Some(times) = Times::read(record).filter(|times| times.all_s() > 0.0) else {
        return;
    };
    let cause = find_cause(record, &times);
    let runs_in_turns = matches!(cause, Cause::Turns);
    record.answer = compose(record, &times, &cause);
    if runs_in_turns {
        withdraw_spreading(record);
    }
}

/// Threads that run one at a time use no second CPU, wherever they are.
fn withdraw_spreading(record: &mut TraceRecord) {
    let findings = record.header.findings.iter_mut();
    for finding in findings.filter(|finding| finding.check == "idle_while_waiting") {
        finding.severity = Severity::Note;
        finding.advice.clear();
    }
}

fn compose(record: &TraceRecord, times: &Times, cause: &Cause<'_>) -> Option<TraceAnswer> {
    let place = |what: &BlockedIn| waiters::name_places(&record.blocked, what);
    let headline = match cause {
        Cause::Work => "Limited by its own work".to_owned(),
        Cause::SharedCores(share) => format!(
            "Slowed by shared cores, for {} of its CPU time while others idled",
            percent(*share)
        ),
        Cause::Queued(by) => by.headline().to_owned(),
        Cause::Lock => format!("Held up by a lock{}", place(&BlockedIn::Mutex)),
        Cause::Waiting(what) => {
            let part_s = times.kinds.first().map_or(0.0, |(_, part_s)| *part_s);
            let place = place(what);
            let serves = *what == BlockedIn::Socket && SERVES.iter().any(|at| place.contains(at));
            let may_be_idle =
                (serves || *what == BlockedIn::Events) && part_s >= IDLE * times.all_s();
            let start = match may_be_idle {
                true => "Idle, as a server without requests, or held up",
                false => "Held up",
            };
            format!("{start} by waiting for {}{place}", what.words())
        }
        Cause::Blocked => "Mostly blocked, not short of CPUs".to_owned(),
        Cause::OneThread(thread) | Cause::BusyThread(thread) => {
            let is_limit = matches!(cause, Cause::OneThread(_));
            let sentence = describe_one_thread(record, thread, is_limit);
            let advice = advise(record, cause);
            return Some(TraceAnswer { sentence, advice });
        }
        Cause::Turns => {
            let why = match wait_for_python(record, times) {
                true => " because of Python's global lock (GIL)",
                false => ", perhaps because of a global lock such as Python's GIL",
            };
            let cpus = times.ran_s / record.elapsed_s;
            format!("Ran one thread at a time ({cpus:.2} CPUs in all){why}")
        }
    };
    let who = match record.figures.totals.threads {
        1 => "it",
        _ => "its threads",
    };
    let listed = list_times(record, times, cause)?;
    Some(TraceAnswer {
        sentence: format!(
            "{headline}: {who} spent {}{listed}.",
            about(&record.figures)
        ),
        advice: advise(record, cause),
    })
}

/// The cause of the largest part of the time: of running, queueing and being blocked.
fn find_cause<'a>(record: &'a TraceRecord, times: &Times) -> Cause<'a> {
    let shared = shared(record);
    if let Some(cause) = find_saturated(record, times).filter(|_| shared.is_none()) {
        return cause;
    }
    if times.blocked_s > times.ran_s.max(times.queued_s) {
        return match times.kinds.first() {
            _ if wait_for_python(record, times) || take_turns(record, times) => Cause::Turns,
            Some((BlockedIn::Mutex, _)) => Cause::Lock,
            Some((what, part_s)) if *part_s > MOST * times.blocked_s => {
                Cause::Waiting(what.clone())
            }
            _ => Cause::Blocked,
        };
    }
    match (times.queued_s > times.ran_s, shared) {
        (true, _) => Cause::Queued(QueuedBy::main_cause(record.figures.waits.because)),
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
    match others_wait_for_threads(record, only) {
        true => Some(Cause::OneThread(only)),
        false => (!is_alone).then_some(Cause::BusyThread(only)),
    }
}

/// Did the others mostly wait for threads? More of them would not help then.
fn others_wait_for_threads(record: &TraceRecord, but: &ThreadRecord) -> bool {
    let parts = list_others(record, but);
    let all: u64 = parts.iter().map(|part| part.looks).sum();
    let wait = parts.iter().filter(|part| waits_for_threads(&part.what));
    let wait: u64 = wait.map(|part| part.looks).sum();
    2 * wait > all
}

/// What other threads than this one waited for: of idle ones only if there are no others.
fn list_others(record: &TraceRecord, but: &ThreadRecord) -> Vec<BlockedPart> {
    let is_other = |other: &&BlockedThread| other.thread != but.thread;
    let active = list_active(&record.blocked).filter(is_other);
    let active = waiters::sum_parts(active);
    if !active.is_empty() {
        return active;
    }
    let all = record.blocked.iter().flat_map(|seen| &seen.threads);
    waiters::sum_parts(all.filter(is_other))
}

const fn waits_for_threads(what: &BlockedIn) -> bool {
    matches!(
        what,
        BlockedIn::Lock
            | BlockedIn::Mutex
            | BlockedIn::Condition
            | BlockedIn::Thread
            | BlockedIn::Unknown
    )
}

fn describe_one_thread(record: &TraceRecord, thread: &ThreadRecord, is_limit: bool) -> String {
    let queued_s = thread.wait_s.unwrap_or(0.0);
    let mut parts = [(thread.cpu_s, "ran"), (queued_s, "waited for a CPU")];
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let share = |part_s: f64| (part_s / record.elapsed_s).min(1.0);
    let parts = parts.iter().filter(|(part_s, _)| share(*part_s) >= NAMED);
    let about = about(&record.figures);
    let parts: Vec<String> = parts
        .map(|(part_s, doing)| format!("{doing} {about}{}", percent(share(*part_s))))
        .collect();
    let headline = match queued_s > thread.cpu_s {
        true => {
            let by = QueuedBy::main_cause(record.figures.waits.because);
            format!("{}, in one thread", by.headline())
        }
        false if is_limit => "Limited by one thread".to_owned(),
        false => "One thread is busy all the time".to_owned(),
    };
    let first = list_others(record, thread).into_iter().next();
    let waited = first.filter(|part| part.what != BlockedIn::Unknown);
    let waited = waited.map_or_else(String::new, |part| {
        let place = waiters::name_places(&record.blocked, &part.what);
        format!(" for {}{place}", part.what.words())
    });
    format!(
        "{headline}: {} ({}) {} of the time; the others mostly waited{waited}.",
        thread.name,
        thread.thread,
        join_words(&parts),
    )
}

/// What threads were blocked in for most of that time, if that is for other threads.
fn main_wait_for_threads(times: &Times) -> Option<&BlockedIn> {
    let (what, part_s) = times.kinds.first()?;
    let is_other = matches!(what, BlockedIn::Lock | BlockedIn::Condition);
    (is_other && *part_s > MOST * times.blocked_s).then_some(what)
}

/// Do they mostly wait in the function of Python that takes its global lock?
fn wait_for_python(record: &TraceRecord, times: &Times) -> bool {
    main_wait_for_threads(times).is_some_and(|what| {
        let place = waiters::name_places(&record.blocked, what);
        let place = place.trim_start_matches(" mostly").strip_prefix(" at ");
        place.is_some_and(|place| place.starts_with(TAKES_GIL))
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
    let hindered_s = match record.figures.waits.because {
        Some(causes) => causes.other_processes_s + causes.mask_s + causes.scheduling_class_s,
        None => times.queued_s,
    };
    main_wait_for_threads(times).is_some()
        && times.ran_s >= TURNS * record.elapsed_s
        && times.ran_s + times.queued_s >= TURNS_AWAKE * record.elapsed_s
        && parallel_s <= AT_ONCE * times.ran_s
        && largest_s <= LARGEST_TURN * times.ran_s
        && record.host.counts.cpus > 1
        && !allowed.any(has_one_cpu)
        && hindered_s < HINDERED * times.ran_s
        && record
            .figures
            .throttled
            .is_none_or(|quota| quota.times == 0)
}

/// The parts of the time, the largest first, as shares.
fn list_times(record: &TraceRecord, times: &Times, cause: &Cause<'_>) -> Option<String> {
    let all_s = times.all_s();
    let cause = match cause {
        Cause::Lock => Some(BlockedIn::Mutex),
        Cause::Waiting(what) => Some(what.clone()),
        _ => None,
    };
    let mut parts = vec![
        (times.ran_s, "running".to_owned()),
        (times.queued_s, "waiting for a CPU".to_owned()),
    ];
    let mut rest_s = times.blocked_s;
    for (what, part_s) in &times.kinds {
        let is_cause = cause.as_ref() == Some(what);
        if is_cause || *part_s >= SEPARATE * all_s {
            rest_s -= part_s;
            parts.push((*part_s, describe_wait(record, what, is_cause)));
        }
    }
    let rest = match parts.len() {
        2 => "blocked",
        _ => "blocked otherwise",
    };
    parts.push((rest_s, rest.to_owned()));
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let of_time = match record.figures.totals.threads {
        1 => " of its time",
        _ => " of their time",
    };
    let named = parts.iter().filter(|(part_s, _)| part_s / all_s >= NAMED);
    let named = named.enumerate().map(|(at, (part_s, doing))| {
        let of_time = if at == 0 { of_time } else { "" };
        format!("{}{of_time} {doing}", percent(part_s / all_s))
    });
    let listed: Vec<String> = named.collect();
    (!listed.is_empty()).then(|| join_words(&listed))
}

/// What a thread does that waits for this; the headline has named its cause.
fn describe_wait(record: &TraceRecord, what: &BlockedIn, is_cause: bool) -> String {
    match what {
        BlockedIn::Timer if is_cause => "asleep".to_owned(),
        BlockedIn::Timer => "asleep (timer)".to_owned(),
        BlockedIn::Events | BlockedIn::OtherCall if is_cause => "waiting for them".to_owned(),
        _ if is_cause => "waiting for it".to_owned(),
        _ => {
            let words = match what {
                BlockedIn::Mutex => "a lock",
                _ => what.words(),
            };
            let place = waiters::name_places(&record.blocked, what);
            format!("waiting for {words}{place}")
        }
    }
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

/// In front of shares of what the trace saw in part.
fn about(figures: &TraceFigures) -> &'static str {
    let misses = |bound| figures.lower_bounds.contains(&bound);
    match misses(LowerBound::CpuTime) || misses(LowerBound::Queued) {
        true => "about ",
        false => "",
    }
}

/// What to do about it: the advice of the finding on it, or how to see more.
fn advise(record: &TraceRecord, cause: &Cause<'_>) -> String {
    let by = match cause {
        Cause::Queued(by) => Some(*by),
        Cause::OneThread(thread) | Cause::BusyThread(thread)
            if thread.wait_s.unwrap_or(0.0) > thread.cpu_s =>
        {
            Some(QueuedBy::main_cause(record.figures.waits.because))
        }
        _ => None,
    };
    let checks: &[&str] = match (by, cause) {
        (Some(by), _) => &[by.check(), "queued", "other_processes"],
        (None, Cause::Work) => &["yielding"],
        (None, Cause::SharedCores(_)) => &["avoidable_smt_sharing"],
        (None, Cause::Lock) => &["lock_waits"],
        (None, Cause::Waiting(_) | Cause::Blocked) => &["blocked"],
        (None, _) => &[],
    };
    let advised = checks.iter().find_map(|check| {
        let mut findings = record.findings.iter();
        findings.find(|finding| finding.check == *check && !finding.advice.is_empty())
    });
    let advised = advised.map(|finding| finding.advice.clone());
    // What does not exist has no functions.
    let is_simulated = record.tier == TraceTier::Simulated;
    let target = spin_target(record);
    let more = match cause {
        Cause::Queued(_) if advised.is_some() => advise_spin_attach(record),
        _ if advised.is_some() || is_simulated => None,
        Cause::Queued(_) => advise_spin_attach(record),
        Cause::Work => advise_spin_attach(record).or_else(|| advise_profile(record, "it runs")),
        Cause::OneThread(_) | Cause::BusyThread(_) => advise_profile(record, "that thread runs")
            .zip(target)
            .map(|(profile, target)| {
                format!("{profile}; whether it spins: pinwise spin attach {target}")
            }),
        Cause::Turns | Cause::Waiting(BlockedIn::Condition | BlockedIn::Lock) => {
            advise_python(record).or_else(|| advise_profile(record, "they run"))
        }
        Cause::Waiting(_) | Cause::Blocked | Cause::Lock => advise_calls(&record.source),
        Cause::SharedCores(_) => None,
    };
    let said: Vec<String> = advised.into_iter().chain(more).collect();
    said.join(" ")
}

/// The lines of a Python program, which a profile of its interpreter does not show.
fn advise_python(record: &TraceRecord) -> Option<String> {
    let mut places = list_active(&record.blocked).flat_map(|thread| &thread.places);
    let in_python = places.any(|at| {
        at.place.starts_with(TAKES_GIL) || at.place.starts_with(waiters::TAKES_PYTHON_LOCK)
    });
    match &record.source {
        TraceSource::Process { pid, .. } if in_python => {
            Some(format!("The lines that wait: py-spy dump --pid {pid}"))
        }
        _ => None,
    }
}

fn advise_profile(record: &TraceRecord, what: &str) -> Option<String> {
    match &record.source {
        TraceSource::Command { command, .. } => Some(format!(
            "What {what}: pinwise profile -- {}",
            shell::line(command)
        )),
        TraceSource::Process { pid, .. } => {
            Some(format!("What {what}: pinwise profile --pid {pid}"))
        }
        TraceSource::Machine | TraceSource::Import { .. } => None,
    }
}

#[cfg(test)]
mod tests;
