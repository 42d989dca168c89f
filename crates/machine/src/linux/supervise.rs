//! Waits for a command: its whole tree, its time-out, the user's signals.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use super::bind::Binder;
use super::sys::Reaped;
use super::tree::{self, ThreadSampler};
use super::{LinuxMachine, sys};
use crate::{End, MachineError};

/// Processes that outlive the command get this long to end by themselves.
const GRACE: Duration = Duration::from_secs(1);

/// What woke the supervision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stir {
    /// One of the attendant's descriptors is readable.
    pub(super) has_filled: bool,
    /// A process has ended and is not reaped yet.
    pub(super) has_ended: bool,
}

/// Works in the pauses of the supervision.
pub(super) trait Attendant {
    /// The command was started at this moment.
    fn started(&mut self, pid: libc::pid_t, started: Duration);

    /// Descriptors to wake for.
    fn descriptors(&self) -> Vec<RawFd>;

    /// The latest time to wake it.
    fn next(&self) -> Duration;

    /// May processes that outlive the command continue? Otherwise they are ended.
    fn leaves_daemons(&self) -> bool {
        false
    }

    /// Is the gathered data useful if the user interrupts? Otherwise that is an error.
    fn keeps_interrupted(&self) -> bool {
        false
    }

    /// Does the work that is due; false ends the command as by its time-out.
    fn attend(&mut self, now: Duration, stir: Stir) -> bool;
}

/// No attendant: the command is only waited for.
pub(super) struct NoAttendant;

impl Attendant for NoAttendant {
    fn started(&mut self, _pid: libc::pid_t, _started: Duration) {}

    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    fn next(&self) -> Duration {
        Duration::MAX
    }

    fn attend(&mut self, _now: Duration, _stir: Stir) -> bool {
        true
    }
}

/// A tree that has ended.
pub(super) struct Ended {
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
    /// Names of the processes left running.
    pub(super) left: Vec<String>,
}

/// The state of a tree that is waited for.
struct Watch {
    pid: libc::pid_t,
    started: Duration,
    last_exit: Duration,
    status: Option<libc::c_int>,
    total: Ended,
    sampler: ThreadSampler,
    /// The reason for ending it early.
    cause: Option<Cause>,
    kill_until: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Cause {
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
    ) -> Result<Ended, MachineError> {
        let mut watch = Watch::new(pid, started, closely);
        let deadline = timeout.map(|timeout| started.saturating_add(timeout));
        while self.show_and_reap(&mut watch, attendant) {
            let now = sys::monotonic();
            if watch.is_overdue(now) && attendant.leaves_daemons() {
                let left = tree::own_children(&self.spared_children());
                watch.total.left = tree::describe(&left);
                self.left.extend(left);
                break;
            }
            self.react(&mut watch, now, deadline)?;
            let wake = watch.next_wake(deadline).min(attendant.next());
            let wake = wake.min(self.binder.as_ref().map_or(Duration::MAX, Binder::wake));
            let has_filled = self.wait_until(wake, now, &mut watch, &attendant.descriptors());
            let stir = Stir {
                has_filled,
                has_ended: false,
            };
            let goes_on = attendant.attend(sys::monotonic(), stir);
            if !goes_on && watch.cause.is_none() {
                watch.cause = Some(Cause::TimedOut);
            }
            if watch.status.is_none() {
                watch.sampler.sample(pid, sys::monotonic());
            }
        }
        if watch.cause == Some(Cause::Interrupted) && !attendant.keeps_interrupted() {
            return Err(MachineError::Interrupted);
        }
        Ok(watch.finish())
    }

    /// Waits for a helper's own process only; processes that it leaves running (a server for the
    /// command) are spared from then on.
    pub(super) fn supervise_helper(&mut self, pid: libc::pid_t) -> Result<End, MachineError> {
        let mut watch = Watch::new(pid, sys::monotonic(), false);
        while watch.status.is_none() {
            let has_children = self.reap_all(&mut watch);
            if !has_children || watch.status.is_some() {
                break;
            }
            let now = sys::monotonic();
            self.wait_until(now + GRACE, now, &mut watch, &[]);
            if watch.cause == Some(Cause::Interrupted) {
                sys::kill(-pid, libc::SIGKILL);
            }
        }
        self.helpers = tree::own_children(&self.left).into_iter().collect();
        if watch.cause == Some(Cause::Interrupted) {
            return Err(MachineError::Interrupted);
        }
        Ok(decode(watch.status.unwrap_or(0)))
    }

    /// Shows ended processes to the attendant, then reaps them.
    fn show_and_reap(&mut self, watch: &mut Watch, attendant: &mut dyn Attendant) -> bool {
        if sys::ended_child().is_some() {
            let stir = Stir {
                has_filled: false,
                has_ended: true,
            };
            attendant.attend(sys::monotonic(), stir);
        }
        self.reap_all(watch)
    }

    /// Reaps all ended children; true while some of the tree are left.
    fn reap_all(&mut self, watch: &mut Watch) -> bool {
        loop {
            let is_own = |pid: &_| !self.helpers.contains(pid) && !self.left.contains(pid);
            if let Some(ended) = sys::ended_child().filter(is_own) {
                watch.sampler.read_times(ended);
            }
            match self.next_ended() {
                Ok(Some(reaped)) => {
                    if !self.helpers.remove(&reaped.pid) && !self.left.remove(&reaped.pid) {
                        watch.add(&reaped);
                    }
                }
                Ok(None) if self.helpers.is_empty() && self.left.is_empty() => return true,
                Ok(None) => return !tree::own_children(&self.spared_children()).is_empty(),
                Err(_) => return false,
            }
        }
    }

    /// Reaps a process that has ended. If threads are bound, their stops are answered meanwhile;
    /// ended threads and processes with another parent are not returned.
    fn next_ended(&mut self) -> io::Result<Option<Reaped>> {
        let Some(binder) = &mut self.binder else {
            return sys::reap();
        };
        while let Some(gone) = binder.next_gone(false)? {
            if gone.is_own {
                return Ok(Some(Reaped {
                    pid: gone.pid,
                    status: gone.status,
                    usage: gone.usage,
                }));
            }
        }
        Ok(None)
    }

    /// Ends the tree when its time is up.
    fn react(
        &self,
        watch: &mut Watch,
        now: Duration,
        deadline: Option<Duration>,
    ) -> Result<(), MachineError> {
        if watch.cause.is_none() {
            if watch.status.is_none() && deadline.is_some_and(|deadline| now >= deadline) {
                watch.cause = Some(Cause::TimedOut);
            } else if watch.is_overdue(now) {
                let left = tree::own_children(&self.spared_children());
                watch.cause = Some(Cause::LeftBehind(tree::describe(&left)));
            }
        }
        if watch.cause.is_none() {
            return Ok(());
        }
        if watch.kill_until.is_zero() {
            watch.kill_until = now + tree::ENDING;
        }
        if now > watch.kill_until {
            let left = tree::describe(&tree::own_children(&self.spared_children()));
            return Err(MachineError::System {
                action: "ending the command's processes".to_owned(),
                reason: format!("{} did not end", left.join(", ")),
            });
        }
        tree::kill_tree(watch.pid, &self.spared_children());
        Ok(())
    }

    /// Children that do not belong to the running command.
    fn spared_children(&self) -> BTreeSet<libc::pid_t> {
        self.helpers.union(&self.left).copied().collect()
    }

    /// Sleeps until something happens or until `wake`; says whether one of the caller's
    /// descriptors, `others`, is readable.
    fn wait_until(
        &mut self,
        wake: Duration,
        now: Duration,
        watch: &mut Watch,
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
            watch.cause = Some(Cause::Interrupted);
        }
        ready[own.len()..].contains(&true)
    }
}

impl Watch {
    fn new(pid: libc::pid_t, started: Duration, closely: bool) -> Self {
        Self {
            pid,
            started,
            last_exit: started,
            status: None,
            total: Ended {
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
                left: Vec::new(),
            },
            sampler: ThreadSampler::new(started, closely),
            cause: None,
            kill_until: Duration::ZERO,
        }
    }

    fn add(&mut self, reaped: &Reaped) {
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let usage = &reaped.usage;
        self.last_exit = sys::monotonic();
        self.total.user += sys::timeval(usage.ru_utime);
        self.total.system += sys::timeval(usage.ru_stime);
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
        let next = self.sampler.next();
        deadline.map_or(next, |deadline| deadline.min(next))
    }

    fn finish(self) -> Ended {
        let cpu = self.total.user + self.total.system;
        let end = match self.cause {
            Some(Cause::TimedOut) => End::TimedOut,
            Some(Cause::Interrupted) => End::Interrupted,
            Some(Cause::LeftBehind(names)) => End::LeftBehind(names),
            None => decode(self.status.unwrap_or(0)),
        };
        Ended {
            wall: self.last_exit.saturating_sub(self.started),
            threads: self.sampler.most(),
            threads_at_work: self.sampler.most_at_work(),
            queued_s: self.sampler.queued_s(cpu.as_secs_f64()),
            end,
            ..self.total
        }
    }
}

fn decode(status: libc::c_int) -> End {
    if libc::WIFSIGNALED(status) {
        End::Signal(libc::WTERMSIG(status))
    } else {
        End::Status(libc::WEXITSTATUS(status))
    }
}
