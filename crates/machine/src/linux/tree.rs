//! The process tree of a command: finding its processes, killing them, counting their threads.
//!
//! pinwise is the tree's subreaper, so everything that the command leaves behind, including
//! daemons, becomes a child of pinwise and is waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::capture::{list_names, read_file};
use super::process_stat::{self, ProcessStat};
use super::{daemon, sys};

/// Deepest level of children whose threads are counted.
const MAX_DEPTH: usize = 6;
/// Smallest sampled share of a tree's CPU time from which the rest is extrapolated.
const MIN_SAMPLED: f64 = 0.5;
/// A thread counts as at work if it ran for at least the busiest thread's time divided by this. The
/// others only start threads or wait for them.
const AT_WORK_DIVISOR: u64 = 4;
/// Longest time until killed processes have ended.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Lists the children of pinwise, without those in `spared`.
pub(super) fn own_children(spared: &BTreeSet<libc::pid_t>) -> Vec<libc::pid_t> {
    let own = std::process::id();
    let mut children = children_of(i32::try_from(own).unwrap_or(0));
    children.retain(|pid| !spared.contains(pid));
    children
}

/// Lists a process's direct children.
fn children_of(pid: libc::pid_t) -> Vec<libc::pid_t> {
    children_of_threads(pid, &threads_of(pid))
}

fn threads_of(pid: libc::pid_t) -> Vec<libc::pid_t> {
    let names = list_names(Path::new(&format!("/proc/{pid}/task")));
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Lists the direct children that these threads of a process have started.
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

/// Describes processes for messages as `name (pid)`, without pinwise's own daemons.
pub(super) fn describe(pids: &[libc::pid_t]) -> Vec<String> {
    pids.iter()
        .filter(|pid| !daemon::is_daemon(**pid))
        .map(|&pid| format!("{} ({pid})", process_name(pid).unwrap_or_default()))
        .collect()
}

/// The name (`comm`) of a process of this host; `None` if it does not exist.
#[must_use]
pub fn process_name(pid: i32) -> Option<String> {
    let name = read_file(Path::new(&format!("/proc/{pid}/comm")))?;
    Some(String::from_utf8_lossy(&name).trim().to_owned())
}

/// The processes of this host with this name, by number; the first one alone if it is the parent of
/// all others. The kernel keeps 15 bytes of a name.
#[must_use]
pub fn find_processes(name: &str) -> Vec<i32> {
    let name = &name.as_bytes()[..name.len().min(15)];
    let entries = list_names(Path::new("/proc"));
    let numbers = entries.iter().filter_map(|entry| entry.parse().ok());
    let has_name = |pid: &i32| process_name(*pid).is_some_and(|found| found.as_bytes() == name);
    let mut found: Vec<i32> = numbers.filter(has_name).collect();
    found.sort_unstable();
    let is_child = |pid: i32| {
        let stat = process_stat::read_line(pid);
        let parent = stat.and_then(|line| ProcessStat::parse(&line)?.parent());
        parent.is_some_and(|parent| found.contains(&parent))
    };
    let orphans: Vec<i32> = found
        .iter()
        .copied()
        .filter(|pid| !is_child(*pid))
        .collect();
    match orphans[..] {
        [parent] => vec![parent],
        _ => found,
    }
}

/// Reads a thread's start time, ticks since boot.
pub(super) fn read_start(thread: i32) -> Option<u64> {
    ProcessStat::parse(&process_stat::read_line(thread)?)?.start()
}

/// Lists the descendants of a process, the nearest first.
pub(super) fn descendants(pid: libc::pid_t) -> Vec<libc::pid_t> {
    let mut found = children_of(pid);
    let mut index = 0;
    while let Some(&next) = found.get(index) {
        found.extend(children_of(next));
        index += 1;
    }
    found
}

/// Appends all threads of a process and its descendants.
fn collect_threads(pid: libc::pid_t, depth: usize, threads: &mut Vec<libc::pid_t>) {
    let own = threads_of(pid);
    if depth < MAX_DEPTH {
        for child in children_of_threads(pid, &own) {
            collect_threads(child, depth + 1, threads);
        }
    }
    threads.extend(own);
}

/// Reads how long a thread ran, and how long it was ready but had no CPU, ns.
fn read_ran_and_queued(thread: libc::pid_t) -> Option<(u64, u64)> {
    let text = read_file(Path::new(&format!("/proc/{thread}/schedstat")))?;
    let text = String::from_utf8_lossy(&text);
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (ran, queued) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    // A kernel that does not keep these figures writes zeros.
    (ran > 0).then_some((ran, queued))
}

/// Samples the threads of a tree: soon at first, then ever more rarely.
#[derive(Debug)]
pub(super) struct ThreadSampler {
    next: Duration,
    step: Duration,
    growth: f64,
    /// Largest number of threads seen at once.
    max_threads: u32,
    /// How long each thread had run and was queued when last seen, ns.
    times: BTreeMap<libc::pid_t, (u64, u64)>,
}

impl ThreadSampler {
    const LONGEST_STEP: Duration = Duration::from_millis(500);

    /// `closely`: after a millisecond at first, and often later.
    pub(super) fn new(start: Duration, closely: bool) -> Self {
        let step = Duration::from_millis(if closely { 1 } else { 4 });
        Self {
            next: start + step,
            step,
            growth: if closely { 1.1 } else { 1.6 },
            max_threads: 0,
            times: BTreeMap::new(),
        }
    }

    pub(super) const fn next_sample(&self) -> Duration {
        self.next
    }

    pub(super) fn sample(&mut self, pid: libc::pid_t, now: Duration) {
        if now < self.next {
            return;
        }
        self.step = self.step.mul_f64(self.growth).min(Self::LONGEST_STEP);
        self.next = now + self.step;
        let mut threads = Vec::new();
        collect_threads(pid, 0, &mut threads);
        let alive = u32::try_from(threads.len()).unwrap_or(u32::MAX);
        threads
            .into_iter()
            .for_each(|thread| self.read_times(thread));
        self.max_threads = self.max_threads.max(alive);
    }

    /// Reads the times of a thread, which the kernel keeps until it is reaped.
    pub(super) fn read_times(&mut self, thread: libc::pid_t) {
        if let Some(times) = read_ran_and_queued(thread) {
            self.times.insert(thread, times);
        }
    }

    /// The largest number of threads seen at once; `None` if none were seen.
    pub(super) fn max_threads(&self) -> Option<u32> {
        (self.max_threads > 0).then_some(self.max_threads)
    }

    /// As [`Self::max_threads`], without threads that hardly ran.
    pub(super) fn max_threads_at_work(&self) -> Option<u32> {
        let busiest = self.times.values().map(|(ran, _)| *ran).max()?;
        let is_at_work = |ran: u64| ran >= busiest / AT_WORK_DIVISOR;
        let at_work = self.times.values().filter(|(ran, _)| is_at_work(*ran));
        let count = u32::try_from(at_work.count()).unwrap_or(u32::MAX);
        Some(count.min(self.max_threads()?))
    }

    /// How long the threads of a tree with this CPU time were ready but had no CPU, s, scaled up
    /// from the sampled threads. `None` if too little was sampled.
    pub(super) fn queued_s(&self, cpu_s: f64) -> Option<f64> {
        let ran: f64 = self.times.values().map(|(ran, _)| *ran as f64).sum();
        let queued: f64 = self.times.values().map(|(_, queued)| *queued as f64).sum();
        (ran > 1e9 * MIN_SAMPLED * cpu_s).then(|| cpu_s * queued / ran)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_only_started_others_does_not_work() {
        let mut sampler = ThreadSampler::new(Duration::ZERO, true);
        assert_eq!(sampler.max_threads_at_work(), None);
        sampler.max_threads = 5;
        sampler.times = BTreeMap::from([(1, (2, 0))]);
        sampler.times.extend((2..6).map(|tid| (tid, (100, 40))));
        assert_eq!(
            (sampler.max_threads(), sampler.max_threads_at_work()),
            (Some(5), Some(4))
        );
        // Compilers one after the other.
        sampler.max_threads = 2;
        assert_eq!(sampler.max_threads_at_work(), Some(2));
    }
}
