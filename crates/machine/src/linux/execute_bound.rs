//! `pinwise run` with a bound placement: the command replaces this process as usual, and a process
//! beside it binds its threads.
//!
//! So the command keeps its own process id, parent, terminal, job control, signals and exit status;
//! killing the binder ends only the binding. The binder is not a child of the command, sleeps while
//! no thread begins or ends, and ends with the last thread of the tree or after the settling time.

#![expect(unsafe_code, reason = "fork has no safe form")]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use super::bind::ptrace::{self, ChildEvent, Orphans};
use super::bind::{Binder, calls, refusal};
use super::signals::Signals;
use super::start::{c_arguments, environment_with, explain_start_error, locate, place_self};
use super::{search_path, spawn, sys};
use crate::{Binding, Coverage, MachineError};
use pinwise_placement::MemoryBinding;
use pinwise_topology::CpuSet;
use pinwise_workload::Command;

/// The CPUs and binding of a command that replaces this process.
#[derive(Debug, Clone, Copy)]
pub struct BoundPlace<'a> {
    /// All its CPUs.
    pub cpus: &'a CpuSet,
    /// Memory policy.
    pub memory: Option<&'a MemoryBinding>,
    /// The CPU of each thread.
    pub binding: &'a Binding,
    /// Variables that are added to the environment.
    pub variables: &'a [(String, String)],
}

/// Replaces this process by a command, whose threads another process binds. Unless the settling
/// time ended earlier, that process calls `on_coverage` when the command has ended, before the
/// command's parent learns of it. `granted`: as for [`execute`](super::execute). Returns only if it
/// failed.
///
/// # Errors
/// [`MachineError`] says what the kernel refused.
pub fn execute_bound(
    command: &Command,
    place: &BoundPlace<'_>,
    granted: impl FnOnce(&CpuSet),
    on_coverage: impl FnOnce(&Coverage),
) -> MachineError {
    match prepare(command, place, granted, on_coverage) {
        Err(error) => error,
        Ok(program) => {
            let environment = environment_with(place.variables);
            let error = spawn::replace(&program, &c_arguments(command), &environment);
            explain_start_error(
                spawn::Step::Execute,
                &error,
                command,
                place.cpus,
                place.memory,
            )
        }
    }
}

/// Does everything that comes before the command replaces this process.
fn prepare(
    command: &Command,
    place: &BoundPlace<'_>,
    granted: impl FnOnce(&CpuSet),
    on_coverage: impl FnOnce(&Coverage),
) -> Result<CString, MachineError> {
    let program = locate(None, command, &search_path())?;
    refusal::check_program(&program, command)?;
    // Before this process is placed, so that the binder is not placed with it.
    match start_binder(place.binding, on_coverage) {
        Ok(()) => {}
        Err(NotStarted::Refused(error)) => return Err(refusal::explain_refusal(&error, command)),
        Err(NotStarted::System(error)) => {
            return Err(MachineError::System {
                action: "starting the process that binds threads".to_owned(),
                reason: error.to_string(),
            });
        }
    }
    place_self(command, place.cpus, place.memory, granted)?;
    Ok(program)
}

/// Why the binder did not start.
enum NotStarted {
    /// It may not trace this process.
    Refused(io::Error),
    System(io::Error),
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Starts the binder and waits until it traces this process.
fn start_binder(binding: &Binding, on_coverage: impl FnOnce(&Coverage)) -> Result<(), NotStarted> {
    let (read, write) = sys::pipe(0)?;
    calls::permit_tracers(true);
    let started = sys::monotonic();
    // SAFETY: this process has a single thread, so the child may run ordinary
    // code; both children leave by _exit.
    unsafe {
        let command = libc::getpid();
        let middle = sys::check(libc::fork())?;
        if middle == 0 {
            // Forked twice, so that the command has no child that it did not start.
            if libc::fork() == 0 {
                drop(read);
                run_binder(command, binding, started, write, on_coverage);
            }
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(middle, &raw mut status, 0);
    }
    drop(write);
    let answer = calls::read_number(&read)?;
    calls::permit_tracers(false);
    match answer {
        0 => Ok(()),
        code => Err(NotStarted::Refused(io::Error::from_raw_os_error(code))),
    }
}

/// The main function of the binder process. It reports through `answer` whether it traces the
/// command: 0, or the error's number.
fn run_binder(
    command: libc::pid_t,
    binding: &Binding,
    started: Duration,
    answer: OwnedFd,
    on_coverage: impl FnOnce(&Coverage),
) -> ! {
    detach_binder(&answer);
    let seized = ptrace::seize(command, Orphans::GoOn);
    let code = seized.map_or_else(|error| error.raw_os_error().unwrap_or(libc::EPERM), |()| 0);
    // SAFETY: the buffer has the length passed; a reader that is gone needs no
    // answer.
    unsafe { libc::write(answer.as_raw_fd(), code.to_ne_bytes().as_ptr().cast(), 4) };
    drop(answer);
    if code == 0 {
        let binder = Binder::new(binding, command, started, Orphans::GoOn);
        bind_until_done(binder, command, on_coverage);
    }
    // SAFETY: ends this process only.
    unsafe { libc::_exit(0) }
}

/// Detaches the binder from the terminal's signals, and closes all descriptors except standard
/// error and `answer`.
fn detach_binder(answer: &OwnedFd) {
    // SAFETY: plain integers; the descriptors that are closed are copies which
    // only this process holds.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"pinwise-binder".as_ptr(), 0, 0, 0);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
    // A new thread waits for the binder, whose work is short: real-time priority, if permitted,
    // saves the binder from queuing behind busy threads.
    let _ = sys::become_realtime(1);
    calls::redirect_to_null(&[libc::STDIN_FILENO, libc::STDOUT_FILENO]);
    calls::close_others(answer.as_raw_fd());
}

/// Binds threads until the last one has ended or the settling time is over.
fn bind_until_done(mut binder: Binder, command: libc::pid_t, on_coverage: impl FnOnce(&Coverage)) {
    let mut on_coverage = Some(on_coverage);
    let signals = Signals::take(&[libc::SIGCHLD]).ok();
    loop {
        // Without a deadline there is nothing else to wait for.
        let blocks = binder.next_wake() == Duration::MAX || signals.is_none();
        match binder.handle_next_event(blocks) {
            Err(_) => return report_once(&binder, &mut on_coverage),
            Ok(ChildEvent::Stop(_)) => {}
            Ok(ChildEvent::End(pid)) => {
                // The command's parent learns of its end when the binder reaps it.
                if pid == command {
                    report_once(&binder, &mut on_coverage);
                }
                binder.reap(pid);
            }
            Ok(ChildEvent::Nothing) => {
                if let Some(signals) = &signals {
                    let left = binder.next_wake().saturating_sub(sys::monotonic());
                    sys::poll([signals.as_raw_fd()], Some(left));
                    while signals.next_pending().is_some() {}
                }
            }
        }
    }
}

/// Reports the coverage once, and then closes standard error: its reader may wait for the end of
/// the output.
fn report_once(binder: &Binder, on_coverage: &mut Option<impl FnOnce(&Coverage)>) {
    let Some(on_coverage) = on_coverage.take() else {
        return;
    };
    if binder.has_executed() {
        on_coverage(&binder.coverage());
    }
    calls::redirect_to_null(&[libc::STDERR_FILENO]);
}
