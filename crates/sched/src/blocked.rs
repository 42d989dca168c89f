//! What threads are blocked in, by polling. It knows no system call: the poller says what a call
//! waits for.

use std::collections::BTreeMap;

use super::Tid;

/// What a blocked thread waits for, by its system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockedIn {
    /// `futex`: a lock, a condition variable, another thread's end.
    Lock,
    /// `futex` as a mutex calls it.
    Mutex,
    /// `futex` as a condition variable calls it, a semaphore, or who awaits a thread's end.
    Condition,
    /// `futex` of a thread's end: `pthread_join`.
    Thread,
    /// `poll`, `epoll_wait`, `select` and similar: any of several things.
    Events,
    /// `nanosleep`.
    Timer,
    /// A disk or another device: uninterruptible.
    Disk,
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
    /// The same of single threads, of a thousand at most.
    pub threads: BTreeMap<Tid, BlockedThread>,
}

/// What a thread was blocked in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockedThread {
    /// Its name.
    pub name: String,
    /// How many polls found each reason.
    pub looks: BTreeMap<BlockedIn, u64>,
    /// How many found it in a known place of its program, of twenty at most.
    pub places: BTreeMap<(BlockedIn, Box<str>), u64>,
}

impl BlockedProcess {
    /// Polls that found one of its threads blocked.
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
    /// A poll found a thread of this name blocked, in this place of its program.
    pub(crate) fn add(
        &mut self,
        process: Tid,
        thread: Tid,
        name: &str,
        what: BlockedIn,
        place: Option<&str>,
    ) {
        if self.by_process.len() >= MAX_PROCESSES && !self.by_process.contains_key(&process) {
            // Long-blocked processes were polled more often.
            let kept = self.take_ranked().into_iter().take(MAX_PROCESSES / 2);
            self.by_process = kept.map(|seen| (seen.process, seen)).collect();
        }
        let seen = self.by_process.entry(process).or_default();
        seen.process = process;
        if seen.name.is_empty() || thread == process {
            name.clone_into(&mut seen.name);
        }
        *seen.looks.entry(what).or_default() += 1;
        if seen.threads.len() < MAX_THREADS || seen.threads.contains_key(&thread) {
            let seen = seen.threads.entry(thread).or_default();
            name.clone_into(&mut seen.name);
            *seen.looks.entry(what).or_default() += 1;
            let Some(place) = place else { return };
            let key = (what, Box::from(place));
            if seen.places.len() < MAX_PLACES || seen.places.contains_key(&key) {
                *seen.places.entry(key).or_default() += 1;
            }
        }
    }

    /// The most often blocked first.
    pub(crate) fn take_ranked(&mut self) -> Vec<BlockedProcess> {
        let mut all: Vec<BlockedProcess> =
            std::mem::take(&mut self.by_process).into_values().collect();
        all.sort_by_key(|seen| (std::cmp::Reverse(seen.total()), seen.process));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_are_blocked_for_long_are_kept() {
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
