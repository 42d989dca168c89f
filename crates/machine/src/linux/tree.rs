//! The process tree of a command: waiting for all of it, ending all of it,
//! counting its threads.
//!
//! pinwise is the tree's subreaper, so whatever the command leaves behind,
//! daemons included, becomes a child of pinwise and is waited for.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use super::capture::read_file;
use super::process_stat::{self, ProcessStat};
use super::{daemon, sys};

/// Deepest level of children whose threads are counted.
const DEEPEST: usize = 6;
/// How long ending a tree may take before it is given up.
pub(super) const ENDING: Duration = Duration::from_secs(5);

/// Children of pinwise, without those in `spared`.
pub(super) fn own_children(spared: &BTreeSet<libc::pid_t>) -> Vec<libc::pid_t> {
    let own = std::process::id();
    let mut children = children_of(i32::try_from(own).unwrap_or(0));
    children.retain(|pid| !spared.contains(pid));
    children
}

/// Direct children, over all threads of a process.
fn children_of(pid: libc::pid_t) -> Vec<libc::pid_t> {
    let threads = super::capture::names(Path::new(&format!("/proc/{pid}/task")));
    let threads: Vec<libc::pid_t> = threads.iter().filter_map(|t| t.parse().ok()).collect();
    children_of_threads(pid, &threads)
}

/// Direct children of these threads of a process.
pub(super) fn children_of_threads(pid: libc::pid_t, threads: &[libc::pid_t]) -> Vec<libc::pid_t> {
    threads
        .iter()
        .flat_map(|thread| {
            let list = read_file(Path::new(&format!("/proc/{pid}/task/{thread}/children")));
            let list = String::from_utf8_lossy(&list.unwrap_or_default()).into_owned();
            let pids = list.split_ascii_whitespace().filter_map(|p| p.parse().ok());
            pids.collect::<Vec<libc::pid_t>>()
        })
        .collect()
}

/// Sends SIGKILL to a command's group and to all orphans of its tree.
pub(super) fn kill_tree(group: libc::pid_t, spared: &BTreeSet<libc::pid_t>) {
    sys::kill(-group, libc::SIGKILL);
    for pid in own_children(spared) {
        sys::kill(pid, libc::SIGKILL);
    }
}

/// `name (pid)` of processes, for messages; helpers of pinwise's own are none of them.
pub(super) fn describe(pids: &[libc::pid_t]) -> Vec<String> {
    pids.iter()
        .filter(|pid| !daemon::is_one(**pid))
        .map(|&pid| format!("{} ({pid})", process_name(pid).unwrap_or_default()))
        .collect()
}

/// The name (`comm`) of a process of this host; `None` where there is none.
#[must_use]
pub fn process_name(pid: i32) -> Option<String> {
    let name = read_file(Path::new(&format!("/proc/{pid}/comm")))?;
    Some(String::from_utf8_lossy(&name).trim().to_owned())
}

/// When a thread was started, ticks since boot.
pub(super) fn start_of(thread: i32) -> Option<u64> {
    ProcessStat::parse(&process_stat::line_of(thread)?)?.start()
}

/// Threads of a process and its descendants now; `None` once it is gone.
pub(super) fn count_threads(pid: libc::pid_t) -> Option<u32> {
    count_threads_below(pid, 0)
}

fn count_threads_below(pid: libc::pid_t, depth: usize) -> Option<u32> {
    // A folder's links are itself, its parent and one for each thread.
    let links = std::fs::metadata(format!("/proc/{pid}/task")).ok()?.nlink();
    let mut threads = u32::try_from(links.checked_sub(2)?).ok()?;
    if depth < DEEPEST {
        for child in children_of(pid) {
            threads += count_threads_below(child, depth + 1).unwrap_or(0);
        }
    }
    Some(threads)
}

/// When to look for threads: soon at first, then ever more rarely.
#[derive(Debug)]
pub(super) struct ThreadSampler {
    next: Duration,
    step: Duration,
    growth: f64,
    most: u32,
}

impl ThreadSampler {
    const LONGEST_STEP: Duration = Duration::from_millis(500);

    /// `closely`: every millisecond at first and often after.
    pub(super) fn new(start: Duration, closely: bool) -> Self {
        let step = Duration::from_millis(if closely { 1 } else { 4 });
        Self {
            next: start + step,
            step,
            growth: if closely { 1.1 } else { 1.6 },
            most: 0,
        }
    }

    pub(super) const fn next(&self) -> Duration {
        self.next
    }

    pub(super) fn sample(&mut self, pid: libc::pid_t, now: Duration) {
        if now < self.next {
            return;
        }
        self.step = self.step.mul_f64(self.growth).min(Self::LONGEST_STEP);
        self.next = now + self.step;
        self.most = self.most.max(count_threads(pid).unwrap_or(0));
    }

    pub(super) fn most(&self) -> Option<u32> {
        (self.most > 0).then_some(self.most)
    }
}
