//! Waits for a command's whole process tree, and handles its time-out and the user's signals
//! meanwhile.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use super::bind::Binder;
use super::sys::Reaped;
use super::tree::{self, ThreadSampler};
use super::{LinuxMachine, sys};
use crate::{End, MachineError};

/// Time that processes which outlive the command get to end by themselves.
const GRACE: Duration = Duration::from_secs(1);

/// What woke the supervision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WakeReason {
    /// One of the attendant's descriptors is readable.
    pub(super) has_filled: bool,
    /// A process has ended and is not reaped yet.
    pub(super) has_ended: bool,
}

/// Does further work, such as reading trace buffers, whenever the supervision wakes up.
pub(super) trait Attendant {
    /// Called once, when the command was started.
    fn started(&mut self, pid: libc::pid_t, started: Duration);

    /// Descriptors that wake the supervision when they become readable.
    fn descriptors(&self) -> Vec<RawFd>;

    /// The latest time of the next [`Self::attend`].
    fn next_wake(&self) -> Duration;

    /// May processes that outlive the command continue? Otherwise they are ended.
    fn leaves_daemons(&self) -> bool {
        false
    }

    /// Are the data of an interrupted run useful? Otherwise an interrupt by the user is an error.
    fn keeps_interrupted(&self) -> bool {
        false
    }

    /// Does the work that is due. Returns whether the command may continue; otherwise it is ended
    /// as by its time-out.
    fn attend(&mut self, now: Duration, reason: WakeReason) -> bool;
}

/// No attendant: the command is only waited for.
pub(super) struct NoAttendant;

impl Attendant for NoAttendant {
    fn started(&mut self, _pid: libc::pid_t, _started: Duration) {}

    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    fn next_wake(&self) -> Duration {
        Duration::MAX
    }

    fn attend(&mut self, _now: Duration, _reason: WakeReason) -> bool {
        true
    }
}

/// What a process tree that has ended has used.
pub(super) struct EndedTree {
    pub(super) wall: Duration,
    pub(super) user: Duration,
    pub(super) system: Duration,
    pub(super) max_rss_bytes: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
    pub(super) threads: Option<u32>,
    pub(super) threads_at_work: Option<u32>,
    /// Seconds that threads were ready but had no CPU, if sampled.
    pub(super) queued_s: Option<f64>,
    pub(super) end: End,
    /// Names of the processes that it left running.
    pub(super) left_running: Vec<String>,
}

/// The state of a process tree that is waited for.
struct TreeWatch {
    pid: libc::pid_t,
    started: Duration,
    last_exit: Duration,
    status: Option<libc::c_int>,
    total: EndedTree,
    sampler: ThreadSampler,
    /// Why it is ended early; `None`: it is not.
    cause: Option<KillCause>,
    /// Until when processes are killed again and again; zero: killing has not begun.
    kill_until: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum KillCause {
    TimedOut,
    Interrupted,
    LeftBehind(Vec<String>),
}

impl LinuxMachine {
    /// Waits until the whole tree of the command has ended.
    pub(super) fn supervise(
        &mut self,
        pid: libc::pid_t,
        started: Duration,
        timeout: Option<Duration>,
        closely: bool,
        attendant: &mut dyn Attendant,
    ) -> Result<EndedTree, MachineError> {
        let mut watch = TreeWatch::new(pid, started, closely);
        let deadline = timeout.map(|timeout| started.saturating_add(timeout));
        while self.show_and_reap(&mut watch, attendant) {
            let now = sys::monotonic();
            if watch.is_overdue(now) && attendant.leaves_daemons() {
                let remaining = tree::own_children(&self.spared_children());
                watch.total.left_running = tree::describe(&remaining);
                self.spared.extend(remaining);
                break;
            }
            self.kill_if_due(&mut watch, now, deadline)?;
            let wake = watch.next_wake(deadline).min(attendant.next_wake());
            let binder_wake = self.binder.as_ref().map(Binder::next_wake);
            let wake = wake.min(binder_wake.unwrap_or(Duration::MAX));
            let has_filled = self.wait_until(wake, now, &mut watch, &attendant.descriptors());
            let reason = WakeReason {
                has_filled,
                has_ended: false,
            };
            let may_continue = attendant.attend(sys::monotonic(), reason);
            if !may_continue && watch.cause.is_none() {
                watch.cause = Some(KillCause::TimedOut);
            }
            if watch.status.is_none() {
                watch.sampler.sample(pid, sys::monotonic());
            }
        }
        if watch.cause == Some(KillCause::Interrupted) && !attendant.keeps_interrupted() {
            return Err(MachineError::Interrupted);
        }
        Ok(watch.finish())
    }

    /// Waits for a helper's own process only; processes that it leaves running, such as a server
    /// for the command, are spared from then on.
    pub(super) fn supervise_helper(&mut self, pid: libc::pid_t) -> Result<End, MachineError> {
        let mut watch = TreeWatch::new(pid, sys::monotonic(), false);
        while watch.status.is_none() {
            let has_children = self.reap_all(&mut watch);
            if !has_children || watch.status.is_some() {
                break;
            }
            let now = sys::monotonic();
            self.wait_until(now + GRACE, now, &mut watch, &[]);
            if watch.cause == Some(KillCause::Interrupted) {
                sys::kill(-pid, libc::SIGKILL);
            }
        }
        self.helpers = tree::own_children(&self.spared).into_iter().collect();
        if watch.cause == Some(KillCause::Interrupted) {
            return Err(MachineError::Interrupted);
        }
        Ok(decode_status(watch.status.unwrap_or(0)))
    }

    /// Lets the attendant see ended processes, then reaps them; true while some of the tree remain.
    fn show_and_reap(&mut self, watch: &mut TreeWatch, attendant: &mut dyn Attendant) -> bool {
        if sys::find_ended_child().is_some() {
            let reason = WakeReason {
                has_filled: false,
                has_ended: true,
            };
            attendant.attend(sys::monotonic(), reason);
        }
        self.reap_all(watch)
    }

    /// Reaps all ended children; true while some of the tree remain.
    fn reap_all(&mut self, watch: &mut TreeWatch) -> bool {
        loop {
            let is_own = |pid: &_| !self.helpers.contains(pid) && !self.spared.contains(pid);
            if let Some(ended) = sys::find_ended_child().filter(is_own) {
                watch.sampler.read_times(ended);
            }
            match self.reap_next() {
                Ok(Some(reaped)) => {
                    if !self.helpers.remove(&reaped.pid) && !self.spared.remove(&reaped.pid) {
                        watch.add(&reaped);
                    }
                }
                Ok(None) if self.helpers.is_empty() && self.spared.is_empty() => return true,
                Ok(None) => return !tree::own_children(&self.spared_children()).is_empty(),
                Err(_) => return false,
            }
        }
    }

    /// Reaps a process that has ended; `None` if there is none now. If threads are bound, this also
    /// handles their stops; it does not return threads, or processes with another parent.
    fn reap_next(&mut self) -> io::Result<Option<Reaped>> {
        let Some(binder) = &mut self.binder else {
            return sys::reap();
        };
        while let Some(child) = binder.reap_next(false)? {
            if child.is_own {
                return Ok(Some(Reaped {
                    pid: child.pid,
                    status: child.status,
                    usage: child.usage,
                }));
            }
        }
        Ok(None)
    }

    /// Kills the tree if its time is up, it was interrupted, or it has left processes running for
    /// too long. An error if they do not end.
    fn kill_if_due(
        &self,
        watch: &mut TreeWatch,
        now: Duration,
        deadline: Option<Duration>,
    ) -> Result<(), MachineError> {
        if watch.cause.is_none() {
            if watch.status.is_none() && deadline.is_some_and(|deadline| now >= deadline) {
                watch.cause = Some(KillCause::TimedOut);
            } else if watch.is_overdue(now) {
                let remaining = tree::own_children(&self.spared_children());
                watch.cause = Some(KillCause::LeftBehind(tree::describe(&remaining)));
            }
        }
        if watch.cause.is_none() {
            return Ok(());
        }
        if watch.kill_until.is_zero() {
            watch.kill_until = now + tree::KILL_TIMEOUT;
        }
        if now > watch.kill_until {
            let remaining = tree::describe(&tree::own_children(&self.spared_children()));
            return Err(MachineError::System {
                action: "ending the command's processes".to_owned(),
                reason: format!("{} did not end", remaining.join(", ")),
            });
        }
        tree::kill_tree(watch.pid, &self.spared_children());
        Ok(())
    }

    /// Children that do not belong to the running command.
    fn spared_children(&self) -> BTreeSet<libc::pid_t> {
        self.helpers.union(&self.spared).copied().collect()
    }

    /// Sleeps until something happens or until `wake`, and notes an interrupt by the user. Returns
    /// whether one of the descriptors `others` is readable.
    fn wait_until(
        &mut self,
        wake: Duration,
        now: Duration,
        watch: &mut TreeWatch,
        others: &[RawFd],
    ) -> bool {
        let streams = self.streams.reading_ends().into_iter().flatten();
        let own: Vec<RawFd> = [self.signals.as_raw_fd()]
            .into_iter()
            .chain(streams)
            .collect();
        let descriptors = [&own, others].concat();
        let ready = sys::poll_all(&descriptors, Some(wake.saturating_sub(now)));
        if ready[1..own.len()].contains(&true) {
            self.streams.drain();
        }
        if ready[0] && self.take_pending_interrupt() {
            watch.cause = Some(KillCause::Interrupted);
        }
        ready[own.len()..].contains(&true)
    }
}

impl TreeWatch {
    fn new(pid: libc::pid_t, started: Duration, closely: bool) -> Self {
        Self {
            pid,
            started,
            last_exit: started,
            status: None,
            total: EndedTree {
                wall: Duration::ZERO,
                user: Duration::ZERO,
                system: Duration::ZERO,
                max_rss_bytes: 0,
                minor_faults: 0,
                major_faults: 0,
                voluntary_switches: 0,
                involuntary_switches: 0,
                threads: None,
                threads_at_work: None,
                queued_s: None,
                end: End::Status(0),
                left_running: Vec::new(),
            },
            sampler: ThreadSampler::new(started, closely),
            cause: None,
            kill_until: Duration::ZERO,
        }
    }

    /// Adds what a process of the tree has used.
    fn add(&mut self, reaped: &Reaped) {
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let usage = &reaped.usage;
        self.last_exit = sys::monotonic();
        self.total.user += sys::timeval_to_duration(usage.ru_utime);
        self.total.system += sys::timeval_to_duration(usage.ru_stime);
        self.total.max_rss_bytes = self.total.max_rss_bytes.max(count(usage.ru_maxrss) * 1024);
        self.total.minor_faults += count(usage.ru_minflt);
        self.total.major_faults += count(usage.ru_majflt);
        self.total.voluntary_switches += count(usage.ru_nvcsw);
        self.total.involuntary_switches += count(usage.ru_nivcsw);
        if reaped.pid == self.pid {
            self.status = Some(reaped.status);
        }
    }

    /// Did the command end so long ago that the remaining processes will stay?
    fn is_overdue(&self, now: Duration) -> bool {
        self.cause.is_none() && self.status.is_some() && now >= self.last_exit + GRACE
    }

    fn next_wake(&self, deadline: Option<Duration>) -> Duration {
        if self.cause.is_some() {
            // Ending: check again soon for newly orphaned processes.
            return sys::monotonic() + Duration::from_millis(5);
        }
        if self.status.is_some() {
            return self.last_exit + GRACE;
        }
        let next = self.sampler.next_sample();
        deadline.map_or(next, |deadline| deadline.min(next))
    }

    fn finish(self) -> EndedTree {
        let cpu = self.total.user + self.total.system;
        let end = match self.cause {
            Some(KillCause::TimedOut) => End::TimedOut,
            Some(KillCause::Interrupted) => End::Interrupted,
            Some(KillCause::LeftBehind(names)) => End::LeftBehind(names),
            None => decode_status(self.status.unwrap_or(0)),
        };
        EndedTree {
            wall: self.last_exit.saturating_sub(self.started),
            threads: self.sampler.max_threads(),
            threads_at_work: self.sampler.max_threads_at_work(),
            queued_s: self.sampler.queued_s(cpu.as_secs_f64()),
            end,
            ..self.total
        }
    }
}

fn decode_status(status: libc::c_int) -> End {
    if libc::WIFSIGNALED(status) {
        End::Signal(libc::WTERMSIG(status))
    } else {
        End::Status(libc::WEXITSTATUS(status))
    }
}
