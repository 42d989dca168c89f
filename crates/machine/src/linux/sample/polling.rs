//! Reads the CPU time of threads from `/proc`. If perf is not permitted, this is all that is known:
//! what the threads execute is not guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::capture::read_file;
use super::super::trace::threads;
use pinwise_profile::Thread;

/// Threads and their CPU time since the sampling started.
#[derive(Debug)]
pub(super) struct Times {
    root: Option<i32>,
    threads: BTreeMap<i32, PolledThread>,
    /// Threads that the last poll found.
    last_found: BTreeSet<i32>,
}

#[derive(Debug)]
struct PolledThread {
    pid: i32,
    name: String,
    /// CPU time at the start of the sampling and at the last poll that found the thread.
    start_ns: u64,
    now_ns: u64,
}

impl Times {
    /// Watches a process and its descendants; `None` until a command is started.
    pub(super) fn new(root: Option<i32>) -> Self {
        let mut times = Self {
            root,
            threads: BTreeMap::new(),
            last_found: BTreeSet::new(),
        };
        times.poll();
        for thread in times.threads.values_mut() {
            thread.start_ns = thread.now_ns;
        }
        times
    }

    pub(super) const fn set_root(&mut self, pid: i32) {
        self.root = Some(pid);
    }

    pub(super) fn poll(&mut self) {
        let Some(root) = self.root else { return };
        self.last_found.clear();
        for thread in threads::list_threads_below(root) {
            let path = format!("/proc/{}/task/{}/schedstat", thread.process, thread.tid);
            let text = read_file(Path::new(&path)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let Some((run_ns, _)) = threads::parse_schedstat(&text) else {
                continue;
            };
            let polled = self
                .threads
                .entry(thread.tid)
                .or_insert_with(|| PolledThread {
                    pid: thread.process,
                    name: threads::read_name(thread.tid).unwrap_or_default().into(),
                    start_ns: 0,
                    now_ns: 0,
                });
            polled.now_ns = run_ns;
            self.last_found.insert(thread.tid);
        }
    }

    /// CPU time of a thread, s; `None` if it was never found. If it ended before the last poll, at
    /// least `sampled_ns`.
    pub(super) fn cpu_s(&self, tid: i32, sampled_ns: u64) -> Option<f64> {
        let thread = self.threads.get(&tid)?;
        let counted_ns = thread.now_ns.saturating_sub(thread.start_ns);
        let cpu_ns = match self.last_found.contains(&tid) {
            true => counted_ns,
            false => counted_ns.max(sampled_ns),
        };
        Some(cpu_ns as f64 * 1e-9)
    }

    /// All threads that were found.
    pub(super) fn threads(&self) -> Vec<Thread> {
        let threads = self.threads.iter().map(|(&tid, thread)| Thread {
            pid: thread.pid,
            tid,
            name: thread.name.clone(),
            cpu_s: self.cpu_s(tid, 0),
        });
        threads.collect()
    }
}
