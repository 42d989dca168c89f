//! Requests to traced threads, one system call each.
//!
//! `ptrace(2)` has the terms: a thread is *seized* (no signal shows it), stops at events and before
//! signals, and is then resumed, left listening, or detached.

#![expect(unsafe_code, reason = "system calls; each block says why it is sound")]

use std::io;
use std::mem::MaybeUninit;

use super::super::sys;

/// Events at which traced threads stop.
const EVENTS: libc::c_int = libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT;
/// Not needed for a process's further threads: they can be examined until they are reaped.
const ONLY_FOR_PROCESSES: libc::c_int = libc::PTRACE_O_TRACEEXIT;

/// What becomes of traced processes when their tracer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum Orphans {
    /// They continue untraced.
    GoOn,
    /// They are killed.
    Die,
}

impl Orphans {
    const fn trace_options(self) -> libc::c_int {
        match self {
            Self::GoOn => EVENTS,
            Self::Die => EVENTS | libc::PTRACE_O_EXITKILL,
        }
    }
}

/// A thread that stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) thread: libc::pid_t,
    /// Is it traced by this process, rather than a child that a signal stopped?
    pub(super) is_traced: bool,
    pub(super) signal: libc::c_int,
    /// One of `PTRACE_EVENT_*`; 0: a signal is about to be delivered.
    pub(super) event: libc::c_int,
}

/// Begins to trace a process and all threads and processes that it starts.
pub(in crate::linux) fn seize(pid: libc::pid_t, orphans: Orphans) -> io::Result<()> {
    request(
        libc::PTRACE_SEIZE.into(),
        pid,
        orphans.trace_options().into(),
    )
}

/// Sets at which events a thread stops: fewer if it is not the first one of its process.
pub(super) fn set_stops(thread: libc::pid_t, is_process: bool, orphans: Orphans) {
    let unneeded = if is_process { 0 } else { ONLY_FOR_PROCESSES };
    let options = orphans.trace_options() & !unneeded;
    let _ = request(libc::PTRACE_SETOPTIONS.into(), thread, options.into());
}

/// Resumes a stopped thread, with a signal unless that is 0. A thread that was killed meanwhile is
/// not an error, here and below.
pub(super) fn resume(thread: libc::pid_t, signal: libc::c_int) {
    let _ = request(libc::PTRACE_CONT.into(), thread, signal.into());
}

/// Leaves a thread stopped, as its signal requires, until another signal wakes it.
pub(super) fn listen(thread: libc::pid_t) {
    let _ = request(libc::PTRACE_LISTEN.into(), thread, 0);
}

/// Makes a thread stop soon.
pub(super) fn interrupt(thread: libc::pid_t) {
    let _ = request(libc::PTRACE_INTERRUPT.into(), thread, 0);
}

/// Stops tracing a stopped thread.
pub(super) fn detach(thread: libc::pid_t, signal: libc::c_int) {
    let _ = request(libc::PTRACE_DETACH.into(), thread, signal.into());
}

/// Reads the message of an event: the id of the new thread, or the former id of a thread that
/// executed a program.
pub(super) fn read_event_message(thread: libc::pid_t) -> Option<libc::pid_t> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the kernel writes one word to the pointer, which is valid.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            libc::c_long::from(libc::PTRACE_GETEVENTMSG),
            thread,
            0,
            &raw mut message,
        )
    };
    (result == 0).then(|| libc::pid_t::try_from(message).ok())?
}

fn request(operation: libc::c_long, thread: libc::pid_t, data: libc::c_long) -> io::Result<()> {
    // SAFETY: the operations above take plain integers and touch no memory of
    // this process.
    let result = unsafe { libc::syscall(libc::SYS_ptrace, operation, thread, 0, data) };
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Consumes the stop of a thread, if it has stopped.
pub(super) fn take_stop(thread: libc::pid_t) -> Option<Stop> {
    let info = wait(Some(thread), libc::WSTOPPED | libc::WNOHANG).ok()?;
    // SAFETY: waitid filled it in for a child that stopped.
    let (thread, status) = unsafe { (info.si_pid(), info.si_status()) };
    (thread != 0).then_some(Stop {
        thread,
        is_traced: info.si_code == libc::CLD_TRAPPED,
        signal: status & 0xff,
        event: status >> 8,
    })
}

/// An event of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum ChildEvent {
    /// This thread has stopped.
    Stop(libc::pid_t),
    /// A thread or process has ended and is not reaped yet.
    End(libc::pid_t),
    /// There is no event now.
    Nothing,
}

/// Peeks at the next event without reaping; with `blocks`, waits for one. An error if no child
/// exists.
pub(super) fn peek_event(blocks: bool) -> io::Result<ChildEvent> {
    let how = if blocks { 0 } else { libc::WNOHANG };
    // Stops of traced threads are reported even if not requested.
    let options = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | how;
    let info = loop {
        match wait(None, options) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    // SAFETY: waitid filled it in, or left it zero.
    let pid = unsafe { info.si_pid() };
    Ok(match info.si_code {
        _ if pid == 0 => ChildEvent::Nothing,
        libc::CLD_TRAPPED | libc::CLD_STOPPED => ChildEvent::Stop(pid),
        _ => ChildEvent::End(pid),
    })
}

/// Waits for one child, or for any.
fn wait(child: Option<libc::pid_t>, options: libc::c_int) -> io::Result<libc::siginfo_t> {
    let (kind, id) = match child.map(libc::id_t::try_from) {
        Some(Ok(id)) => (libc::P_PID, id),
        _ => (libc::P_ALL, 0),
    };
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the pointer is valid; the structure is plain integers, for which
    // zeros are valid.
    unsafe {
        sys::check(libc::waitid(
            kind,
            id,
            info.as_mut_ptr(),
            options | libc::__WALL,
        ))?;
        Ok(info.assume_init())
    }
}

/// Waits until a seized process stops before the first instruction of a program, or has exited;
/// neither is reaped.
pub(in crate::linux) fn wait_for_program(pid: libc::pid_t) {
    let options = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
    loop {
        match wait(Some(pid), options) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
            Ok(info) if info.si_code != libc::CLD_TRAPPED => return,
            // SAFETY: waitid filled it in for a child that stopped.
            Ok(info) if unsafe { info.si_status() } >> 8 == libc::PTRACE_EVENT_EXEC => return,
            Ok(_) => {}
        }
        if let Some(stop) = take_stop(pid) {
            match stop.event {
                0 => resume(pid, stop.signal),
                libc::PTRACE_EVENT_STOP if stop.signal != libc::SIGTRAP => listen(pid),
                _ => resume(pid, 0),
            }
        }
    }
}

/// Reaps a thread or process that has ended, which removes it from `/proc`. Returns its wait status
/// and its resource usage.
pub(super) fn reap(pid: libc::pid_t) -> Option<(libc::c_int, libc::rusage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let options = libc::WNOHANG | libc::__WALL;
    // SAFETY: both pointers are valid; rusage is plain integers.
    unsafe {
        let reaped = libc::wait4(pid, &raw mut status, options, usage.as_mut_ptr());
        (reaped == pid).then(|| (status, usage.assume_init()))
    }
}
