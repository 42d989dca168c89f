//! The seam to running processes: what rules ask of them, how they are placed and restored.
//!
//! Everything above these traits runs on a real host and on a list of made-up processes alike. A
//! task is touched only if its CPUs are the default ones (all that its cpuset allows) or those that
//! it was given here: any others were set on purpose.

use std::collections::BTreeMap;
use std::io;

use pinwise_topology::CpuSet;
use pinwise_workload::rules;

/// Ancestors checked until one is known.
const MAX_ANCESTORS: usize = 64;
/// Passes over a process's threads until one finds nothing new.
const PASSES: usize = 8;

/// Identifies a process: its id may be reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its start time, ticks since boot.
    pub start: u64,
    /// Its parent's number.
    pub parent: i32,
    /// The name that the process chose.
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
    /// Another error.
    #[error("{0}")]
    System(String),
}

/// The processes of a host.
pub trait Processes {
    /// Facts about a process for rules.
    type Facts: rules::Process;

    /// All processes, by number.
    fn all(&mut self) -> Vec<i32>;
    /// The facts about a process.
    fn facts(&mut self, process: i32) -> Self::Facts;
    /// Identifies a process; `None` if it ended or is the kernel's own.
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
    /// The CPUs of an unconfined process: all online ones that its cpuset allows.
    fn default_mask(&mut self, process: i32) -> Option<CpuSet>;
}

/// A process that has CPUs or a nice value from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuledProcess {
    /// Its number.
    pub process: i32,
    /// Its start time, ticks since boot.
    pub start: u64,
    /// Masks given to its threads, the last in force. They had the default one before.
    pub masks: Vec<CpuSet>,
    /// Nice values given to its threads, the last in force. They had 0 before.
    pub nices: Vec<i32>,
    /// Threads that already had one of these masks, and keep it.
    pub own_masks: Vec<i32>,
    /// Threads that already had one of these nice values.
    pub own_nices: Vec<i32>,
}

impl RuledProcess {
    /// An entry of a process that was given nothing so far.
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

/// Records what each process is about to be given.
pub trait HeldJournal {
    /// Records an entry, in place of an older one of the process.
    ///
    /// # Errors
    /// If it could not be written: then nothing may be changed.
    fn note(&mut self, held: &RuledProcess) -> io::Result<()>;
    /// Records that a process has nothing from here any more.
    ///
    /// # Errors
    /// If it could not be written; a superfluous entry does no harm.
    fn forget(&mut self, process: i32, start: u64) -> io::Result<()>;
}

/// New events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// Processes that executed a program, or changed their user.
    pub started: Vec<i32>,
    /// All processes should be checked: it is time, or an event was missed.
    pub look: bool,
    /// The rules should be read again.
    pub reload: bool,
    /// It is time to end.
    pub stop: bool,
}

/// Reports new processes.
pub trait Watch {
    /// Waits for an event and returns what is there.
    ///
    /// # Errors
    /// If no further events will come.
    fn next(&mut self) -> io::Result<Heard>;
    /// Should processes that change their user be reported, too?
    ///
    /// # Errors
    /// If that is not available.
    fn report_user_changes(&mut self, are_wanted: bool) -> io::Result<()>;
}

/// Every CPU there may ever be: the kernel keeps only those that the cpuset allows and remembers
/// the request, so a thread with this mask is as if it had never been placed.
#[must_use]
pub fn every_cpu() -> CpuSet {
    CpuSet::first_n(8192)
}

/// Calls `change` for every thread of a process, also for those started meanwhile by threads that
/// were not changed yet.
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

/// Restores CPUs and nice values of processes and of those that inherited them, but only of threads
/// that still have what they were given here. Returns the processes with the number of threads
/// restored.
pub fn give_back<P: Processes>(host: &mut P, all: &[RuledProcess]) -> Vec<(i32, usize)> {
    let mut living: BTreeMap<i32, &RuledProcess> = BTreeMap::new();
    for held in all {
        let identity = host.identity(held.process);
        if identity.is_some_and(|identity| identity.start == held.start) {
            living.insert(held.process, held);
        }
    }
    let mut given = Vec::new();
    // Parents are found by number, so inheritors are recorded before anything is changed.
    let heirs = find_inheritors(host, &living);
    let own = living.iter().map(|(&process, &held)| (process, held));
    for (process, held) in own.chain(heirs) {
        let count = release(host, process, held);
        if count > 0 {
            given.push((process, count));
        }
    }
    given
}

/// Processes without an entry that have what an ancestor with one was given.
fn find_inheritors<'a, P: Processes>(
    host: &mut P,
    living: &BTreeMap<i32, &'a RuledProcess>,
) -> Vec<(i32, &'a RuledProcess)> {
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
        for _ in 0..MAX_ANCESTORS {
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

/// Restores the threads of one process.
pub fn release<P: Processes>(host: &mut P, process: i32, held: &RuledProcess) -> usize {
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
