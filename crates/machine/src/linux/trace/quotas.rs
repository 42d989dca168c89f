//! Throttling by the quotas on CPU time of all cgroups that traced processes are in.
//!
//! A shell, `systemd-run` and container runtimes put a child into its own cgroup, often a new one,
//! whose throttling would look like the scheduler's doing. So every process is checked, new ones
//! first. A cgroup counts from the start of the trace: its earlier throttling is read in advance.
//! This does not tell which threads were throttled.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::capture::{list_names, read_file, read_text};
use super::super::sys;
use super::super::usage::{Throttle, find_cgroups, read_throttling};
use super::turns::Turns;
use crate::{CpuQuota, Throttling};
use pinwise_sched::{Event, EventKind, Tid};
use pinwise_topology::{QuotaFiles, mounts};

/// Shortest interval between polls.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// The interval between polls is at least this many times the duration of a poll.
const PAUSE_FACTOR: u32 = 50;
/// The same for polls that are made early because a process has ended.
const EARLY_PAUSE_FACTOR: u32 = 10;
/// Processes per poll.
const MAX_AT_ONCE: usize = 32;
/// Most traced threads that are remembered.
const MAX_THREADS: usize = 65_536;
/// Most cgroups whose throttling is read before the trace.
const MAX_CGROUPS: usize = 4096;

/// The quotas of processes.
#[derive(Debug)]
pub(super) struct Quotas {
    /// `/proc/mounts` at the start of the trace.
    mounts: Vec<u8>,
    /// Throttling before the trace, by folder.
    before: BTreeMap<PathBuf, Throttling>,
    /// Does `before` have all cgroups of that time? Then the others were made since.
    has_all_before: bool,
    /// Do all cgroups of the machine count?
    is_everything: bool,
    threads: BTreeSet<Tid>,
    /// The thread that the stream introduced last, and its process.
    introduced: Option<(Tid, Tid)>,
    /// Processes with the latest lines of `/proc/PID/cgroup`, empty at first.
    processes: BTreeMap<Tid, Vec<u8>>,
    turns: Turns,
    watched: BTreeMap<PathBuf, WatchedQuota>,
    /// Is a process in a cgroup that no mounted file system shows?
    is_blind: bool,
    next: Duration,
    /// No poll before this, even if processes end.
    earliest: Duration,
}

#[derive(Debug)]
struct WatchedQuota {
    throttle: Throttle,
    /// The throttling since the trace began.
    total: Throttling,
}

impl WatchedQuota {
    /// Adds the throttling since the last update. A removed cgroup keeps its last figures.
    fn update(&mut self) {
        if let Some(added) = self.throttle.since_last() {
            self.total = self.total.plus(added);
        }
    }
}

impl Quotas {
    /// Reads the throttling so far. Call just before the trace begins.
    pub(super) fn new(is_everything: bool) -> Self {
        let mut quotas = Self {
            mounts: read_file(Path::new("/proc/mounts")).unwrap_or_default(),
            before: BTreeMap::new(),
            has_all_before: true,
            is_everything,
            threads: BTreeSet::new(),
            introduced: None,
            processes: BTreeMap::new(),
            turns: Turns::default(),
            watched: BTreeMap::new(),
            is_blind: false,
            next: Duration::ZERO,
            earliest: Duration::ZERO,
        };
        let (folders, is_complete) = list_cgroups(&quotas.mounts);
        let read = folders
            .into_iter()
            .filter_map(|folder| Some((read_throttling(&folder)?, folder)));
        quotas.before = read.map(|(before, folder)| (folder, before)).collect();
        quotas.has_all_before = is_complete;
        quotas
    }

    /// Learns which processes belong to the trace.
    pub(super) fn learn(&mut self, events: &[Event]) {
        for event in events {
            match event.what {
                EventKind::Known { thread, process } => {
                    self.introduced = Some((thread, process));
                }
                EventKind::Follow { thread } => {
                    let introduced = self.introduced.filter(|(known, _)| *known == thread);
                    self.add(thread, introduced.map_or(thread, |(_, process)| process));
                }
                EventKind::Fork {
                    parent,
                    child,
                    process,
                } if self.threads.contains(&parent) => self.add(child, process),
                EventKind::Exit { thread } => {
                    self.threads.remove(&thread);
                    self.processes.remove(&thread);
                    self.turns.remove(thread);
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, thread: Tid, process: Tid) {
        if self.is_everything || self.threads.len() >= MAX_THREADS {
            return;
        }
        self.threads.insert(thread);
        if let Entry::Vacant(place) = self.processes.entry(process) {
            place.insert(Vec::new());
            self.turns.add_new(process);
        }
    }

    /// Polls the processes whose turn it is, if it is time. `has_ended`: a process is about to be
    /// reaped, so the poll may be early.
    pub(super) fn poll_if_due(&mut self, now: Duration, has_ended: bool) {
        let due = if has_ended { self.earliest } else { self.next };
        if now < due {
            return;
        }
        for process in self.turns.take(&self.processes, MAX_AT_ONCE) {
            self.check_process(process);
        }
        self.watched.values_mut().for_each(WatchedQuota::update);
        let took = sys::monotonic().saturating_sub(now);
        self.next = now + MIN_PAUSE.max(took * PAUSE_FACTOR);
        self.earliest = now + took * EARLY_PAUSE_FACTOR;
    }

    /// Checks new processes, which may end before the next poll.
    pub(super) fn check_new_processes(&mut self) {
        for _ in 0..MAX_AT_ONCE {
            let Some(process) = self.turns.pop_new() else {
                return;
            };
            self.check_process(process);
        }
    }

    /// Watches the cgroups of a process, if they are new.
    fn check_process(&mut self, process: Tid) {
        let Some(now) = read_file(Path::new(&format!("/proc/{process}/cgroup"))) else {
            return;
        };
        let Some(last) = self.processes.get_mut(&process) else {
            return;
        };
        if *last == now {
            return;
        }
        last.clone_from(&now);
        let folders = find_cgroups(&self.mounts, &now, "cpu");
        self.is_blind |= !now.is_empty() && !folders.iter().any(|folder| folder.is_dir());
        for folder in folders {
            self.watch(folder);
        }
    }

    fn watch(&mut self, folder: PathBuf) {
        if self.watched.contains_key(&folder) {
            return;
        }
        let made_since = self.has_all_before.then(Throttling::default);
        let before = self.before.get(&folder).copied().or(made_since);
        if let Some(throttle) = Throttle::watch_folder(&folder, before) {
            let total = Throttling::default();
            self.watched
                .insert(folder, WatchedQuota { throttle, total });
        }
    }

    /// The throttling of all cgroups; `None` if it cannot be read.
    pub(super) fn finish(&mut self) -> Option<Throttling> {
        if self.is_everything {
            for folder in list_cgroups(&self.mounts).0 {
                self.watch(folder);
            }
        }
        for watched in self.watched.values_mut() {
            watched.update();
        }
        let watched = self.watched.iter();
        let totals = watched.map(|(folder, watched)| (folder.as_path(), watched.total));
        (!self.is_blind).then(|| sum_tree(&totals.collect()))
    }

    /// The quota that throttled the most; `None` if none did.
    pub(super) fn find_strictest(&self) -> Option<CpuQuota> {
        let watched = self.watched.iter();
        let throttled = watched.filter(|(_, watched)| watched.total.times > 0);
        let (folder, _) = throttled.max_by_key(|(_, watched)| watched.total.held)?;
        read_quota(folder)
    }
}

fn read_quota(folder: &Path) -> Option<CpuQuota> {
    let files = QuotaFiles::read(|name| read_text(&folder.join(name)))?;
    Some(CpuQuota {
        file: folder.join(files.name).to_str()?.to_owned(),
        quota: Duration::from_micros(files.micros),
        period: Duration::from_micros(files.period_micros),
    })
}

/// The total throttling of cgroups. Nested groups throttle the same threads, sibling groups
/// different ones.
fn sum_tree(totals: &BTreeMap<&Path, Throttling>) -> Throttling {
    // The throttling of the groups below each folder.
    let mut within: BTreeMap<&Path, Throttling> = BTreeMap::new();
    let mut sum = Throttling::default();
    // Nested folders come after their parent.
    for (folder, own) in totals.iter().rev() {
        let both = own.merge_nested(within.remove(folder).unwrap_or_default());
        let mut ancestors = folder.ancestors().skip(1);
        let parent = ancestors.find(|path| totals.contains_key(path));
        let parent_sum = parent.map_or(&mut sum, |path| within.entry(path).or_default());
        *parent_sum = parent_sum.plus(both);
    }
    sum
}

/// Lists the visible cgroups for CPU time; the second value says whether the list is complete.
fn list_cgroups(table: &[u8]) -> (Vec<PathBuf>, bool) {
    let table = String::from_utf8_lossy(table);
    let cpu_mounts = mounts(&table).filter(|mount| mount.is_unified() || mount.has("cpu"));
    let mut waiting: Vec<PathBuf> = cpu_mounts.map(|mount| mount.point.into()).collect();
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        if found.len() >= MAX_CGROUPS {
            return (found, false);
        }
        let inside = list_names(&folder)
            .into_iter()
            .map(|name| folder.join(name));
        waiting.extend(inside.filter(|path| path.is_dir()));
        found.push(folder);
    }
    (found, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: EventKind) -> Event {
        Event {
            time_ns: 0,
            cpu: 0,
            what,
        }
    }

    #[test]
    fn nested_cgroups_throttle_the_same_threads() {
        let held = |ms: u64| Throttling {
            periods: 10,
            times: ms / 10,
            held: Duration::from_millis(ms),
        };
        let groups = [
            ("/sys/fs/cgroup", 0),
            ("/sys/fs/cgroup/a", 70),
            ("/sys/fs/cgroup/a/b", 60),
            ("/sys/fs/cgroup/a/b/deep/er", 50),
            ("/sys/fs/cgroup/c/one", 40),
            ("/sys/fs/cgroup/c/two", 30),
        ];
        let taken = groups.map(|(path, ms)| (Path::new(path), held(ms)));
        let sum = sum_tree(&BTreeMap::from(taken));
        assert_eq!(sum.held, Duration::from_millis(70 + 40 + 30));
        assert_eq!((sum.times, sum.periods), (14, 30));
    }

    #[test]
    fn the_quota_of_both_versions_of_cgroups_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let write = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
        let quota = |name: &str, quota, period| CpuQuota {
            file: path.join(name).to_str().unwrap().to_owned(),
            quota: Duration::from_millis(quota),
            period: Duration::from_millis(period),
        };
        assert_eq!(read_quota(path), None);
        write("cpu.cfs_quota_us", "-1\n");
        write("cpu.cfs_period_us", "50000\n");
        assert_eq!(read_quota(path), None);
        write("cpu.cfs_quota_us", "25000\n");
        let old = quota("cpu.cfs_quota_us", 25, 50);
        assert_eq!(read_quota(path), Some(old));
        write("cpu.max", "max 100000\n");
        assert_eq!(read_quota(path), None);
        write("cpu.max", "150000 100000\n");
        assert_eq!(read_quota(path), Some(quota("cpu.max", 150, 100)));
    }

    #[test]
    fn every_process_of_the_tree_is_read() {
        let mut quotas = Quotas::new(false);
        let fork = |parent, child, process| {
            event(EventKind::Fork {
                parent,
                child,
                process,
            })
        };
        quotas.learn(&[
            event(EventKind::Known {
                thread: 8,
                process: 7,
            }),
            event(EventKind::Follow { thread: 8 }),
            fork(8, 9, 9),
            fork(9, 10, 9),
            fork(10, 11, 11),
            fork(1, 2, 2),
        ]);
        assert_eq!(
            quotas.turns.take(&quotas.processes, MAX_AT_ONCE),
            [7, 9, 11]
        );
        quotas.learn(&[event(EventKind::Exit { thread: 9 }), fork(8, 12, 12)]);
        assert_eq!(
            quotas.turns.take(&quotas.processes, MAX_AT_ONCE),
            [7, 11, 12]
        );
    }
}
