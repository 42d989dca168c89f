//! The interface to running processes, for rules: reading facts about them, placing and restoring
//! them.
//!
//! Callers of these traits work on a real host and on a list of fake processes alike. A thread is
//! changed only if its CPUs are the default ones (all that its cpuset allows) or those that a rule
//! gave it: any others were set on purpose.

use std::collections::BTreeMap;
use std::io;

use pinwise_topology::CpuSet;
use pinwise_workload::rules;

/// Most ancestors that are checked for an entry.
const MAX_ANCESTORS: usize = 64;
/// Most passes over a process's threads while each finds new ones.
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
    /// Sets the CPUs that a thread may use.
    ///
    /// # Errors
    /// [`Refused`]; then nothing was changed.
    fn set_mask(&mut self, thread: i32, cpus: &CpuSet) -> Result<(), Refused>;
    /// A thread's nice value.
    fn nice(&mut self, thread: i32) -> Option<i32>;
    /// Sets a thread's nice value.
    ///
    /// # Errors
    /// [`Refused`]; then nothing was changed.
    fn set_nice(&mut self, thread: i32, nice: i32) -> Result<(), Refused>;
    /// The CPUs of an unconfined process: all online ones that its cpuset allows.
    fn default_mask(&mut self, process: i32) -> Option<CpuSet>;
}

/// A process to which rules gave CPUs or a nice value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuledProcess {
    /// Its number.
    pub process: i32,
    /// Its start time, ticks since boot.
    pub start: u64,
    /// Masks that its threads were given, oldest first; the last is in force. Before, they had the
    /// default mask.
    pub masks: Vec<CpuSet>,
    /// Nice values that its threads were given, oldest first; the last is in force. Before, they
    /// had 0.
    pub nices: Vec<i32>,
    /// Threads that already had one of these masks of their own, and keep it.
    pub own_masks: Vec<i32>,
    /// Threads that already had one of these nice values of their own, and keep it.
    pub own_nices: Vec<i32>,
}

impl RuledProcess {
    /// An entry for a process that was given nothing so far.
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

    /// Does a thread have its CPUs or its nice value from a rule?
    #[must_use]
    pub fn gave_mask_or_nice(&self, thread: i32, mask: &CpuSet, nice: Option<i32>) -> bool {
        self.gave_mask(thread, mask) || nice.is_some_and(|nice| self.gave_nice(thread, nice))
    }

    /// Does a thread have its CPUs from a rule?
    #[must_use]
    pub fn gave_mask(&self, thread: i32, mask: &CpuSet) -> bool {
        self.masks.contains(mask) && !self.own_masks.contains(&thread)
    }

    /// Does a thread have its nice value from a rule?
    #[must_use]
    pub fn gave_nice(&self, thread: i32, nice: i32) -> bool {
        self.nices.contains(&nice) && !self.own_nices.contains(&thread)
    }
}

/// Records what a process is about to be given, before it is given.
pub trait HeldJournal {
    /// Records an entry, in place of an older one of the process.
    ///
    /// # Errors
    /// If it could not be written: then nothing may be changed.
    fn note(&mut self, held: &RuledProcess) -> io::Result<()>;
    /// Records that a process has nothing from rules any more.
    ///
    /// # Errors
    /// If it could not be written; a superfluous entry does no harm.
    fn forget(&mut self, process: i32, start: u64) -> io::Result<()>;
}

/// What a [`Watch`] reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchEvents {
    /// Processes that executed a program, or changed their user.
    pub started: Vec<i32>,
    /// All processes should be checked: the interval is over, or an event was missed.
    pub look: bool,
    /// The rules should be read again.
    pub reload: bool,
    /// The user or the system asks pinwise to stop.
    pub stop: bool,
}

/// Reports new processes.
pub trait Watch {
    /// Waits for events and returns them.
    ///
    /// # Errors
    /// If no further events will come.
    fn next(&mut self) -> io::Result<WatchEvents>;
    /// Should processes that change their user be reported, too?
    ///
    /// # Errors
    /// If that is not available.
    fn report_user_changes(&mut self, are_wanted: bool) -> io::Result<()>;
}

/// A mask of all possible CPUs. The kernel applies only those that the cpuset allows and remembers
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
        let threads: Vec<i32> = host.threads(process);
        let mut has_new = false;
        for thread in threads {
            if !seen.contains(&thread) {
                change(host, thread);
                seen.push(thread);
                has_new = true;
            }
        }
        if !has_new {
            return;
        }
    }
}

/// Restores CPUs and nice values of processes and of those that inherited them, but only of threads
/// that still have what a rule gave them. Returns the processes with the number of threads
/// restored.
pub fn restore_processes<P: Processes>(host: &mut P, ruled: &[RuledProcess]) -> Vec<(i32, usize)> {
    let mut living: BTreeMap<i32, &RuledProcess> = BTreeMap::new();
    for held in ruled {
        let identity = host.identity(held.process);
        if identity.is_some_and(|identity| identity.start == held.start) {
            living.insert(held.process, held);
        }
    }
    let mut restored = Vec::new();
    // Parents are found by number, so inheritors are recorded before anything is changed.
    let inheritors = find_inheritors(host, &living);
    let own = living.iter().map(|(&process, &held)| (process, held));
    for (process, held) in own.chain(inheritors) {
        let count = restore_process(host, process, held);
        if count > 0 {
            restored.push((process, count));
        }
    }
    restored
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
        let Some(mask) = mask.filter(|mask| {
            living
                .values()
                .any(|held| held.gave_mask_or_nice(process, mask, nice))
        }) else {
            continue;
        };
        let mut descendant = process;
        for _ in 0..MAX_ANCESTORS {
            let Some(identity) = host.identity(descendant) else {
                break;
            };
            if let Some(held) = living.get(&identity.parent) {
                if held.gave_mask_or_nice(process, &mask, nice) {
                    found.push((process, *held));
                }
                break;
            }
            descendant = identity.parent;
        }
    }
    found
}

/// Restores the threads of one process; returns how many were restored.
pub fn restore_process<P: Processes>(host: &mut P, process: i32, held: &RuledProcess) -> usize {
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
