//! What threads wait for beside a CPU: what they are blocked in, and whether they wait by
//! giving up the CPU again and again.

use std::collections::BTreeSet;

use super::runtimes::{is_at_gil, is_go, is_java, is_postgres, is_python};
use super::shares::{blocked_s, describe_time, severity_of};
use super::waiters::{self, list_active, share_in};
use pinwise_format::{count, grouped, percent, seconds, shell};
use pinwise_record::{
    BlockedIn, BlockedRecord, BlockedThread, Finding, LowerBound, Severity, ThreadRecord,
    TraceRecord, TraceSource,
};

/// All threads are blocked for this share of the time: that is the main reason for its duration.
const MOSTLY_BLOCKED: f64 = 0.5;
/// Blocked for this share of the time, they are worth a note.
const PARTLY_BLOCKED: f64 = 0.1;
/// A shorter command mostly waits to be started.
const MIN_BLOCKED_S: f64 = 0.1;
/// Processes that advice names.
const MAX_PROCESSES: usize = 5;
/// Fewer looks at threads that wait for a lock say too little.
const MIN_LOOKS: u64 = 5;
/// The holder of a lock was blocked itself for this part of the time that others waited: that is why.
const HELD_BLOCKED: f64 = 0.5;
/// It was mostly in what this part of the looks found.
const HELD_IN: f64 = 0.8;
/// A shorter wait for a lock is no deadlock.
const MIN_DEADLOCK_S: f64 = 0.5;
/// The scheduler preempts a thread about once per slice of at least 0.7 ms. A thread that leaves
/// its CPU this often per second of CPU time, and hardly ever blocks, yields.
const YIELDS_PER_CPU_SECOND: f64 = 5_000.0;
const MAX_BLOCKING_SHARE: f64 = 0.05;
/// Fewer say too little.
const MIN_YIELDS: u64 = 1_000;
/// A thread that ran or was queued for at least this share of the trace, and blocked less often than
/// that a second, counts as never blocked: beginning and ending block, too.
const AWAKE: f64 = 0.9;
const RARE_PER_SECOND: f64 = 5.0;
/// Few systems have it.
const GET_PY_SPY: &str = "(pip install py-spy)";
/// In a shorter trace every thread may be one.
const MIN_AWAKE_S: f64 = 1.0;

/// While a thread runs or is queued, not all are blocked; together those times are at
/// least as long as that while. Where the trace saw them in part only, the share is no
/// bound; `counted_cpu_s` is what the kernel counted for a command.
pub(super) fn find_blocking(record: &TraceRecord, counted_cpu_s: Option<f64>) -> Option<Finding> {
    let figures = &record.figures;
    let misses = |bound| figures.lower_bounds.contains(&bound);
    let misses_cpu = misses(LowerBound::CpuTime) && counted_cpu_s.is_none();
    let held_s = figures.throttled.as_ref().map_or(0.0, |held| held.seconds);
    let cpu_s = figures.totals.cpu_s.max(counted_cpu_s.unwrap_or(0.0));
    let awake_s = cpu_s + figures.waits.total_s? + held_s;
    let share = 1.0 - awake_s / record.elapsed_s;
    let is_command = matches!(record.source, TraceSource::Command { .. });
    if is_command && record.elapsed_s < MIN_BLOCKED_S {
        return None;
    }
    let advice = advise_waits(record)?;
    let bound = match percent(share).as_str() {
        "100 %" => "",
        _ if misses_cpu || misses(LowerBound::Queued) => "about ",
        _ => "at least ",
    };
    let (severity, weight) = match share {
        share if share >= MOSTLY_BLOCKED => (Severity::Warning, 9),
        share if share >= PARTLY_BLOCKED => (Severity::Note, 4),
        _ => return None,
    };
    let sentence = format!(
        "All threads were blocked for {bound}{} of the time, {}.",
        percent(share),
        waiters::describe_reasons(&record.blocked)
    );
    let wakers = waiters::describe_wakers(&record.blocked, &record.threads);
    let sentence = wakers.map_or(sentence.clone(), |wakers| format!("{sentence} {wakers}"));
    let finding = Finding::new("blocked", severity, sentence, advice)
        .with_weight(weight)
        .with_evidence("share", share);
    Some(finding)
}

/// How to see more of what a program waits for.
pub(super) fn advise_waits(record: &TraceRecord) -> Option<String> {
    advise_runtime(record).or_else(|| advise_calls(record))
}

/// How to see what the threads of a runtime wait for, which its system calls do not show; and how
/// to continue a process that is stopped.
pub(super) fn advise_runtime(record: &TraceRecord) -> Option<String> {
    // Of a command, the process is gone by now.
    let pid = match record.source {
        TraceSource::Process { pid, .. } => pid.to_string(),
        TraceSource::Command { .. } => "PID, while it runs".to_owned(),
        TraceSource::Machine | TraceSource::Import { .. } => return None,
    };
    let first = split_blocked(record).into_iter().next();
    match first {
        Some((BlockedIn::Stopped, _)) => Some(format!(
            "Continue it: kill -CONT {pid}, or detach the debugger."
        )),
        Some((BlockedIn::PageFault, _)) => Some(format!(
            "Give it more memory, or let it use less; whether it is swapped out: grep VmSwap /proc/{pid}/status; what fills the memory: ps -eo pid,rss,comm --sort -rss | head"
        )),
        _ if is_at_gil(record) => Some(format!(
            "The lines that hold it: py-spy top --gil --pid {pid} {GET_PY_SPY}"
        )),
        _ if is_python(record) => Some(format!(
            "The lines that wait: py-spy dump --pid {pid} {GET_PY_SPY}"
        )),
        _ if is_go(record) => {
            let target = record.source.target()?;
            Some(format!(
                "Where goroutines wait: its goroutine profile (net/http/pprof, /debug/pprof/goroutine?debug=1); what they run: pinwise profile {target}"
            ))
        }
        _ if is_java(record) => Some(format!("The stacks of its threads: jcmd {pid} Thread.print")),
        _ if is_postgres(record) => Some(
            "What its backends wait for: SELECT pid, wait_event_type, wait_event, query FROM pg_stat_activity;"
                .to_owned(),
        ),
        _ => None,
    }
}

/// How to see in which calls a program waits: of each of its processes, since `strace` attaches to no
/// children that exist already.
pub(super) fn advise_calls(record: &TraceRecord) -> Option<String> {
    let target: String = match &record.source {
        TraceSource::Process { pid, .. } => {
            // Those that were there for most of the time may still be there.
            let looks = |seen: &BlockedRecord| seen.threads.iter().map(|one| one.looks).max();
            let most = record.blocked.iter().filter_map(looks).max();
            let lasts = |seen: &&BlockedRecord| looks(seen).map(|looks| 2 * looks) >= most;
            let others = record.blocked.iter().filter(lasts).map(|seen| seen.process);
            let others = others.filter(|process| process != pid);
            let all = std::iter::once(*pid).chain(others).take(MAX_PROCESSES);
            all.map(|process| format!(" -p {process}")).collect()
        }
        TraceSource::Command { command, .. } => {
            let line = shell::line(command);
            let (what, sums) = match never_return(record) {
                true => ("The calls that do not return", ""),
                false => ("Each call with its time", "-c -w "),
            };
            return Some(format!("{what}: strace -f {sums}{line}"));
        }
        TraceSource::Machine | TraceSource::Import { .. } => return None,
    };
    if never_return(record) {
        return Some(format!(
            "The calls that do not return: timeout 5 strace -f{target}"
        ));
    }
    let perf = target.replace(" -p ", ",").replacen(',', " -p ", 1);
    Some(format!(
        "Each call with its time: timeout 5 strace -f -c -w{target}, or perf trace -s{perf}"
    ))
}

/// Do most looks at blocked threads find such that never left their call? Sums of calls that returned
/// lack these.
fn never_return(record: &TraceRecord) -> bool {
    let never_ran = list_never_run(record);
    let threads = || list_active(&record.blocked);
    let stuck = threads().filter(|seen| never_ran.contains(&seen.thread));
    let stuck: u64 = stuck.map(|seen| seen.looks).sum();
    2 * stuck > threads().map(|seen| seen.looks).sum()
}

/// Threads that were blocked all the time.
fn list_never_run(record: &TraceRecord) -> BTreeSet<i32> {
    let threads = record.threads.iter();
    let never_ran = threads.filter(|one| one.cpu_s <= 0.0 && one.switches == Some(0));
    never_ran.map(|one| one.thread).collect()
}

/// What threads were blocked in, as far as that is known, as shares of the time blocked, the largest
/// first; empty if there were too few looks. Who awaits the end of others does not count.
pub(super) fn split_blocked(record: &TraceRecord) -> Vec<(BlockedIn, f64)> {
    let mut parts = waiters::sum_active(&record.blocked);
    parts.retain(|part| part.what != BlockedIn::Thread);
    let all: u64 = parts.iter().map(|part| part.looks).sum();
    if all < MIN_LOOKS {
        return Vec::new();
    }
    parts.retain(|part| match part.what {
        BlockedIn::Unknown => false,
        BlockedIn::Mutex => part.looks >= MIN_LOOKS,
        _ => true,
    });
    let parts = parts.into_iter();
    parts
        .map(|part| (part.what, part.looks as f64 / all as f64))
        .collect()
}

/// Time that threads waited for a lock, as a share of the time of those that did anything at all.
/// Polls say what they waited for, the scheduler's events for how long.
pub(super) fn find_lock_waits(record: &TraceRecord) -> Option<Finding> {
    let figures = &record.figures;
    let mut parts = split_blocked(record).into_iter();
    let (_, lock_share) = parts.find(|(what, _)| *what == BlockedIn::Mutex)?;
    let lock_s = blocked_s(figures)? * lock_share;
    let severity = severity_of(figures, lock_s)?;
    let who = match waiters::name_waiters(&record.blocked, &BlockedIn::Mutex) {
        none if none.is_empty() => none,
        who => format!(": {who}"),
    };
    let mut sentence = format!(
        "Threads waited about {} for a lock{}{who}.",
        describe_time(figures, lock_s),
        waiters::name_places(&record.blocked, &BlockedIn::Mutex),
    );
    if let Some(wakers) = waiters::describe_wakers(&record.blocked, &record.threads) {
        sentence = format!("{sentence} {wakers}");
    }
    let held_in = find_holder_wait(record);
    if let Some(held_in) = &held_in {
        let held_in = held_in.as_ref().map_or_else(String::new, |what| {
            let place = waiters::name_places(&record.blocked, what);
            format!(", mostly for {}{place}", what.words())
        });
        sentence = format!("{sentence} Whoever holds it waits meanwhile{held_in}.");
    }
    let locked_out = count_locked_out(record);
    let advice = match held_in {
        // Nobody holds it for a while, then.
        _ if is_deadlock(record) => String::new(),
        _ if locked_out > 0 => {
            let perhaps = if locked_out > 1 {
                ": perhaps a deadlock"
            } else {
                ""
            };
            sentence = format!(
                "{sentence} {} never got it{perhaps}.",
                count(locked_out, "thread")
            );
            format!("Who holds it: {}", write_stacks_command(record))
        }
        _ if is_java(record) => {
            format!("Who holds it, and where: {}", write_stacks_command(record))
        }
        Some(_) => "Do not sleep or wait while holding the lock, or split it.".to_owned(),
        None => "Hold the lock for less, or split it.".to_owned(),
    };
    let finding = Finding::new("lock_waits", severity, sentence, advice).with_weight(9);
    Some(
        finding
            .with_evidence("seconds", lock_s)
            .with_evidence("locked_out", locked_out)
            .with_evidence("share", figures.share_of_threads(lock_s)),
    )
}

/// Threads that waited for a lock whenever they were looked at, and never ran: they are part of a
/// deadlock, or wait for somebody who keeps the lock.
fn count_locked_out(record: &TraceRecord) -> usize {
    let never_ran = list_never_run(record);
    let at_lock = list_active(&record.blocked)
        .filter(|seen| seen.looks >= MIN_LOOKS && share_in(seen, &BlockedIn::Mutex) >= 1.0);
    at_lock
        .filter(|seen| never_ran.contains(&seen.thread))
        .count()
}

/// How many threads the finding on locks names that never got one.
pub(super) fn locked_out(record: &TraceRecord) -> u64 {
    let mut findings = record.findings.iter();
    let found = findings.find(|finding| finding.check == "lock_waits");
    let many = found.and_then(|finding| finding.evidence.get("locked_out"));
    many.and_then(serde_json::Value::as_u64).unwrap_or(0)
}

/// The command that prints the stacks of all threads, to see who holds a lock.
pub(super) fn write_stacks_command(record: &TraceRecord) -> String {
    let pid = write_pid(record);
    match is_java(record) {
        true => format!("jcmd {pid} Thread.print"),
        false => format!("gdb -p {pid} -batch -ex 'thread apply all bt'"),
    }
}

/// The process in a command to copy; that of a command is gone by now.
pub(super) fn write_pid(record: &TraceRecord) -> String {
    match record.source {
        TraceSource::Process { pid, .. } => pid.to_string(),
        _ => "PID".to_owned(),
    }
}

/// What the holder of a lock waits for itself, if that is why others wait for the lock; the inner
/// value is `None` if that differs. While a thread waits for it another one has it: if all together
/// were awake for less than that, the holder was blocked for the rest.
fn find_holder_wait(record: &TraceRecord) -> Option<Option<BlockedIn>> {
    let times = LockTimes::read(record)?;
    let is_awake = times.waited_s - times.awake_s < HELD_BLOCKED * times.waited_s;
    if times.waited_s <= 0.0 || is_awake || times.is_deadlock() {
        return None;
    }
    let at_lock = list_active(&record.blocked);
    let at_lock = at_lock.filter(|thread| share_in(thread, &BlockedIn::Mutex) > 0.0);
    let mut parts = waiters::sum_parts(at_lock);
    parts.retain(|part| !matches!(part.what, BlockedIn::Mutex | BlockedIn::Thread));
    let looks: u64 = parts.iter().map(|part| part.looks).sum();
    let first = parts.into_iter().next();
    let first = first.filter(|part| part.what != BlockedIn::Unknown);
    let first = first.filter(|part| part.looks as f64 >= HELD_IN * looks as f64);
    Some(first.map(|part| part.what))
}

/// Who may have held locks, seconds.
struct LockTimes {
    /// All threads ran, were queued or were held back by a quota.
    awake_s: f64,
    /// The thread that waited for locks the longest did so.
    waited_s: f64,
    /// All threads waited for anything else but the end of a thread: who awaits that hardly holds a
    /// lock.
    elsewhere_s: f64,
}

impl LockTimes {
    /// `None` if the time queued is not known.
    fn read(record: &TraceRecord) -> Option<Self> {
        let figures = &record.figures;
        let held_back_s = figures.throttled.as_ref().map_or(0.0, |held| held.seconds);
        let all = || record.blocked.iter().flat_map(|seen| &seen.threads);
        let most_looks = all().map(|thread| thread.looks).max().unwrap_or(0).max(1);
        let blocked_s = |thread: &BlockedThread| {
            let mut threads = record.threads.iter();
            let known = threads.find(|one| one.thread == thread.thread);
            let awake_s = known.map_or(0.0, |one| one.cpu_s + one.wait_s.unwrap_or(0.0));
            // Of a thread that lived for a part of the trace there are fewer looks.
            let lived = thread.looks as f64 / most_looks as f64;
            lived * (record.elapsed_s - awake_s).max(0.0)
        };
        let waits = list_active(&record.blocked)
            .map(|thread| blocked_s(thread) * share_in(thread, &BlockedIn::Mutex));
        let elsewhere = all().map(|thread| {
            let share = share_in(thread, &BlockedIn::Mutex) + share_in(thread, &BlockedIn::Thread);
            blocked_s(thread) * (1.0 - share)
        });
        Some(Self {
            awake_s: figures.totals.cpu_s + figures.waits.total_s? + held_back_s,
            waited_s: waits.fold(0.0, f64::max),
            elsewhere_s: elsewhere.sum(),
        })
    }

    /// Can nobody have held the lock that a thread waited for? Who holds one is awake meanwhile, or
    /// waits for something else: all threads together did so for less than half of that time.
    fn is_deadlock(&self) -> bool {
        self.waited_s >= MIN_DEADLOCK_S
            && self.awake_s + self.elsewhere_s < HELD_BLOCKED * self.waited_s
    }
}

/// Can nobody have held the lock that a thread waited for?
pub(super) fn is_deadlock(record: &TraceRecord) -> bool {
    LockTimes::read(record).is_some_and(|times| times.is_deadlock())
}

/// The busiest thread that keeps giving up its CPU and hardly blocks: only a loop around `sched_yield`
/// looks like that.
pub(super) fn find_yielding(record: &TraceRecord) -> Option<Finding> {
    // The runtime of Go yields by itself.
    if is_go(record) {
        return None;
    }
    let rate = |thread: &ThreadRecord| {
        let (blocking, preemptions) = (count_blocking(thread)? as f64, thread.preemptions?);
        let rate = preemptions as f64 / thread.cpu_s;
        let yields = rate >= YIELDS_PER_CPU_SECOND
            && !hands_over(record, thread.thread, preemptions)
            && blocking <= MAX_BLOCKING_SHARE * preemptions as f64
            && preemptions >= MIN_YIELDS
            && 2 * count_wakes_by(record, thread.thread) < preemptions;
        yields.then_some(rate)
    };
    let yielding = record.threads.iter().filter_map(|t| Some((t, rate(t)?)));
    let (thread, rate) = yielding.max_by(|a, b| a.0.cpu_s.total_cmp(&b.0.cpu_s))?;
    let target = record
        .source
        .target()
        .unwrap_or_else(|| format!("--pid {}", thread.process.unwrap_or(thread.thread)));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate"
    )]
    let rate = rate as u64;
    let sentence = format!(
        "{} gave up the CPU {} times per second of its {} of CPU time and next to never blocked: it waits by yielding (sched_yield in a loop).",
        thread.name,
        grouped(rate),
        seconds(thread.cpu_s),
    );
    let advice = format!("What it spins on: pinwise spin attach {target}");
    Some(
        Finding::new("yielding", Severity::Warning, sentence, advice)
            .with_weight(7)
            .with_evidence("yields_per_cpu_second", rate as f64)
            .with_evidence("share", record.figures.share_of_threads(thread.cpu_s))
            .with_evidence("thread", thread.thread),
    )
}

/// How often a thread left its CPU by itself; `None` if switches are not seen.
fn count_blocking(thread: &ThreadRecord) -> Option<u64> {
    Some(thread.switches?.saturating_sub(thread.preemptions?))
}

/// Does another thread block about as often as this one is preempted? It wakes that one, which then
/// takes its CPU, as a writer does to the reader of a pipe.
fn hands_over(record: &TraceRecord, thread: i32, preemptions: u64) -> bool {
    let others = record.threads.iter().filter(|one| one.thread != thread);
    others.filter_map(count_blocking).sum::<u64>() >= preemptions / 2
}

/// How often this thread woke others of its process, at least: each may have taken its CPU.
fn count_wakes_by(record: &TraceRecord, thread: i32) -> u64 {
    let woken = record.blocked.iter().flat_map(|seen| &seen.threads);
    let wakers = woken.flat_map(|woken| &woken.woken_by);
    let by_it = wakers.filter(|waker| waker.thread == thread);
    by_it.map(|waker| waker.times).sum()
}

/// How to find out whether its threads spin, if they may.
pub(super) fn advise_spin_attach(record: &TraceRecord) -> Option<String> {
    let target = record.source.target()?;
    let awake = count_never_blocking(record);
    (awake > 1).then(|| {
        format!(
            "{} never block; whether they spin: pinwise spin attach {target}",
            match awake == record.threads.len() {
                true => "Its threads".to_owned(),
                false => format!("{awake} of its threads"),
            }
        )
    })
}

/// Is there a thread that computes or spins all the time?
pub(super) fn never_blocks(record: &TraceRecord) -> bool {
    count_never_blocking(record) > 0
}

/// Threads that the scheduler alone took off their CPUs for the whole of a trace compute
/// or spin: it cannot tell one from the other.
pub(super) fn find_never_blocking(record: &TraceRecord) -> Option<Finding> {
    let target = record.source.target()?;
    let awake = count_never_blocking(record);
    (awake > 1).then(|| {
        let sentence = format!("{awake} threads never blocked: they compute, or spin.");
        let advice = format!("Which of the two: pinwise spin attach {target}");
        Finding::new("never_blocking", Severity::Note, sentence, advice)
            .with_weight(2)
            .with_evidence("threads", awake)
    })
}

/// Was this thread ready or running for nearly all the time?
pub(super) fn is_awake(record: &TraceRecord, thread: &ThreadRecord) -> bool {
    thread.cpu_s + thread.wait_s.unwrap_or(0.0) >= AWAKE * record.elapsed_s
}

/// Threads that were ready or running all the time; 0 if the trace is too short to know.
fn count_never_blocking(record: &TraceRecord) -> usize {
    if record.elapsed_s < MIN_AWAKE_S {
        return 0;
    }
    let never_blocks = |thread: &&ThreadRecord| {
        is_awake(record, thread)
            && count_blocking(thread)
                .is_some_and(|many| (many as f64) < RARE_PER_SECOND * record.elapsed_s)
    };
    record.threads.iter().filter(never_blocks).count()
}

#[cfg(test)]
mod tests;
