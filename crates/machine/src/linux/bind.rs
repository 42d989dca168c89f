//! Binds every thread of a command to a CPU of its own before the thread's
//! first instruction: threads are traced, and a new one stops before it
//! begins.
//!
//! ```text
//! creator   ──clone──┤ event: gives the new thread's id ├──────────────►
//! new thread         └─┤ stopped; sched_setaffinity ├── first instruction
//! ```
//!
//! The whole process tree is followed through fork, vfork, clone and exec, including static and Go
//! programs. System calls are not traced, and a running thread is not touched. Threads get the CPUs
//! of [`Binding::order`] in the order of their creation, round robin; the first goes to the
//! command's main thread.
//!
//! It does not poll: ptrace reports stops by SIGCHLD. Only the thread that seized the command may
//! use it.

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
use ptrace::{ChildEvent, Orphans, Stop};

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

/// A child that has ended and was reaped.
#[derive(Debug)]
pub(super) struct ReapedChild {
    pub(super) pid: libc::pid_t,
    pub(super) status: libc::c_int,
    pub(super) usage: libc::rusage,
    /// Is it a child process of pinwise, rather than a traced thread or a process that its own
    /// parent reaps as well?
    pub(super) is_own: bool,
}

/// Binds the threads of one command.
#[derive(Debug)]
pub(super) struct Binder {
    order: Vec<usize>,
    all_cpus: CpuSet,
    /// Number of CPUs handed out so far.
    next: usize,
    threads: BTreeMap<libc::pid_t, Thread>,
    /// Threads that ended before their creator reported them.
    unannounced: BTreeSet<libc::pid_t>,
    tally: Tally,
    orphans: Orphans,
    /// When binding ends; `None`: with the last thread.
    until: Option<Duration>,
    /// Is each thread released as soon as it stops?
    is_releasing: bool,
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
            all_cpus: binding.order.iter().copied().collect(),
            next: 0,
            threads: BTreeMap::from([(first, thread)]),
            unannounced: BTreeSet::new(),
            tally: Tally::default(),
            orphans,
            until: binding.settle.map(|settle| started.saturating_add(settle)),
            is_releasing: false,
            has_executed: false,
        }
    }

    /// Has the command executed its program?
    pub(super) const fn has_executed(&self) -> bool {
        self.has_executed
    }

    /// The latest time at which [`Self::handle_next_event`] must be called.
    pub(super) fn next_wake(&self) -> Duration {
        self.until
            .filter(|_| !self.is_releasing)
            .unwrap_or(Duration::MAX)
    }

    /// Reaps one child that has ended; `None` if there is none now. With `blocks`, waits for one.
    /// An error if no child exists.
    pub(super) fn reap_next(&mut self, blocks: bool) -> io::Result<Option<ReapedChild>> {
        loop {
            match self.handle_next_event(blocks)? {
                ChildEvent::Stop(_) => {}
                ChildEvent::Nothing => return Ok(None),
                ChildEvent::End(pid) => {
                    if let Some(reaped) = self.reap(pid) {
                        return Ok(Some(reaped));
                    }
                }
            }
        }
    }

    /// Handles the next event, but reaps nothing.
    pub(super) fn handle_next_event(&mut self, blocks: bool) -> io::Result<ChildEvent> {
        if self.next_wake() != Duration::MAX && sys::monotonic() >= self.next_wake() {
            self.release_all();
        }
        let event = ptrace::peek_event(blocks)?;
        if let ChildEvent::Stop(thread) = event
            && let Some(stop) = ptrace::take_stop(thread)
        {
            self.handle_stop(stop);
        }
        Ok(event)
    }

    /// Reaps a child that has ended.
    pub(super) fn reap(&mut self, pid: libc::pid_t) -> Option<ReapedChild> {
        let ended = self.threads.get(&pid).copied();
        // The kernel reports the end of a traced process first to its tracer, then to its parent;
        // only once if both are pinwise.
        let is_own = match ended.map(|thread| thread.process) {
            Some(Some(process)) if process != pid => false,
            Some(_) => is_child(pid),
            None => true,
        };
        if let Some(thread) = ended {
            self.check_thread(pid, thread);
        }
        let (status, usage) = ptrace::reap(pid)?;
        self.forget(pid);
        Some(ReapedChild {
            pid,
            status,
            usage,
            is_own,
        })
    }

    /// Removes a thread that has ended. Its creator may still report it.
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
                tally.check_thread(id, cpu, thread.process);
            }
        }
        tally.coverage()
    }

    /// Handles a stop and resumes the thread.
    fn handle_stop(&mut self, stop: Stop) {
        if !stop.is_traced {
            return;
        }
        let thread = stop.thread;
        match stop.event {
            0 => return self.resume(thread, stop.signal),
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                self.note_new_thread(thread, stop.event == libc::PTRACE_EVENT_CLONE);
            }
            libc::PTRACE_EVENT_EXEC => self.note_exec(thread),
            libc::PTRACE_EVENT_EXIT => self.note_ending_process(thread),
            libc::PTRACE_EVENT_STOP => {
                self.bind_new_thread(thread);
                if is_stopping(stop.signal) && !self.is_releasing {
                    return ptrace::listen(thread);
                }
            }
            _ => {}
        }
        self.resume(thread, 0);
    }

    fn resume(&mut self, thread: libc::pid_t, signal: libc::c_int) {
        if !self.is_releasing {
            return ptrace::resume(thread, signal);
        }
        if let Some(released) = self.threads.remove(&thread) {
            self.release(thread, released);
        }
        ptrace::detach(thread, signal);
    }

    /// Notes that a thread has created another one, whose id the event's message gives.
    fn note_new_thread(&mut self, creator: libc::pid_t, is_thread: bool) {
        if let Some(new) = ptrace::read_event_message(creator) {
            self.add_announced(creator, new, is_thread);
        }
    }

    fn add_announced(&mut self, creator: libc::pid_t, new: libc::pid_t, is_thread: bool) {
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
        let thread = self.thread_entry(new);
        thread.is_announced = true;
        thread.process = process;
    }

    /// The state of a thread; a new thread gets the next CPU.
    fn thread_entry(&mut self, id: libc::pid_t) -> &mut Thread {
        let is_known = self.threads.contains_key(&id);
        let cpu = if is_known { None } else { self.next_cpu() };
        self.threads.entry(id).or_insert(Thread {
            cpu,
            ..Thread::UNKNOWN
        })
    }

    /// Binds a thread at its first stop, before its first instruction. Binding a sleeping thread is
    /// cheap; a running thread would have to be migrated off its creator's CPU.
    fn bind_new_thread(&mut self, id: libc::pid_t) {
        let thread = self.thread_entry(id);
        if std::mem::replace(&mut thread.has_arrived, true) {
            return;
        }
        let thread = *thread;
        // If the kernel does not bind it, the coverage shows that. If binding has ended, the thread
        // has inherited its creator's single CPU and gets all CPUs.
        let own = thread.cpu.map(CpuSet::single);
        let _ = sys::set_affinity_of(id, own.as_ref().unwrap_or(&self.all_cpus));
        if let Some(process) = thread.process {
            ptrace::set_stops(id, process == id, self.orphans);
        }
    }

    /// The CPU for the next thread; `None` if binding has ended.
    fn next_cpu(&mut self) -> Option<usize> {
        if self.is_releasing || self.order.is_empty() {
            return None;
        }
        let cpu = self.order[self.next % self.order.len()];
        self.next += 1;
        Some(cpu)
    }

    /// Checks the threads of a process that is about to end: the last moment at which its program
    /// can be read.
    fn note_ending_process(&mut self, id: libc::pid_t) {
        let own = self.threads.iter().filter(|(_, t)| t.process == Some(id));
        let own = own.filter_map(|(&thread, known)| Some((thread, known.cpu?)));
        self.tally.note_mover(id, own);
    }

    /// Checks for the last time where a thread may run.
    fn check_thread(&mut self, id: libc::pid_t, thread: Thread) {
        if let Some(cpu) = thread.cpu {
            self.tally.check_thread(id, cpu, thread.process);
        }
    }

    /// Notes that a thread has executed a program. It is then the only thread of its process, and
    /// has the process's id.
    fn note_exec(&mut self, id: libc::pid_t) {
        if let Some(former) = ptrace::read_event_message(id)
            && former != id
            && let Some(thread) = self.threads.remove(&former)
        {
            let process = Some(id);
            self.threads.insert(id, Thread { process, ..thread });
            ptrace::set_stops(id, true, self.orphans);
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
    fn release_all(&mut self) {
        self.is_releasing = true;
        for &thread in self.threads.keys() {
            ptrace::interrupt(thread);
        }
    }

    /// Prepares a thread for the end of its tracing. Threads that it creates later would inherit
    /// its single CPU, so a creator gets all CPUs back.
    fn release(&mut self, id: libc::pid_t, thread: Thread) {
        let Some(cpu) = thread.cpu else { return };
        self.check_thread(id, thread);
        if thread.is_creator && sys::affinity_of(id).is_ok_and(|mask| mask == CpuSet::single(cpu)) {
            let _ = sys::set_affinity_of(id, &self.all_cpus);
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

/// Is this process the parent of `pid`?
fn is_child(pid: libc::pid_t) -> bool {
    let line = process_stat::read_line(pid).unwrap_or_default();
    let parent = ProcessStat::parse(&line).and_then(|stat| stat.parent());
    parent.and_then(|parent| u32::try_from(parent).ok()) == Some(std::process::id())
}
