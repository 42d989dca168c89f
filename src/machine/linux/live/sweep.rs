//! Threads that nobody had seen when pinwise was killed.
//!
//! [`Pins`](crate::machine::linux::Pins) gives back what was placed by name. A
//! thread that began a moment before a SIGKILL inherited the placement's mask
//! and is on no list. A second process, told what is known, looks for such
//! threads when its pipe closes: they belong to the target, are new, and have
//! a mask of the placement.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

use super::process::{ancestor_in, stat};
use super::target::Target;
use crate::machine::linux::{orphan, sys};
use crate::topology::CpuSet;

/// Passes over the threads after the end, and the time between them: whoever
/// may still start threads gets its own mask back within the first.
const PASSES: usize = 20;
const STEP: Duration = Duration::from_millis(25);

/// The process that looks for threads nobody has seen.
#[derive(Debug)]
pub struct Sweeper {
    lifeline: File,
}

/// What it is told, a line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// Whose threads.
    Target(Target),
    /// What the first thread of a process had before.
    Process(i32, CpuSet),
    /// A thread that is known, and when it was started.
    Thread(i32, u64),
    /// A mask that threads have under the present placement.
    Given(CpuSet),
    /// No placement is in force any more.
    Over,
}

impl Sweeper {
    /// Starts it. Call while this process has a single thread, and before it
    /// becomes the parent of orphans.
    ///
    /// # Errors
    /// Where the system has no pipe or process for it.
    pub fn start() -> io::Result<Self> {
        let lifeline = orphan::start(c"pinwise-sweep", None, sweep)?;
        Ok(Self {
            lifeline: File::from(lifeline),
        })
    }

    /// Tells it. Where it is gone, the pins still have their guardian.
    pub(super) fn tell(&mut self, word: &Word) {
        let _ = self.lifeline.write_all(word.to_line().as_bytes());
    }
}

impl Word {
    fn to_line(&self) -> String {
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

/// What the process knows.
#[derive(Debug, Default)]
struct Known {
    target: Option<Target>,
    processes: BTreeMap<i32, CpuSet>,
    threads: BTreeSet<(i32, u64)>,
    given: Vec<CpuSet>,
}

impl Known {
    /// Reads until the other end closes.
    fn listen(pipe: impl Read) -> Self {
        let mut known = Self::default();
        let mut reader = BufReader::new(pipe);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            let word = line.strip_suffix('\n').and_then(Word::from_line);
            known.take(word);
            line.clear();
        }
        known
    }

    fn take(&mut self, word: Option<Word>) {
        match word {
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

    /// Gives new threads with a mask of the placement what they would have had
    /// without it.
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
}

/// The process's life.
fn sweep() {
    let known = Known::listen(io::stdin().lock());
    if !known.given.is_empty() {
        for _ in 0..PASSES {
            known.pass();
            std::thread::sleep(STEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_told_is_known() {
        let told = "process 5 0-3\nthread 5 17\nthread 6 18\ngiven 1\nover\ngiven 2\nnonsense\nthread 7 x\ncut 1";
        let known = Known::listen(told.as_bytes());
        assert_eq!(known.threads, BTreeSet::from([(5, 17), (6, 18)]));
        assert_eq!(known.given, [CpuSet::single(2)]);
        assert_eq!(known.processes.len(), 1);
        assert!(known.target.is_none());
    }

    proptest! {
        #[test]
        fn words_are_told_and_any_line_is_read(id in 1i32.., start in 0u64.., cpus in prop::collection::btree_set(0usize..300, 1..9), line in "(target |process |given )?\\PC{0,40}") {
            let cpus: CpuSet = cpus.into_iter().collect();
            for word in [Word::Process(id, cpus.clone()), Word::Thread(id, start), Word::Given(cpus.clone()), Word::Over] {
                prop_assert_eq!(Word::from_line(word.to_line().trim_end()), Some(word));
            }
            let _ = Word::from_line(&line);
        }
    }
}
