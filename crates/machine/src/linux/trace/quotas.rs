//! Quotas on CPU time of all cgroups that processes of a trace are in.
//!
//! A shell, `systemd-run` and container runtimes put a child into its own cgroup, often a new one,
//! and its throttling would look like the scheduler's doing. So every process is checked, new ones
//! first, and a cgroup counts from the start of the trace: its earlier throttling is read in
//! advance. Which threads were throttled is not decided here.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::capture::{names, read_file};
use super::super::sys;
use super::super::usage::{Throttle, cpu_cgroups, read_throttling};
use crate::Throttling;
use pinwise_sched::{Event, EventKind, Tid};
use pinwise_topology::mounts;

/// Shortest interval between polls.
const PAUSE: Duration = Duration::from_millis(100);
/// Polls may take at most one part in this many of the time …
const SHARE: u32 = 50;
/// … and if processes end all the time, one in this many.
const MAX_SHARE: u32 = 10;
/// Processes per poll.
const MAX_AT_ONCE: usize = 32;
/// Limits the remembered threads, and the cgroups read before the trace.
const MAX_THREADS: usize = 65_536;
const MAX_CGROUPS: usize = 4096;

/// The quotas of processes.
#[derive(Debug)]
pub(super) struct Quotas {
    /// `/proc/mounts` at the start of the trace.
    mounts: Vec<u8>,
    /// Throttling before the trace, by folder.
    before: BTreeMap<PathBuf, Throttling>,
    /// Folders that are not in `before` were made since.
    has_all_before: bool,
    /// All cgroups count.
    is_everything: bool,
    threads: BTreeSet<Tid>,
    /// The last introduced thread, and its process.
    introduced: Option<(Tid, Tid)>,
    /// Processes with the latest lines of `/proc/PID/cgroup`, empty at first.
    processes: BTreeMap<Tid, Vec<u8>>,
    fresh: BTreeSet<Tid>,
    /// Where the last poll stopped.
    cursor: Tid,
    watched: BTreeMap<PathBuf, WatchedQuota>,
    /// A process is in a cgroup that no mounted file system shows.
    is_blind: bool,
    next: Duration,
    /// No poll before this, even if processes end.
    earliest: Duration,
}

#[derive(Debug)]
struct WatchedQuota {
    throttle: Throttle,
    taken: Throttling,
}

impl WatchedQuota {
    /// A removed cgroup keeps its last figures.
    fn update(&mut self) {
        if let Some(added) = self.throttle.since_last() {
            self.taken.periods += added.periods;
            self.taken.times += added.times;
            self.taken.held += added.held;
        }
    }
}

impl Quotas {
    /// Call just before the trace begins.
    pub(super) fn new(is_everything: bool) -> Self {
        let mut quotas = Self {
            mounts: read_file(Path::new("/proc/mounts")).unwrap_or_default(),
            before: BTreeMap::new(),
            has_all_before: true,
            is_everything,
            threads: BTreeSet::new(),
            introduced: None,
            processes: BTreeMap::new(),
            fresh: BTreeSet::new(),
            cursor: 0,
            watched: BTreeMap::new(),
            is_blind: false,
            next: Duration::ZERO,
            earliest: Duration::ZERO,
        };
        let (folders, is_whole) = all_cgroups(&quotas.mounts);
        let read = folders
            .into_iter()
            .filter_map(|folder| Some((read_throttling(&folder)?, folder)));
        quotas.before = read.map(|(taken, folder)| (folder, taken)).collect();
        quotas.has_all_before = is_whole;
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
                    self.fresh.remove(&thread);
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
            self.fresh.insert(process);
        }
    }

    /// Polls the processes whose turn it is, if it is time. `has_ended`: one is about to be reaped.
    pub(super) fn look(&mut self, now: Duration, has_ended: bool) {
        let due = if has_ended { self.earliest } else { self.next };
        if now < due {
            return;
        }
        for process in self.turn() {
            self.look_at(process);
        }
        self.watched.values_mut().for_each(WatchedQuota::update);
        let took = sys::monotonic().saturating_sub(now);
        self.next = now + PAUSE.max(took * SHARE);
        self.earliest = now + took * MAX_SHARE;
    }

    /// Polls new processes, which may end before the next turn.
    pub(super) fn look_at_new(&mut self) {
        for _ in 0..MAX_AT_ONCE {
            let Some(process) = self.fresh.pop_first() else {
                return;
            };
            self.look_at(process);
        }
    }

    /// New processes first, then the others in turns.
    fn turn(&mut self) -> Vec<Tid> {
        let mut turn: Vec<Tid> = self.fresh.iter().copied().take(MAX_AT_ONCE).collect();
        for process in &turn {
            self.fresh.remove(process);
        }
        let after = (Bound::Excluded(self.cursor), Bound::Unbounded);
        let others = self.processes.range(after).map(|(&process, _)| process);
        let room = MAX_AT_ONCE - turn.len();
        let others: Vec<Tid> = others.take(room).collect();
        self.cursor = match others.last() {
            Some(&last) if others.len() == room => last,
            _ => 0,
        };
        turn.extend(others);
        turn.sort_unstable();
        turn.dedup();
        turn
    }

    fn look_at(&mut self, process: Tid) {
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
        let folders = cpu_cgroups(&self.mounts, &now);
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
            let taken = Throttling::default();
            self.watched
                .insert(folder, WatchedQuota { throttle, taken });
        }
    }

    /// The throttling of all cgroups; `None` if it cannot be read.
    pub(super) fn finish(&mut self) -> Option<Throttling> {
        if self.is_everything {
            for folder in all_cgroups(&self.mounts).0 {
                self.watch(folder);
            }
        }
        for watched in self.watched.values_mut() {
            watched.update();
        }
        let taken = self.watched.iter();
        let taken = taken.map(|(folder, watched)| (folder.as_path(), watched.taken));
        (!self.is_blind).then(|| sum_of_tree(&taken.collect()))
    }
}

/// Total throttling of cgroups. Nested groups throttle the same threads; sibling groups different
/// ones.
fn sum_of_tree(taken: &BTreeMap<&Path, Throttling>) -> Throttling {
    let mut within: BTreeMap<&Path, Throttling> = BTreeMap::new();
    let mut sum = Throttling::default();
    // Nested folders come after their parent.
    for (folder, own) in taken.iter().rev() {
        let both = own.merge_nested(within.remove(folder).unwrap_or_default());
        let mut around = folder.ancestors().skip(1);
        let place = around.find(|path| taken.contains_key(path));
        let place = place.map_or(&mut sum, |path| within.entry(path).or_default());
        *place = place.plus(both);
    }
    sum
}

/// All visible cgroups for CPU time, and whether these are all.
fn all_cgroups(table: &[u8]) -> (Vec<PathBuf>, bool) {
    let table = String::from_utf8_lossy(table);
    let of_cpus = mounts(&table).filter(|mount| mount.is_unified() || mount.has("cpu"));
    let mut waiting: Vec<PathBuf> = of_cpus.map(|mount| mount.point.into()).collect();
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        if found.len() >= MAX_CGROUPS {
            return (found, false);
        }
        let below = names(&folder).into_iter().map(|name| folder.join(name));
        waiting.extend(below.filter(|path| path.is_dir()));
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
        let sum = sum_of_tree(&BTreeMap::from(taken));
        assert_eq!(sum.held, Duration::from_millis(70 + 40 + 30));
        assert_eq!((sum.times, sum.periods), (14, 30));
    }

    #[test]
    fn every_process_of_the_tree_is_looked_at() {
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
        assert_eq!(quotas.turn(), [7, 9, 11]);
        quotas.learn(&[event(EventKind::Exit { thread: 9 }), fork(8, 12, 12)]);
        assert_eq!(quotas.turn(), [7, 11, 12]);
    }
}
