//! What to do about the largest cause, as a sentence with a command to copy.

use super::super::blocking::{
    advise_calls, advise_runtime, advise_spin_attach, advise_waits, never_blocks, write_pid,
    write_stacks_command,
};
use super::super::runtimes::is_local_socket;
use super::cause::{Cause, QueuedBy, Times};
use super::{RUNS, find_mask, find_nice, find_server, runs_requests};
use pinwise_record::{BlockedIn, TraceRecord, TraceSource, TraceTier};

/// What to do about it: the advice of the finding on it, or how to see more.
pub(super) fn advise(record: &TraceRecord, times: &Times, cause: &Cause<'_>) -> String {
    let checks = list_checks(record, times, cause);
    let advised = checks.iter().find_map(|check| find_advice(record, check));
    // What does not exist has no functions.
    let is_simulated = record.tier == TraceTier::Simulated;
    let more = match cause {
        Cause::Queued(by) => advise_on_queue(record, times, *by),
        _ if is_simulated => None,
        Cause::Work if times.is_much_at_lock() || advised.is_some() && times.is_much_queued() => {
            let first = match times.is_much_at_lock() {
                true => find_advice(record, "lock_waits"),
                false => advised,
            };
            let profile = advise_profile(record, "its", "");
            let said: Vec<String> = first.into_iter().chain(profile).collect();
            return said.join(" ");
        }
        _ if advised.is_some() => None,
        Cause::Work => advise_profile_or_spin(record, "its", ""),
        Cause::OneThread(thread) | Cause::BusyThread(thread) => {
            // Children are profiled by themselves.
            let is_own = matches!(record.source, TraceSource::Process { pid, .. } if thread.process == Some(pid));
            let option = match is_own {
                true => format!(" --thread {}", thread.thread),
                false => String::new(),
            };
            advise_profile_or_spin(record, "that thread's", &option)
        }
        Cause::Turns => advise_on_threads(record),
        Cause::Starting(_) => advise_on_starts(record),
        Cause::Waiting(what) => advise_on_wait(record, times, what),
        Cause::Deadlock => Some(format!("All stacks: {}", write_stacks_command(record))),
        Cause::Blocked | Cause::Lock => advise_waits(record),
        Cause::SharedCores(_) | Cause::Memory(_) => None,
        Cause::Collection(_) => Some(format!(
            "Give it a larger heap (-Xmx), or allocate less; what fills the heap: jcmd {} GC.class_histogram",
            write_pid(record)
        )),
    };
    let said: Vec<String> = advised.into_iter().chain(more).collect();
    said.join(" ")
}

/// The findings that may have the advice, by name.
fn list_checks(record: &TraceRecord, times: &Times, cause: &Cause<'_>) -> Vec<&'static str> {
    let by = match cause {
        Cause::Queued(by) => Some(*by),
        Cause::Work if times.is_much_queued() => Some(QueuedBy::second_cause(record, times)),
        Cause::OneThread(thread) | Cause::BusyThread(thread)
            if thread.wait_s.unwrap_or(0.0) > thread.cpu_s =>
        {
            Some(QueuedBy::main_cause(record))
        }
        _ => None,
    };
    match (by, cause) {
        (Some(by), _) => vec![by.check(), "queued", "other_processes"],
        (None, Cause::Work) => vec!["yielding"],
        (None, Cause::SharedCores(_)) => vec!["avoidable_smt_sharing"],
        (None, Cause::Memory(_)) => vec!["memory_limit"],
        (None, Cause::Lock) => vec!["lock_waits"],
        (None, Cause::Waiting(BlockedIn::Child)) => Vec::new(),
        (None, Cause::Waiting(what))
            if find_server(record, what).is_some() || runs_requests(record, times, what) =>
        {
            Vec::new()
        }
        (None, Cause::Waiting(_) | Cause::Blocked) => vec!["blocked"],
        (None, _) => Vec::new(),
    }
}

fn advise_on_queue(record: &TraceRecord, times: &Times, by: QueuedBy) -> Option<String> {
    match by {
        QueuedBy::Others if find_mask(record).is_some() => {
            Some(format!("Or allow it more CPUs: {}", write_taskset(record)?))
        }
        QueuedBy::OwnThreads if find_mask(record).is_some() => {
            Some(format!("With a command: {}", write_taskset(record)?))
        }
        QueuedBy::Others if find_nice(record).is_some() => Some(format!(
            "Or let it yield less: renice -n 0 -p {}",
            write_pid(record)
        )),
        // Its command is enough.
        QueuedBy::Quota => None,
        _ if times.is_much_at_lock() => find_advice(record, "lock_waits"),
        // Who cannot stop others can still shorten what it does itself.
        QueuedBy::Others if !never_blocks(record) && times.ran_s >= RUNS * times.all_s() => {
            advise_profile(record, "its own", "")
        }
        QueuedBy::OwnThreads => advise_profile_or_spin(record, "its", ""),
        _ => advise_spin_attach(record),
    }
}

/// How to see which programs are started.
fn advise_on_starts(record: &TraceRecord) -> Option<String> {
    let target = record.source.target()?.replace("--pid", "-p");
    Some(format!(
        "Do more in one process. Which programs it starts: timeout 5 strace -f -e trace=execve {target}"
    ))
}

/// What to do about threads that wait for each other.
fn advise_on_threads(record: &TraceRecord) -> Option<String> {
    advise_runtime(record).or_else(|| advise_profile(record, "their", ""))
}

fn advise_on_wait(record: &TraceRecord, times: &Times, what: &BlockedIn) -> Option<String> {
    match (what, find_server(record, what)) {
        (BlockedIn::Condition | BlockedIn::Lock, _) => advise_on_threads(record),
        (BlockedIn::Child, _) if times.ran_s < RUNS * times.all_s() => advise_calls(record),
        (BlockedIn::Child, _) => advise_profile(record, "its children's", ""),
        (_, Some(server)) if is_local_socket(server) => Some(format!(
            "Look at the program that answers at {server}, which is named by: ss -xlp src {server}"
        )),
        (_, Some(server)) => Some(format!(
            "Look at what answers at {server}; the connections: ss -tunp dst {server}"
        )),
        (_, None) if runs_requests(record, times, what) => advise_profile(record, "its", ""),
        (_, None) => advise_waits(record),
    }
}

/// How to see what runs, and whether it spins if that may be.
fn advise_profile_or_spin(record: &TraceRecord, whose: &str, options: &str) -> Option<String> {
    let profile = advise_profile(record, whose, options)?;
    Some(match record.source.target() {
        Some(target) if never_blocks(record) => {
            format!("{profile}; whether it spins: pinwise spin attach {target}")
        }
        _ => profile,
    })
}

/// The advice of the finding with this name.
fn find_advice(record: &TraceRecord, check: &str) -> Option<String> {
    let mut findings = record.findings.iter();
    let found = findings.find(|finding| finding.check == check && !finding.advice.is_empty())?;
    Some(found.advice.clone())
}

/// The command that gives a process the CPUs that its mask keeps it from.
fn write_taskset(record: &TraceRecord) -> Option<String> {
    let TraceSource::Process { pid, .. } = record.source else {
        return None;
    };
    let last = record.host.counts.cpus.checked_sub(1)?;
    Some(format!("taskset -a -cp 0-{last} {pid}"))
}

fn advise_profile(record: &TraceRecord, whose: &str, options: &str) -> Option<String> {
    let target = record.source.target()?;
    Some(format!(
        "See where {whose} CPU time goes: pinwise profile {target}{options}"
    ))
}
