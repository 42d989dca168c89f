//! CPU time of threads from `/proc`, if perf is not permitted.
//!
//! What they execute is unknown; nothing is invented for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::capture::read_file;
use super::super::trace::threads;
use pinwise_profile::Thread;

/// Threads and their CPU time since their first poll.
#[derive(Debug)]
pub(super) struct Times {
    root: Option<i32>,
    /// By thread: process, name, CPU time at the first and the last poll, ns.
    threads: BTreeMap<i32, (i32, String, u64, u64)>,
    /// Those that the last scan found.
    last: BTreeSet<i32>,
}

impl Times {
    /// Watches a process and its descendants; `None`: a command to be started.
    pub(super) fn new(root: Option<i32>) -> Self {
        let mut times = Self {
            root,
            threads: BTreeMap::new(),
            last: BTreeSet::new(),
        };
        times.look();
        for (_, _, before, now) in times.threads.values_mut() {
            *before = *now;
        }
        times
    }

    /// The command was started.
    pub(super) const fn started(&mut self, pid: i32) {
        self.root = Some(pid);
    }

    pub(super) fn look(&mut self) {
        let Some(root) = self.root else { return };
        self.last.clear();
        for thread in threads::list_threads_below(root) {
            let path = format!("/proc/{}/task/{}/schedstat", thread.process, thread.tid);
            let text = read_file(Path::new(&path)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let Some((run_ns, _)) = threads::parse_schedstat(&text) else {
                continue;
            };
            let entry = self.threads.entry(thread.tid).or_insert_with(|| {
                let name = threads::read_name(thread.tid).unwrap_or_default();
                (thread.process, name.into(), 0, 0)
            });
            entry.3 = run_ns;
            self.last.insert(thread.tid);
        }
    }

    /// CPU time of a thread, s; `None` if it was never seen. If it ended since the last scan,
    /// `sampled_ns` if that is more.
    pub(super) fn cpu_s(&self, tid: i32, sampled_ns: u64) -> Option<f64> {
        let (_, _, before, now) = self.threads.get(&tid)?;
        let counted_ns = now.saturating_sub(*before);
        let cpu_ns = match self.last.contains(&tid) {
            true => counted_ns,
            false => counted_ns.max(sampled_ns),
        };
        Some(cpu_ns as f64 * 1e-9)
    }

    /// All threads that were seen.
    pub(super) fn threads(&self) -> Vec<Thread> {
        let all = self.threads.iter();
        let all = all.map(|(&tid, (pid, name, _, _))| Thread {
            pid: *pid,
            tid,
            name: name.clone(),
            cpu_s: self.cpu_s(tid, 0),
        });
        all.collect()
    }
}
