//! Restores threads that pinwise had not found yet when it was killed.
//!
//! A [`Ledger`](crate::linux::Ledger) restores recorded threads. A thread that began just before a
//! SIGKILL inherited a mask of the placement and is not recorded. So after everything else the
//! guardian, which knows the target, searches for threads that belong to it, are new, and have a
//! mask of the placement.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::process::{find_own_or_inherited, read_stat};
use super::target::Target;
use crate::linux::sys;
use pinwise_topology::CpuSet;

/// Passes over the threads: the first restores threads that may still start others, the later ones
/// those.
const PASSES: usize = 20;
/// Pause after each pass.
const PAUSE: Duration = Duration::from_millis(25);

/// A line for the guardian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SweepLine {
    /// The target whose threads are placed.
    Target(Target),
    /// The former mask of a process's first thread.
    Process(i32, CpuSet),
    /// A known thread, and its start time.
    Thread(i32, u64),
    /// A mask of the present placement.
    Given(CpuSet),
    /// No placement is in force any more.
    Over,
}

impl SweepLine {
    pub(super) fn to_line(&self) -> String {
        match self {
            Self::Target(target) => format!("target {}\n", target.to_line()),
            Self::Process(pid, mask) => format!("process {pid} {mask}\n"),
            Self::Thread(id, start) => format!("thread {id} {start}\n"),
            Self::Given(mask) => format!("given {mask}\n"),
            Self::Over => "over\n".to_owned(),
        }
    }

    fn from_line(line: &str) -> Option<Self> {
        let cpus = |text: &str| CpuSet::parse_list(text).ok().filter(|set| !set.is_empty());
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let pair = || rest.split_once(' ');
        Some(match word {
            "target" => Self::Target(Target::from_line(rest)?),
            "process" => Self::Process(pair()?.0.parse().ok()?, cpus(pair()?.1)?),
            "thread" => Self::Thread(pair()?.0.parse().ok()?, pair()?.1.parse().ok()?),
            "given" => Self::Given(cpus(rest)?),
            "over" => Self::Over,
            _ => return None,
        })
    }
}

/// What the guardian knows of a placement.
#[derive(Debug, Default)]
pub(in crate::linux) struct ThreadSweep {
    target: Option<Target>,
    processes: BTreeMap<i32, CpuSet>,
    threads: BTreeSet<(i32, u64)>,
    given: Vec<CpuSet>,
}

impl ThreadSweep {
    /// Applies a line; a malformed one is ignored.
    pub(in crate::linux) fn apply_line(&mut self, line: &str) {
        match SweepLine::from_line(line) {
            Some(SweepLine::Target(target)) => self.target = Some(target),
            Some(SweepLine::Process(pid, mask)) => {
                self.processes.insert(pid, mask);
            }
            Some(SweepLine::Thread(id, start)) => {
                self.threads.insert((id, start));
            }
            Some(SweepLine::Given(mask)) => self.given.push(mask),
            Some(SweepLine::Over) => self.given.clear(),
            None => {}
        }
    }

    /// Restores new threads with a mask of the placement to the mask that they would have had
    /// without it.
    fn restore_new_threads(&self) {
        let threads = self.target.iter().flat_map(Target::threads);
        for thread in threads {
            let Some(start) = read_stat(thread.id).map(|stat| stat.start) else {
                continue;
            };
            let is_new = !self.threads.contains(&(thread.id, start));
            let now = sys::affinity_of(thread.id).ok();
            if is_new
                && now.is_some_and(|now| self.given.contains(&now))
                && let Some(before) = find_own_or_inherited(&self.processes, thread.process)
            {
                let _ = sys::set_affinity_of(thread.id, &before);
            }
        }
    }

    /// Restores new threads until no further ones can appear.
    pub(in crate::linux) fn run(&self) {
        if !self.given.is_empty() {
            for _ in 0..PASSES {
                self.restore_new_threads();
                std::thread::sleep(PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_for_the_guardian_round_trip() {
        let output =
            "process 5 0-3\nthread 5 17\nthread 6 18\ngiven 1\nover\ngiven 2\nnonsense\nthread 7 x";
        let mut known = ThreadSweep::default();
        output.lines().for_each(|line| known.apply_line(line));
        assert_eq!(known.threads, BTreeSet::from([(5, 17), (6, 18)]));
        assert_eq!(known.given, [CpuSet::single(2)]);
        assert_eq!(known.processes.len(), 1);
        assert!(known.target.is_none());
    }

    proptest! {
        #[test]
        fn any_line_is_parsed_or_refused(id in 1i32.., start in 0u64.., cpus in prop::collection::btree_set(0usize..300, 1..9), line in "(target |process |given )?\\PC{0,40}") {
            let cpus: CpuSet = cpus.into_iter().collect();
            for word in [SweepLine::Process(id, cpus.clone()), SweepLine::Thread(id, start), SweepLine::Given(cpus.clone()), SweepLine::Over] {
                prop_assert_eq!(SweepLine::from_line(word.to_line().trim_end()), Some(word));
            }
            let _ = SweepLine::from_line(&line);
        }
    }
}
