//! Recognises the runtime that a program runs in, by the functions in which its threads wait and by
//! the names of those that the runtime starts itself.

use std::net::SocketAddr;

use pinwise_record::TraceRecord;
use pinwise_sched::{BlockedIn, BlockedProcess, BlockedThread, DATABASE_LOCK, GO_SCHEDULER};

/// The function of Python that takes the lock inside its locks, conditions, events and queues.
pub(super) const TAKES_PYTHON_LOCK: &str = "PyThread_acquire_lock_timed";
/// The function of Python that takes its global lock.
pub(super) const TAKES_GIL: &str = "take_gil";
/// Ends the place of a thread that waits for the next connection to its socket.
pub(super) const NEW_CONNECTIONS: &str = "(new connections)";
/// Threads of runtimes that serve the program's own threads, by the start of their names: those of
/// the Java virtual machine but for its collector, and of .NET.
const SERVICE_THREADS: [&str; 19] = [
    "C1 CompilerThre",
    "C2 CompilerThre",
    "Common-Cleaner",
    "Finalizer",
    "G1 Service",
    "Monitor Deflati",
    "Notification Th",
    "Reference Handl",
    "Service Thread",
    "Signal Dispatch",
    "VM Periodic Tas",
    "VM Thread",
    ".NET EventPipe",
    ".NET Finalizer",
    ".NET SigHandler",
    ".NET SynchManag",
    ".NET TP Gate",
    ".NET Tiered Com",
    ".NET Timer",
];
/// Threads of collectors of the Java virtual machine. The serial collector works in `VM Thread`, as
/// other operations do.
const COLLECTORS: [&str; 7] = [
    "GC Thread#",
    "G1 Conc#",
    "G1 Main Marker",
    "G1 Refine#",
    "Shenandoah",
    "XWorker",
    "ZWorker",
];
/// Threads of the pool of Node.js wait there for work.
const POOL_OF_NODE: &str = "uv_cond_wait";

/// CPU time of the threads of the Java virtual machine that collect garbage, seconds.
pub(super) fn collector_cpu_s(record: &TraceRecord) -> f64 {
    let threads = record.threads.iter();
    let collectors = threads.filter(|thread| is_collector(&thread.name));
    collectors.map(|thread| thread.cpu_s).sum()
}

/// Does this thread of a Java virtual machine collect garbage?
pub(crate) fn is_collector(name: &str) -> bool {
    COLLECTORS.iter().any(|start| name.starts_with(start))
}

/// Tells threads whose waiting says nothing about the program: those of its runtime and, while one
/// backend of PostgreSQL waits for a lock, those that wait for events such as a client's request.
pub(super) fn find_uninvolved(
    blocked: &[BlockedProcess],
) -> impl Fn(&BlockedThread) -> bool + use<> {
    let is_locked = |seen: &BlockedThread| {
        let mut places = seen.places.keys();
        places.any(|(_, place)| **place == *DATABASE_LOCK)
    };
    let mut all = blocked.iter().flat_map(|seen| seen.threads.values());
    let has_lock = all.any(is_locked);
    move |seen| {
        let mut whats = seen.looks.keys();
        let is_at_events = whats.all(|what| *what == BlockedIn::Events);
        is_of_runtime(seen) || has_lock && !is_locked(seen) && is_at_events
    }
}

/// Does a thread that hardly runs wait for what nobody idle waits for: a lock, or the answer of a
/// server in a call that waits for that alone?
pub(super) fn is_stuck(seen: &BlockedThread) -> bool {
    let is_lock = |what: &BlockedIn| matches!(what, BlockedIn::Mutex | BlockedIn::FileLock);
    let locks = seen.looks.iter().filter(|(what, _)| is_lock(what));
    let at_lock: u64 = locks.map(|(_, looks)| looks).sum();
    let is_of_other = |what: &BlockedIn, place: &str| {
        place == DATABASE_LOCK || *what == BlockedIn::Socket && is_server(place)
    };
    let others = seen
        .places
        .iter()
        .filter(|((what, place), _)| is_of_other(what, place));
    let at_other: u64 = others.map(|(_, looks)| looks).sum();
    2 * (at_lock + at_other) > seen.looks.values().sum()
}

/// Is it a server that is waited for: an address, or the name of a Unix-domain socket?
pub(super) fn is_server(place: &str) -> bool {
    is_local_socket(place) || place.parse::<SocketAddr>().is_ok()
}

/// Is it the name of a Unix-domain socket that does not listen, a path or an abstract one?
pub(super) fn is_local_socket(place: &str) -> bool {
    place.starts_with(['/', '@']) && !place.ends_with(NEW_CONNECTIONS)
}

fn is_of_runtime(seen: &BlockedThread) -> bool {
    let mut places = seen.places.keys();
    is_collector(&seen.name)
        || SERVICE_THREADS
            .iter()
            .any(|start| seen.name.starts_with(start))
        || !seen.places.is_empty() && places.all(|(_, place)| place.starts_with(POOL_OF_NODE))
}

/// Is it a program in Go? The kernel shows its threads, not its goroutines.
pub(super) fn is_go(record: &TraceRecord) -> bool {
    has_place(record, |place| place == GO_SCHEDULER)
}

/// Do threads of Python wait for its global lock?
pub(super) fn is_at_gil(record: &TraceRecord) -> bool {
    has_place(record, |place| place.starts_with(TAKES_GIL))
}

/// Is it a process of PostgreSQL?
pub(super) fn is_postgres(record: &TraceRecord) -> bool {
    record
        .threads
        .iter()
        .any(|thread| thread.name == "postgres")
}

/// Does it run in a Java virtual machine?
pub(super) fn is_java(record: &TraceRecord) -> bool {
    has_place(record, |place| place.contains("(libjvm.so)"))
        || record
            .threads
            .iter()
            .any(|thread| thread.name == "VM Thread")
}

/// Does it run in Python's interpreter?
pub(super) fn is_python(record: &TraceRecord) -> bool {
    let starts = [TAKES_GIL, TAKES_PYTHON_LOCK];
    let mut threads = record.threads.iter();
    threads.any(|thread| thread.name.starts_with("python"))
        || has_place(record, |place| {
            place.contains("libpython") || starts.iter().any(|start| place.starts_with(start))
        })
}

fn has_place(record: &TraceRecord, is_it: impl Fn(&str) -> bool) -> bool {
    let threads = record.blocked.iter().flat_map(|seen| &seen.threads);
    let mut places = threads.flat_map(|thread| &thread.places);
    places.any(|at| is_it(&at.place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(name: &str, what: BlockedIn, place: &str) -> BlockedThread {
        BlockedThread {
            name: name.to_owned(),
            looks: [(what, 9)].into(),
            places: [((what, place.into()), 9)].into(),
        }
    }

    fn list_involved(threads: &[BlockedThread]) -> Vec<bool> {
        let threads = (1..).zip(threads.iter().cloned());
        let seen = BlockedProcess {
            threads: threads.clone().collect(),
            ..BlockedProcess::default()
        };
        let is_uninvolved = find_uninvolved(&[seen]);
        threads.map(|(_, thread)| !is_uninvolved(&thread)).collect()
    }

    #[test]
    fn threads_of_a_runtime_have_no_part() {
        let parks = "os::PlatformMonitor::wait(long) (libjvm.so)";
        let java = [
            thread("C2 CompilerThre", BlockedIn::Condition, parks),
            thread(
                "GC Thread#1",
                BlockedIn::Condition,
                "PosixSemaphore::wait() (libjvm.so)",
            ),
            thread("pool-1-thread-1", BlockedIn::Condition, parks),
        ];
        assert_eq!(list_involved(&java), [false, false, true]);
        let node = [
            thread("node", BlockedIn::Events, "10.0.0.7:5432"),
            thread("node", BlockedIn::Condition, "uv_cond_wait"),
        ];
        assert_eq!(list_involved(&node), [true, false]);
    }

    #[test]
    fn who_waits_for_a_lock_or_an_answer_is_stuck_and_who_waits_for_work_is_not() {
        let stuck = |what, place| is_stuck(&thread("worker", what, place));
        assert!(stuck(BlockedIn::Mutex, "update"));
        assert!(stuck(BlockedIn::FileLock, ""));
        assert!(stuck(BlockedIn::Events, DATABASE_LOCK));
        assert!(stuck(BlockedIn::Socket, "10.0.0.7:5432"));
        assert!(stuck(BlockedIn::Socket, "/run/postgresql/.s.PGSQL.5432"));
        assert!(!stuck(BlockedIn::Socket, "/run/own (new connections)"));
        assert!(!stuck(BlockedIn::Socket, "clients of port 80"));
        assert!(!stuck(BlockedIn::Events, "10.0.0.7:5432"));
        assert!(!stuck(BlockedIn::Condition, "take"));
        assert!(!stuck(BlockedIn::Timer, "main"));
    }

    #[test]
    fn backends_without_a_part_in_the_wait_for_a_lock_are_left_out() {
        let idle = thread("postgres", BlockedIn::Events, "clients of this backend");
        let waits = thread("postgres", BlockedIn::Events, DATABASE_LOCK);
        let writes = thread("postgres", BlockedIn::Disk, "");
        assert_eq!(list_involved(&[idle.clone(), idle.clone()]), [true, true]);
        assert_eq!(list_involved(&[idle, waits, writes]), [false, true, true]);
    }
}
