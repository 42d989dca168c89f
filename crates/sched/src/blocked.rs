//! Counts what polls found threads blocked in. Which system call waits for what is the poller's
//! knowledge.

use std::collections::BTreeMap;

use super::Tid;

/// The place where threads of programs in Go wait, whatever their goroutines wait for.
pub const GO_SCHEDULER: &str = "Go's scheduler";

/// The place where a backend of PostgreSQL waits for a lock, whatever its system call is.
pub const DATABASE_LOCK: &str = "a row or table lock of PostgreSQL";

/// What a blocked thread waits for, by its system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockedIn {
    /// `futex`: a lock, a condition variable, another thread's end.
    Lock,
    /// `futex` as a mutex calls it, or a read-write lock.
    Mutex,
    /// `futex` as a condition variable, a semaphore or a wait for a thread's end calls it.
    Condition,
    /// `futex` as `pthread_join` calls it: the end of a thread.
    Thread,
    /// `poll`, `epoll_wait`, `select` and similar: any of several events.
    Events,
    /// `nanosleep`.
    Timer,
    /// A disk or another device: uninterruptible.
    Disk,
    /// Memory of its own that has to be read or freed first: a page fault, uninterruptible.
    PageFault,
    /// The other end of a pipe.
    Pipe,
    /// The other end of a socket.
    Socket,
    /// A terminal.
    Terminal,
    /// The end of a child, or its start of another program.
    Child,
    /// A signal.
    Signal,
    /// A lock of a file.
    FileLock,
    /// A signal to continue: it is stopped.
    Stopped,
    /// Another call, or no call.
    OtherCall,
    /// The kernel did not say.
    Unknown,
}

/// What the threads of a process were blocked in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockedProcess {
    /// The process.
    pub process: Tid,
    /// Its name, or that of one of its threads.
    pub name: String,
    /// How many polls of blocked threads found each reason.
    pub looks: BTreeMap<BlockedIn, u64>,
    /// The same for single threads, a thousand at most.
    pub threads: BTreeMap<Tid, BlockedThread>,
}

/// What a thread was blocked in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockedThread {
    /// Its name.
    pub name: String,
    /// How many polls found each reason.
    pub looks: BTreeMap<BlockedIn, u64>,
    /// How many found it in a known place of its program; twenty places at most.
    pub places: BTreeMap<(BlockedIn, Box<str>), u64>,
}

impl BlockedProcess {
    /// Number of polls that found one of its threads blocked.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.looks.values().sum()
    }
}

/// Limits the distinct processes, and the threads of each.
const MAX_PROCESSES: usize = 1_000;
const MAX_THREADS: usize = 1_000;
/// Limits the places of a thread.
const MAX_PLACES: usize = 20;

/// Polls of the blocked threads of all processes.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    by_process: BTreeMap<Tid, BlockedProcess>,
}

impl Blocked {
    /// Adds a poll that found a thread blocked, in this place of its program if known.
    pub(crate) fn add(
        &mut self,
        process: Tid,
        thread: Tid,
        name: &str,
        blocked_in: BlockedIn,
        place: Option<&str>,
    ) {
        if self.by_process.len() >= MAX_PROCESSES && !self.by_process.contains_key(&process) {
            // Keeps the processes that were found blocked most often.
            let kept = self.take_ranked().into_iter().take(MAX_PROCESSES / 2);
            self.by_process = kept.map(|kept| (kept.process, kept)).collect();
        }
        let of_process = self.by_process.entry(process).or_default();
        of_process.process = process;
        if of_process.name.is_empty() || thread == process {
            name.clone_into(&mut of_process.name);
        }
        *of_process.looks.entry(blocked_in).or_default() += 1;
        let threads = &mut of_process.threads;
        if threads.len() >= MAX_THREADS && !threads.contains_key(&thread) {
            return;
        }
        let of_thread = threads.entry(thread).or_default();
        name.clone_into(&mut of_thread.name);
        *of_thread.looks.entry(blocked_in).or_default() += 1;
        let Some(place) = place else { return };
        let key = (blocked_in, Box::from(place));
        if of_thread.places.len() < MAX_PLACES || of_thread.places.contains_key(&key) {
            *of_thread.places.entry(key).or_default() += 1;
        }
    }

    /// Removes and returns all processes, the most often blocked first.
    pub(crate) fn take_ranked(&mut self) -> Vec<BlockedProcess> {
        let mut processes: Vec<BlockedProcess> =
            std::mem::take(&mut self.by_process).into_values().collect();
        processes.sort_by_key(|one| (std::cmp::Reverse(one.total()), one.process));
        processes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_often_blocked_processes_are_kept() {
        let mut blocked = Blocked::default();
        for _ in 0..3 {
            blocked.add(7, 8, "worker", BlockedIn::Lock, Some("take"));
        }
        blocked.add(7, 7, "server", BlockedIn::Events, None);
        for process in 100..5_000 {
            blocked.add(process, process, "child", BlockedIn::Child, None);
        }
        let all = blocked.take_ranked();
        assert!(all.len() <= MAX_PROCESSES);
        assert_eq!((all[0].process, all[0].total()), (7, 4));
        assert_eq!(all[0].name, "server");
        let looks: Vec<(BlockedIn, u64)> = all[0].looks.clone().into_iter().collect();
        assert_eq!(looks, [(BlockedIn::Lock, 3), (BlockedIn::Events, 1)]);
        let worker = &all[0].threads[&8];
        assert_eq!(worker.name, "worker");
        assert_eq!(worker.looks.get(&BlockedIn::Lock), Some(&3));
        let at_take = worker.places.get(&(BlockedIn::Lock, Box::from("take")));
        assert_eq!(at_take, Some(&3));
    }
}
