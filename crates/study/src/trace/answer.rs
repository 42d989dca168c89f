//! Where the time of a program's threads went, and the largest cause of that, in one sentence: what
//! somebody with a slow program wants to know. It judges nothing that the findings do not.

mod advice;
mod cause;

use super::blocking::locked_out;
use super::limits::{name_memory_limit, name_quota};
use super::runtimes::{NEW_CONNECTIONS, TAKES_PYTHON_LOCK, is_go, is_python, is_server};
use super::shares::count_busy_others;
use super::waiters;
use advice::advise;
use cause::{
    Cause, QueuedBy, Times, allowed_cpus, find_cause, list_others, ready_threads, wait_for_python,
};
use pinwise_format::{count, count_of, join_words, lower_first, percent};
use pinwise_record::{
    Answer, BlockedIn, LowerBound, Severity, ThreadRecord, TraceFigures, TraceRecord, TraceSource,
};
use pinwise_topology::CpuSet;

/// A smaller share is not named.
const NAMED: f64 = 0.005;
/// What threads were blocked in for a smaller share of their time is not named by itself.
const SEPARATE: f64 = 0.05;
/// A server that runs for this part of the time has something to look at.
const RUNS: f64 = 0.1;
/// Who waits for events for this part of the time may have nothing to do.
const IDLE: f64 = 0.95;
/// This many threads per CPU that are ready at a time are named.
const CROWDED: f64 = 2.0;
/// Peers of a server's sockets.
const SERVES: [&str; 2] = ["clients of", NEW_CONNECTIONS];

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
    // Threads that run one at a time use no second CPU, wherever they are; and others hold up
    // nobody who has nothing to do.
    let irrelevant = match cause {
        Cause::Turns => Some("idle_while_waiting"),
        Cause::Blocked if has_no_active(record) => Some("other_processes"),
        _ => None,
    };
    record.answer = compose(record, &times, &cause);
    let findings = record.header.findings.iter_mut();
    for finding in findings.filter(|finding| Some(finding.check.as_str()) == irrelevant) {
        finding.severity = Severity::Note;
        finding.advice.clear();
    }
}

fn has_no_active(record: &TraceRecord) -> bool {
    waiters::list_active(&record.blocked).next().is_none()
}

fn compose(record: &TraceRecord, times: &Times, cause: &Cause<'_>) -> Option<Answer> {
    let place = |what: &BlockedIn| waiters::name_places(&record.blocked, what);
    let headline = match cause {
        Cause::Work => "Limited by its own work".to_owned(),
        Cause::SharedCores(share) => format!(
            "Slowed by shared cores, for {} of its CPU time while others idled",
            percent(*share)
        ),
        Cause::Queued(by) => describe_queue(record, *by),
        Cause::Lock => {
            let never = match locked_out(record) {
                0 => String::new(),
                many => format!(", which {} never got", count_of(many, "thread", "threads")),
            };
            format!("Held up by a lock{}{never}", place(&BlockedIn::Mutex))
        }
        Cause::Deadlock => format!(
            "Perhaps a deadlock: all wait for a lock{}, and none runs",
            place(&BlockedIn::Mutex)
        ),
        Cause::Waiting(BlockedIn::Stopped) => "Stopped by a signal or a debugger".to_owned(),
        Cause::Waiting(what) => describe_waiting(record, times, what),
        Cause::Blocked if is_go(record) => {
            let whom = find_server(record, &BlockedIn::Events)
                .map_or_else(String::new, |server| format!(", perhaps {server}"));
            format!("Its goroutines mostly wait, and not for CPUs{whom}")
        }
        Cause::Blocked if may_be_idle(record, times) => {
            let place = waiters::main_place(&record.blocked, &BlockedIn::Events);
            match serves(place) {
                true => "Idle, as a server without requests, or held up".to_owned(),
                false => "Idle, or held up".to_owned(),
            }
        }
        Cause::Blocked if times.is_much_queued() => "Mostly blocked".to_owned(),
        Cause::Blocked => "Mostly blocked, not short of CPUs".to_owned(),
        Cause::OneThread(thread) | Cause::BusyThread(thread) => {
            let is_limit = matches!(cause, Cause::OneThread(_));
            let sentence = describe_one_thread(record, thread, is_limit);
            let advice = advise(record, times, cause);
            return Some(Answer { sentence, advice });
        }
        Cause::Turns => describe_turns(record, times),
        Cause::Starting(rate) => format!("Busy starting processes, {rate:.0} a second"),
        Cause::Memory(limit) => {
            format!("Held up by its memory limit ({})", name_memory_limit(limit))
        }
        Cause::Collection(share) => format!(
            "Limited by garbage collection, {} of its CPU time",
            percent(*share)
        ),
    };
    let also = match cause {
        Cause::Work | Cause::Queued(_) if times.is_much_at_lock() => {
            format!(" and held up by a lock{}", place(&BlockedIn::Mutex))
        }
        Cause::Work | Cause::Waiting(_) | Cause::Blocked | Cause::Lock
            if times.is_much_queued() =>
        {
            let by = QueuedBy::second_cause(record, times);
            format!(", and {}", lower_first(&describe_queue(record, by)))
        }
        _ => String::new(),
    };
    let who = match record.figures.totals.threads {
        1 => "it",
        _ => "its threads",
    };
    let listed = list_times(record, times, cause)?;
    Some(Answer {
        sentence: format!(
            "{headline}{also}: {who} spent {}{listed}.",
            about(&record.figures)
        ),
        advice: advise(record, times, cause),
    })
}

/// The server whose answers threads mostly waited for: an address, or the name of a local socket.
fn find_server<'a>(record: &'a TraceRecord, what: &BlockedIn) -> Option<&'a str> {
    if !matches!(what, BlockedIn::Events | BlockedIn::Socket) {
        return None;
    }
    let first = waiters::main_place(&record.blocked, what)
        .split(" or ")
        .next()?;
    is_server(first).then_some(first)
}

/// Does it serve requests for a notable part of its time, and waits for more of them else?
fn runs_requests(record: &TraceRecord, times: &Times, what: &BlockedIn) -> bool {
    let waits = serves(waiters::main_place(&record.blocked, what));
    waits && times.ran_s >= RUNS * times.all_s()
}

/// What threads mostly waited for; a server may be idle.
fn describe_waiting(record: &TraceRecord, times: &Times, what: &BlockedIn) -> String {
    let wait = waiters::describe_wait(&record.blocked, what);
    match (
        may_be_idle(record, times),
        wait.split_once(" or clients of"),
    ) {
        (true, Some((servers, _))) => {
            format!("Held up by waiting for {servers}, or idle, as a server without requests")
        }
        (true, None) if serves(&wait) => {
            format!("Idle, as a server without requests, or held up by waiting for {wait}")
        }
        (true, None) => format!("Idle, or held up by waiting for {wait}"),
        (false, None) if wait.starts_with("clients of") => format!("Waits for requests by {wait}"),
        // A pool without work waits like one that is held up.
        (false, _) if *what == BlockedIn::Condition => format!("Mostly waits for {wait}"),
        (false, _) => format!("Held up by waiting for {wait}"),
    }
}

/// That one thread at a time ran, and why.
fn describe_turns(record: &TraceRecord, times: &Times) -> String {
    let place = || waiters::name_places(&record.blocked, &BlockedIn::Condition);
    let why = match () {
        () if wait_for_python(record, times) => " because of Python's global lock (GIL)",
        () if is_go(record) => {
            ": one goroutine does the work, or a lock lets only one at a time run"
        }
        () if is_python(record) && !place().contains(TAKES_PYTHON_LOCK) => {
            ", perhaps because of Python's global lock (GIL)"
        }
        () => ", each waiting for the others",
    };
    let cpus = times.ran_s / record.elapsed_s;
    format!("Ran one thread at a time ({cpus:.2} CPUs in all){why}")
}

/// Is this what a server waits for that has no requests?
fn serves(wait: &str) -> bool {
    SERVES.iter().any(|at| wait.contains(at))
}

/// Did its threads mostly wait for what a server without requests waits for, or did none do anything?
fn may_be_idle(record: &TraceRecord, times: &Times) -> bool {
    if has_no_active(record) {
        return true;
    }
    let is_idle = |what: &BlockedIn| match what {
        BlockedIn::Signal => true,
        BlockedIn::Events | BlockedIn::Socket => {
            let place = waiters::main_place(&record.blocked, what);
            serves(place) || *what == BlockedIn::Events && place.is_empty()
        }
        _ => false,
    };
    let parts = times.kinds.iter().filter(|(what, _)| is_idle(what));
    parts.map(|(_, part_s)| part_s).sum::<f64>() >= IDLE * times.all_s()
}

/// Are many more threads ready at a time than there are CPUs?
pub(super) fn is_crowded(record: &TraceRecord) -> bool {
    ready_threads(record) > CROWDED * allowed_cpus(record) as f64
}

/// Why threads were queued; on which CPUs, if the affinity mask keeps them there.
fn describe_queue(record: &TraceRecord, by: QueuedBy) -> String {
    match (by, find_mask(record)) {
        (QueuedBy::Others, Some(cpus)) => {
            let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
            let mostly = name_main_program(record)
                .map_or_else(String::new, |name| format!(", mostly {name},"));
            format!(
                "Held up by other programs{mostly} on {noun} {cpus}, to which its affinity mask keeps it"
            )
        }
        (QueuedBy::OwnThreads, Some(cpus)) => {
            let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
            format!(
                "Short of CPUs for its own threads on {noun} {cpus}, to which its affinity mask keeps it"
            )
        }
        (QueuedBy::OwnThreads, None) => {
            let (ready, cpus) = (ready_threads(record), allowed_cpus(record));
            let others = count_busy_others(record);
            match others.map(|busy| format!(", of which other programs kept {busy:.1} busy")) {
                others if is_crowded(record) => format!(
                    "{} ({ready:.0} ready at a time on {}{})",
                    by.headline(),
                    count(cpus, "CPU"),
                    others.unwrap_or_default()
                ),
                Some(others) => format!("Short of CPUs{others}"),
                None => by.headline().to_owned(),
            }
        }
        (QueuedBy::Others, None) => {
            let mostly = name_main_program(record)
                .map_or_else(String::new, |name| format!(", mostly {name}"));
            let yields = find_nice(record).map_or_else(String::new, |nice| {
                format!(", to which it yields at nice {nice}")
            });
            format!("{}{mostly}{yields}", by.headline())
        }
        (QueuedBy::Quota, _) => format!("{}{}", by.headline(), name_quota(record)),
        _ => by.headline().to_owned(),
    }
}

/// A program that ran for this part of the time in which threads were queued is named.
const MOSTLY: f64 = 0.5;

/// The program that mostly ran where threads were queued.
fn name_main_program(record: &TraceRecord) -> Option<&str> {
    let first = record.figures.waits.behind.first();
    first
        .filter(|one| one.share >= MOSTLY)
        .map(|one| one.name.as_str())
}

/// The niceness of all threads, if that is above 0: others get the larger part of the CPUs.
fn find_nice(record: &TraceRecord) -> Option<u8> {
    let first = record.threads.first()?.nice?;
    let mut threads = record.threads.iter();
    threads
        .all(|thread| thread.nice == Some(first))
        .then_some(first)
}

/// The CPUs that all threads may use, if those are not all CPUs.
pub(super) fn find_mask(record: &TraceRecord) -> Option<CpuSet> {
    let mut allowed = record
        .threads
        .iter()
        .map(|thread| thread.allowed.as_deref());
    let first = allowed.next()??;
    let cpus = CpuSet::parse_list(first).ok()?;
    let is_same = allowed.all(|cpus| cpus == Some(first));
    (is_same && cpus.len() < record.host.counts.cpus).then_some(cpus)
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
            let by = QueuedBy::main_cause(record);
            format!("{}, in one thread", describe_queue(record, by))
        }
        false if is_limit => "Limited by one thread".to_owned(),
        false => "One thread is busy all the time".to_owned(),
    };
    let others = || list_others(record, thread);
    let first = waiters::sum_parts(others()).into_iter().next();
    let waited = first.filter(|part| part.what != BlockedIn::Unknown);
    let waited = waited.map_or_else(String::new, |part| {
        format!(
            " for {}",
            waiters::describe_wait(&record.blocked, &part.what)
        )
    });
    let woken = match is_limit {
        true => String::new(),
        false => waiters::name_waker(others()),
    };
    format!(
        "{headline}: {} ({}) {} of the time; the others mostly waited{waited}{woken}.",
        thread.name,
        thread.thread,
        join_words(&parts),
    )
}

/// The parts of the time, the largest first, as shares.
fn list_times(record: &TraceRecord, times: &Times, cause: &Cause<'_>) -> Option<String> {
    // Go parks threads that it does not need.
    let are_parked = is_go(record) && !matches!(cause, Cause::Blocked);
    let mut rest_s = if are_parked { 0.0 } else { times.blocked_s };
    let all_s = times.ran_s + times.queued_s + rest_s;
    let cause = match cause {
        Cause::Lock => Some(BlockedIn::Mutex),
        Cause::Waiting(what) => Some(what.clone()),
        _ => None,
    };
    let mut parts = vec![
        (times.ran_s, "running".to_owned()),
        (times.queued_s, "waiting for a CPU".to_owned()),
    ];
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
        BlockedIn::Stopped => "stopped".to_owned(),
        BlockedIn::Timer => "asleep (timer)".to_owned(),
        BlockedIn::PageFault if is_cause => "waiting for them".to_owned(),
        BlockedIn::Events | BlockedIn::OtherCall if is_cause => {
            let place = waiters::main_place(&record.blocked, what);
            let is_one = !place.is_empty() && !place.contains(" or ") && !serves(place);
            format!("waiting for {}", if is_one { "it" } else { "them" })
        }
        _ if is_cause => "waiting for it".to_owned(),
        BlockedIn::Mutex => {
            let places = waiters::name_places(&record.blocked, what);
            format!("waiting for a lock{places}")
        }
        _ => format!(
            "waiting for {}",
            waiters::describe_wait(&record.blocked, what)
        ),
    }
}

/// In front of shares of what the trace saw in part.
fn about(figures: &TraceFigures) -> &'static str {
    let misses = |bound| figures.lower_bounds.contains(&bound);
    match misses(LowerBound::CpuTime) || misses(LowerBound::Queued) {
        true => "about ",
        false => "",
    }
}

#[cfg(test)]
mod tests;
