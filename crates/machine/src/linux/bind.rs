//! Binds every thread of a command to a CPU of its own before the thread's
//! first instruction: threads are traced, and a new one stops before it
//! begins.
//!
//! ```text
//! creator   ──clone──┤ event: gives the new thread's id ├──────────────►
//! new thread         └─┤ stopped; sched_setaffinity ├── first instruction
//! ```
//!
//! The whole tree is followed, through fork, vfork, clone and exec, static and Go programs
//! included; no system call is traced, and a thread that runs is not touched. Threads get the CPUs
//! of [`Binding::order`] in the order of their creation, round robin; the first goes to the
//! command's main thread.
//!
//! It does not poll: ptrace reports its stops by SIGCHLD. It must be used by the
//! thread that seized the command.

pub(super) mod calls;
pub(super) mod coverage;
pub(super) mod ptrace;
pub(super) mod refusal;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use super::process_stat::{self, ProcessStat};
use super::sys;
use crate::{Binding, Coverage};
use coverage::Tally;
use pinwise_topology::CpuSet;
use ptrace::{Next, Orphans, Stop};

/// A traced thread.
#[derive(Debug, Clone, Copy)]
struct Thread {
    /// The CPU that it was bound to; `None` if binding had ended.
    cpu: Option<usize>,
    /// Has its creator reported it? Its own first stop can come before that.
    is_announced: bool,
    /// Has it stopped before its first instruction?
    has_arrived: bool,
    /// Has it created other threads?
    is_creator: bool,
    /// Its process, which is the thread itself if it is the first; `None` until its creator reports
    /// it.
    process: Option<libc::pid_t>,
}

impl Thread {
    const UNKNOWN: Self = Self {
        cpu: None,
        is_announced: false,
        has_arrived: false,
        is_creator: false,
        process: None,
    };
}

/// A child that has ended.
#[derive(Debug)]
pub(super) struct Gone {
    pub(super) pid: libc::pid_t,
    pub(super) status: libc::c_int,
    pub(super) usage: libc::rusage,
    /// Is it a process that we must reap, rather than a thread or a process whose own parent will?
    pub(super) is_own: bool,
}

/// Binds the threads of one command.
#[derive(Debug)]
pub(super) struct Binder {
    order: Vec<usize>,
    all: CpuSet,
    next: usize,
    threads: BTreeMap<libc::pid_t, Thread>,
    /// Threads that ended before their creator reported them.
    unannounced: BTreeSet<libc::pid_t>,
    tally: Tally,
    orphans: Orphans,
    /// When it ends; `None`: with the last thread.
    until: Option<Duration>,
    is_leaving: bool,
    has_executed: bool,
}

impl Binder {
    /// Takes over a seized command that has yet to execute. It began at `started`.
    pub(super) fn new(
        binding: &Binding,
        first: libc::pid_t,
        started: Duration,
        orphans: Orphans,
    ) -> Self {
        let thread = Thread {
            is_announced: true,
            has_arrived: true,
            process: Some(first),
            ..Thread::UNKNOWN
        };
        Self {
            order: binding.order.clone(),
            all: binding.order.iter().copied().collect(),
            next: 0,
            threads: BTreeMap::from([(first, thread)]),
            unannounced: BTreeSet::new(),
            tally: Tally::default(),
            orphans,
            until: binding.settle.map(|settle| started.saturating_add(settle)),
            is_leaving: false,
            has_executed: false,
        }
    }

    /// Has the command executed its program?
    pub(super) const fn has_executed(&self) -> bool {
        self.has_executed
    }

    /// The latest time to wake it.
    pub(super) fn wake(&self) -> Duration {
        self.until
            .filter(|_| !self.is_leaving)
            .unwrap_or(Duration::MAX)
    }

    /// Reaps one child that has ended; `None` if there is none now. `sleeps`: waits for one. An
    /// error if no child is left.
    pub(super) fn next_gone(&mut self, sleeps: bool) -> io::Result<Option<Gone>> {
        loop {
            match self.step(sleeps)? {
                Next::Stop(_) => {}
                Next::Nothing => return Ok(None),
                Next::End(pid) => {
                    if let Some(gone) = self.bury(pid) {
                        return Ok(Some(gone));
                    }
                }
            }
        }
    }

    /// Handles the next event, but reaps nothing.
    pub(super) fn step(&mut self, sleeps: bool) -> io::Result<Next> {
        if self.wake() != Duration::MAX && sys::monotonic() >= self.wake() {
            self.leave();
        }
        let next = ptrace::next(sleeps)?;
        if let Next::Stop(thread) = next
            && let Some(stop) = ptrace::take_stop(thread)
        {
            self.answer(stop);
        }
        Ok(next)
    }

    /// Reaps a child that has ended.
    pub(super) fn bury(&mut self, pid: libc::pid_t) -> Option<Gone> {
        let ended = self.threads.get(&pid).copied();
        // A traced process is reported twice, first to us and then to its own parent; once if we
        // are the parent.
        let is_own = match ended.map(|thread| thread.process) {
            Some(Some(process)) if process != pid => false,
            Some(_) => is_child(pid),
            None => true,
        };
        if let Some(thread) = ended {
            self.look(pid, thread);
        }
        let (status, usage) = ptrace::take(pid)?;
        self.forget(pid);
        Some(Gone {
            pid,
            status,
            usage,
            is_own,
        })
    }

    /// A thread has ended. Its creator may still report it.
    fn forget(&mut self, id: libc::pid_t) {
        let ended = self.threads.remove(&id);
        if ended.is_some_and(|thread| !thread.is_announced) {
            self.unannounced.insert(id);
        }
    }

    /// The coverage so far, including running threads.
    pub(super) fn coverage(&self) -> Coverage {
        let mut tally = self.tally.clone();
        for (&id, thread) in &self.threads {
            if let Some(cpu) = thread.cpu {
                tally.look(id, cpu, thread.process);
            }
        }
        tally.coverage()
    }

    /// Handles a stop and resumes the thread.
    fn answer(&mut self, stop: Stop) {
        if !stop.is_traced {
            return;
        }
        let thread = stop.thread;
        match stop.event {
            0 => return self.go_on(thread, stop.signal),
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.note_new_thread(thread, stop.event == libc::PTRACE_EVENT_CLONE);
            }
            libc::PTRACE_EVENT_EXEC => self.note_exec(thread),
            libc::PTRACE_EVENT_EXIT => self.note_ending_process(thread),
            libc::PTRACE_EVENT_STOP => {
                self.arrive(thread);
                if is_stopping(stop.signal) && !self.is_leaving {
                    return ptrace::listen(thread);
                }
            }
            _ => {}
        }
        self.go_on(thread, 0);
    }

    fn go_on(&mut self, thread: libc::pid_t, signal: libc::c_int) {
        if !self.is_leaving {
            return ptrace::go_on(thread, signal);
        }
        if let Some(left) = self.threads.remove(&thread) {
            self.release(thread, left);
        }
        ptrace::detach(thread, signal);
    }

    /// A thread has created another, which gets its number now.
    fn note_new_thread(&mut self, creator: libc::pid_t, is_thread: bool) {
        if let Some(new) = ptrace::message(creator) {
            self.announce(creator, new, is_thread);
        }
    }

    fn announce(&mut self, creator: libc::pid_t, new: libc::pid_t, is_thread: bool) {
        let mut process = None;
        if let Some(thread) = self.threads.get_mut(&creator) {
            thread.is_creator = true;
            process = thread.process;
        }
        if self.unannounced.remove(&new) {
            return;
        }
        if !is_thread {
            process = Some(new);
        }
        let thread = self.entry_of(new);
        thread.is_announced = true;
        thread.process = process;
    }

    /// The state of a thread; a new one is numbered.
    fn entry_of(&mut self, id: libc::pid_t) -> &mut Thread {
        let is_known = self.threads.contains_key(&id);
        let cpu = if is_known { None } else { self.next_cpu() };
        self.threads.entry(id).or_insert(Thread {
            cpu,
            ..Thread::UNKNOWN
        })
    }

    /// A thread has stopped; a new one has not run its first instruction and now gets its CPU.
    /// Binding it while it sleeps is cheap; a running thread would have to be pushed off its
    /// creator's CPU.
    fn arrive(&mut self, id: libc::pid_t) {
        let thread = self.entry_of(id);
        if std::mem::replace(&mut thread.has_arrived, true) {
            return;
        }
        let thread = *thread;
        // A thread that the kernel does not bind shows in the coverage. If binding has stopped, this
        // one has inherited its creator's single CPU.
        let own = thread.cpu.map(CpuSet::single);
        let _ = sys::set_affinity_of(id, own.as_ref().unwrap_or(&self.all));
        if let Some(process) = thread.process {
            ptrace::set_kind(id, process == id, self.orphans);
        }
    }

    /// The CPU of the next thread; `None` if binding has stopped.
    fn next_cpu(&mut self) -> Option<usize> {
        if self.is_leaving || self.order.is_empty() {
            return None;
        }
        let cpu = self.order[self.next % self.order.len()];
        self.next += 1;
        Some(cpu)
    }

    /// A process is about to end: the last moment to read its figures.
    fn note_ending_process(&mut self, id: libc::pid_t) {
        let own = self.threads.iter().filter(|(_, t)| t.process == Some(id));
        let own = own.filter_map(|(&thread, known)| Some((thread, known.cpu?)));
        self.tally.name(id, own);
    }

    /// Checks a thread for the last time.
    fn look(&mut self, id: libc::pid_t, thread: Thread) {
        if let Some(cpu) = thread.cpu {
            self.tally.look(id, cpu, thread.process);
        }
    }

    /// A thread has executed a program. If it was not its process's first, it now is, under that
    /// id.
    fn note_exec(&mut self, id: libc::pid_t) {
        if let Some(former) = ptrace::message(id)
            && former != id
            && let Some(thread) = self.threads.remove(&former)
        {
            let process = Some(id);
            self.threads.insert(id, Thread { process, ..thread });
            ptrace::set_kind(id, true, self.orphans);
        }
        if !std::mem::replace(&mut self.has_executed, true) {
            let cpu = self.next_cpu();
            if let Some(cpu) = cpu {
                let _ = sys::set_affinity_of(id, &CpuSet::single(cpu));
            }
            if let Some(first) = self.threads.get_mut(&id) {
                first.cpu = cpu;
            }
            self.tally.begin(id);
        }
    }

    /// Releases all threads, each as soon as it stops.
    fn leave(&mut self) {
        self.is_leaving = true;
        for &thread in self.threads.keys() {
            ptrace::interrupt(thread);
        }
    }

    /// Stops tracing a thread. Threads that it creates later would inherit its single CPU, so a
    /// creator gets all CPUs back.
    fn release(&mut self, id: libc::pid_t, thread: Thread) {
        let Some(cpu) = thread.cpu else { return };
        self.look(id, thread);
        if thread.is_creator && sys::affinity_of(id).is_ok_and(|mask| mask == CpuSet::single(cpu)) {
            let _ = sys::set_affinity_of(id, &self.all);
        }
    }
}

/// Signals that stop a process instead of ending it.
const fn is_stopping(signal: libc::c_int) -> bool {
    matches!(
        signal,
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU
    )
}

/// Is this process the parent of that one?
fn is_child(pid: libc::pid_t) -> bool {
    let line = process_stat::line_of(pid).unwrap_or_default();
    let parent = ProcessStat::parse(&line).and_then(|stat| stat.parent());
    parent.and_then(|parent| u32::try_from(parent).ok()) == Some(std::process::id())
}
