//! The seam to processes that run already: what rules ask of them, how they are
//! placed, and how they are given back.
//!
//! Everything above these traits runs on a real host and on a list of made-up
//! processes alike. A task is touched only where its CPUs are the default ones
//! (all that its cpuset allows) or those that it was given here: whoever set
//! other ones meant it.

use std::collections::BTreeMap;
use std::io;

use pinwise_topology::CpuSet;
use pinwise_workload::rules;

/// Ancestors that are looked at until one is known.
const DEEPEST: usize = 64;
/// Passes over a process's threads until one finds nothing new.
const PASSES: usize = 8;

/// Which process it is: its number may come again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// When it was started, ticks since boot.
    pub start: u64,
    /// Its parent's number.
    pub parent: i32,
    /// What it calls itself; chosen by the process.
    pub name: String,
}

/// Why a thread was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It ended.
    #[error("it ended")]
    Gone,
    /// It belongs to someone else.
    #[error("it belongs to another user (CAP_SYS_NICE would permit it)")]
    NotPermitted,
    /// Something else.
    #[error("{0}")]
    System(String),
}

/// The processes of a host.
pub trait Processes {
    /// What rules ask of one.
    type Facts: rules::Process;

    /// The processes that there are, by number.
    fn all(&mut self) -> Vec<i32>;
    /// What rules ask of a process.
    fn facts(&mut self, process: i32) -> Self::Facts;
    /// Which process it is; `None` where it ended or is the kernel's own.
    fn identity(&mut self, process: i32) -> Option<Identity>;
    /// A process's threads.
    fn threads(&mut self, process: i32) -> Vec<i32>;
    /// The CPUs that a thread may use.
    fn mask(&mut self, thread: i32) -> Option<CpuSet>;
    /// Sets them.
    ///
    /// # Errors
    /// [`Refused`]; then nothing was changed.
    fn set_mask(&mut self, thread: i32, cpus: &CpuSet) -> Result<(), Refused>;
    /// A thread's nice value.
    fn nice(&mut self, thread: i32) -> Option<i32>;
    /// Sets it.
    ///
    /// # Errors
    /// [`Refused`]; then nothing was changed.
    fn set_nice(&mut self, thread: i32, nice: i32) -> Result<(), Refused>;
    /// The CPUs of a process that nobody confined: all online ones that its
    /// cpuset allows.
    fn default_mask(&mut self, process: i32) -> Option<CpuSet>;
}

/// A process that has CPUs or a nice value from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its number.
    pub process: i32,
    /// When it was started, ticks since boot.
    pub start: u64,
    /// Masks that its threads were given, the last in force. They had the
    /// default one before.
    pub masks: Vec<CpuSet>,
    /// Nice values that its threads were given, the last in force. They had 0
    /// before.
    pub nices: Vec<i32>,
    /// Threads that had one of these masks themselves before, and so keep it.
    pub own_masks: Vec<i32>,
    /// Threads that had one of these nice values themselves.
    pub own_nices: Vec<i32>,
}

impl Held {
    /// Of a process that was given nothing so far.
    #[must_use]
    pub const fn new(process: i32, start: u64) -> Self {
        Self {
            process,
            start,
            masks: Vec::new(),
            nices: Vec::new(),
            own_masks: Vec::new(),
            own_nices: Vec::new(),
        }
    }

    /// Does a thread have something from here?
    #[must_use]
    pub fn is_on(&self, thread: i32, mask: &CpuSet, nice: Option<i32>) -> bool {
        self.gave_mask(thread, mask) || nice.is_some_and(|nice| self.gave_nice(thread, nice))
    }

    /// Does a thread have its CPUs from here?
    #[must_use]
    pub fn gave_mask(&self, thread: i32, mask: &CpuSet) -> bool {
        self.masks.contains(mask) && !self.own_masks.contains(&thread)
    }

    /// Does a thread have its nice value from here?
    #[must_use]
    pub fn gave_nice(&self, thread: i32, nice: i32) -> bool {
        self.nices.contains(&nice) && !self.own_nices.contains(&thread)
    }
}

/// Where it is written down who has what from here, before it is given.
pub trait HeldJournal {
    /// Writes an entry down, in place of an older one of the process.
    ///
    /// # Errors
    /// Where it could not be written: then nothing may be changed.
    fn note(&mut self, held: &Held) -> io::Result<()>;
    /// A process has nothing from here any more.
    ///
    /// # Errors
    /// Where it could not be written; an entry too many does no harm.
    fn forget(&mut self, process: i32, start: u64) -> io::Result<()>;
}

/// What came in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// Processes that began a program, or changed their user.
    pub started: Vec<i32>,
    /// All processes are to be looked at: it is time, or something was missed.
    pub look: bool,
    /// The rules are to be read again.
    pub reload: bool,
    /// It is time to leave.
    pub stop: bool,
}

/// What reports new processes.
pub trait Watch {
    /// Waits for something and takes what there is.
    ///
    /// # Errors
    /// Where nothing will be heard any more.
    fn next(&mut self) -> io::Result<Heard>;
    /// Should it report processes that change their user, too?
    ///
    /// # Errors
    /// Where that is not available.
    fn report_user_changes(&mut self, are_wanted: bool) -> io::Result<()>;
}

/// Every CPU that there may ever be: as the kernel keeps only those that the
/// cpuset allows, and remembers the wish, a thread with it is as if it had never
/// been placed.
#[must_use]
pub fn every_cpu() -> CpuSet {
    CpuSet::first_n(8192)
}

/// Calls `change` for every thread of a process, also for those that are
/// started meanwhile by threads that were not changed yet.
pub fn for_each_thread<P: Processes + ?Sized>(
    host: &mut P,
    process: i32,
    mut change: impl FnMut(&mut P, i32),
) {
    let mut seen: Vec<i32> = Vec::new();
    for _ in 0..PASSES {
        let fresh: Vec<i32> = host.threads(process);
        let mut is_news = false;
        for thread in fresh {
            if !seen.contains(&thread) {
                change(host, thread);
                seen.push(thread);
                is_news = true;
            }
        }
        if !is_news {
            return;
        }
    }
}

/// Gives processes their CPUs and nice values back, and those that inherited
/// them: threads that still are as they were made here, nobody else. Returns
/// the processes with the number of their threads that were given something
/// back.
pub fn give_back<P: Processes>(host: &mut P, all: &[Held]) -> Vec<(i32, usize)> {
    let mut living: BTreeMap<i32, &Held> = BTreeMap::new();
    for held in all {
        let identity = host.identity(held.process);
        if identity.is_some_and(|identity| identity.start == held.start) {
            living.insert(held.process, held);
        }
    }
    let mut given = Vec::new();
    // Parents are found by number, so who inherited is recorded before anything is
    // changed.
    let heirs = heirs(host, &living);
    let own = living.iter().map(|(&process, &held)| (process, held));
    for (process, held) in own.chain(heirs) {
        let count = release(host, process, held);
        if count > 0 {
            given.push((process, count));
        }
    }
    given
}

/// Processes that have no entry, but what an ancestor with one was given.
fn heirs<'a, P: Processes>(host: &mut P, living: &BTreeMap<i32, &'a Held>) -> Vec<(i32, &'a Held)> {
    let mut found = Vec::new();
    for process in host.all() {
        if living.contains_key(&process) {
            continue;
        }
        let (mask, nice) = (host.mask(process), host.nice(process));
        let Some(mask) =
            mask.filter(|mask| living.values().any(|held| held.is_on(process, mask, nice)))
        else {
            continue;
        };
        let mut at = process;
        for _ in 0..DEEPEST {
            let Some(identity) = host.identity(at) else {
                break;
            };
            if let Some(held) = living.get(&identity.parent) {
                if held.is_on(process, &mask, nice) {
                    found.push((process, *held));
                }
                break;
            }
            at = identity.parent;
        }
    }
    found
}

/// Gives the threads of one process back what they have from here.
pub fn release<P: Processes>(host: &mut P, process: i32, held: &Held) -> usize {
    let mut count = 0;
    let every = every_cpu();
    for_each_thread(host, process, |host, thread| {
        let mask = host.mask(thread);
        let is_placed = mask.is_some_and(|mask| held.gave_mask(thread, &mask));
        let is_back = is_placed && host.set_mask(thread, &every).is_ok();
        let nice = host.nice(thread);
        let is_niced = nice.is_some_and(|nice| held.gave_nice(thread, nice));
        let is_nice_back = is_niced && host.set_nice(thread, 0).is_ok();
        count += usize::from(is_back || is_nice_back);
    });
    count
}
