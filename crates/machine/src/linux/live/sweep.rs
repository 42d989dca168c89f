//! Threads that had not been found when pinwise was killed.
//!
//! A [`Ledger`](crate::linux::Ledger) restores recorded threads. A thread that began just before a
//! SIGKILL inherited the placement's mask and is not recorded. The guardian, which receives the
//! target's description, searches for such threads last: they belong to the target, are new, and
//! have a mask of the placement.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::process::{ancestor_in, stat};
use super::target::Target;
use crate::linux::sys;
use pinwise_topology::CpuSet;

/// Passes over the threads after the end, and the pause between them: a thread that may still start
/// others is restored in the first.
const PASSES: usize = 20;
const STEP: Duration = Duration::from_millis(25);

/// Lines for the guardian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// Whose threads.
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

impl Word {
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

/// The guardian's knowledge.
#[derive(Debug, Default)]
pub(in crate::linux) struct Known {
    target: Option<Target>,
    processes: BTreeMap<i32, CpuSet>,
    threads: BTreeSet<(i32, u64)>,
    given: Vec<CpuSet>,
}

impl Known {
    /// Applies a line; a malformed one is ignored.
    pub(in crate::linux) fn take_line(&mut self, line: &str) {
        match Word::from_line(line) {
            Some(Word::Target(target)) => self.target = Some(target),
            Some(Word::Process(pid, mask)) => {
                self.processes.insert(pid, mask);
            }
            Some(Word::Thread(id, start)) => {
                self.threads.insert((id, start));
            }
            Some(Word::Given(mask)) => self.given.push(mask),
            Some(Word::Over) => self.given.clear(),
            None => {}
        }
    }

    /// Gives new threads with a mask of the placement the one that they would have had without it.
    fn pass(&self) {
        let threads = self.target.iter().flat_map(Target::threads);
        for thread in threads {
            let Some(start) = stat(thread.id).map(|stat| stat.start) else {
                continue;
            };
            let is_new = !self.threads.contains(&(thread.id, start));
            let now = sys::affinity_of(thread.id).ok();
            if is_new
                && now.is_some_and(|now| self.given.contains(&now))
                && let Some(before) = ancestor_in(&self.processes, thread.process)
            {
                let _ = sys::set_affinity_of(thread.id, &before);
            }
        }
    }

    /// Searches for such threads until no new ones can appear.
    pub(in crate::linux) fn sweep(&self) {
        if !self.given.is_empty() {
            for _ in 0..PASSES {
                self.pass();
                std::thread::sleep(STEP);
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
        let mut known = Known::default();
        output.lines().for_each(|line| known.take_line(line));
        assert_eq!(known.threads, BTreeSet::from([(5, 17), (6, 18)]));
        assert_eq!(known.given, [CpuSet::single(2)]);
        assert_eq!(known.processes.len(), 1);
        assert!(known.target.is_none());
    }

    proptest! {
        #[test]
        fn words_are_reported_and_any_line_is_read(id in 1i32.., start in 0u64.., cpus in prop::collection::btree_set(0usize..300, 1..9), line in "(target |process |given )?\\PC{0,40}") {
            let cpus: CpuSet = cpus.into_iter().collect();
            for word in [Word::Process(id, cpus.clone()), Word::Thread(id, start), Word::Given(cpus.clone()), Word::Over] {
                prop_assert_eq!(Word::from_line(word.to_line().trim_end()), Some(word));
            }
            let _ = Word::from_line(&line);
        }
    }
}
