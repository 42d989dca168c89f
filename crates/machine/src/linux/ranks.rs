//! Runs several processes side by side, which end together.

#![expect(
    unsafe_code,
    reason = "what a child does before it executes has no safe form"
)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::sys;

/// A command to run beside others.
#[derive(Debug, Clone)]
pub struct RankCommand {
    /// The program with its arguments.
    pub argv: pinwise_workload::Command,
    /// Variables to add to this process's environment.
    pub variables: Vec<(String, String)>,
}

/// Starts all commands and waits for them. Returns 0 if all succeed, otherwise the status of the
/// first that failed, as in shells; the others then get SIGTERM. All get SIGTERM, too, if this
/// process ends first, by any means.
///
/// # Errors
/// If a command cannot be started; those already started are ended.
pub fn run_side_by_side(commands: Vec<RankCommand>) -> io::Result<u8> {
    let mut children: Vec<(Child, OwnedFd)> = Vec::new();
    for RankCommand { argv, variables } in commands {
        #[expect(clippy::disallowed_methods, reason = "the Edge starts processes")]
        let mut command = Command::new(argv.program());
        command.args(&argv.argv()[1..]).envs(variables);
        // Only one command can read the standard input: the first.
        if !children.is_empty() {
            command.stdin(Stdio::null());
        }
        let parent = std::process::id();
        // SAFETY: two system calls without memory of the parent's.
        unsafe {
            command.pre_exec(move || end_with_parent(parent));
        }
        let started = command
            .spawn()
            .and_then(|mut child| match open_pidfd(&child) {
                Ok(descriptor) => Ok((child, descriptor)),
                Err(error) => {
                    child.kill()?;
                    child.wait()?;
                    Err(error)
                }
            });
        match started {
            Ok(child) => children.push(child),
            Err(error) => {
                end_all(&mut children);
                return Err(error);
            }
        }
    }
    while !children.is_empty() {
        let (index, status) = wait_for_one(&mut children)?;
        children.swap_remove(index);
        if !status.success() {
            end_all(&mut children);
            return Ok(shell_status(status));
        }
    }
    Ok(0)
}

/// Makes this process, the child, get SIGTERM when its parent ends. An error if the parent has
/// already ended.
fn end_with_parent(parent: u32) -> io::Result<()> {
    // SAFETY: plain integers.
    unsafe {
        sys::check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM))?;
        if u32::try_from(libc::getppid()) != Ok(parent) {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
    }
    Ok(())
}

/// Waits for the first child to end; returns its index and status.
fn wait_for_one(children: &mut [(Child, OwnedFd)]) -> io::Result<(usize, ExitStatus)> {
    loop {
        let descriptors: Vec<RawFd> = children.iter().map(|(_, fd)| fd.as_raw_fd()).collect();
        sys::poll_all(&descriptors, None);
        for (index, (child, _)) in children.iter_mut().enumerate() {
            if let Some(status) = child.try_wait()? {
                return Ok((index, status));
            }
        }
    }
}

/// Opens a descriptor that becomes readable when the child ends.
pub(super) fn open_pidfd(child: &Child) -> io::Result<OwnedFd> {
    // SAFETY: plain integers; the descriptor is new and nothing else owns it.
    unsafe {
        let fd = sys::check_long(libc::syscall(libc::SYS_pidfd_open, child.id(), 0))?;
        Ok(OwnedFd::from_raw_fd(
            RawFd::try_from(fd).map_err(io::Error::other)?,
        ))
    }
}

/// Ends all children by SIGTERM and waits for them.
fn end_all(children: &mut Vec<(Child, OwnedFd)>) {
    for (child, _) in children.iter() {
        if let Ok(id) = libc::pid_t::try_from(child.id()) {
            // SAFETY: it has not been waited for, so the id is still its own.
            unsafe { libc::kill(id, libc::SIGTERM) };
        }
    }
    for (mut child, _) in children.drain(..) {
        // An error means that it has already been waited for.
        let _ = child.wait();
    }
}

/// The status that a shell would report.
fn shell_status(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(argv: &[&str]) -> RankCommand {
        let argv = argv.iter().map(|&word| word.to_owned()).collect();
        RankCommand {
            argv: pinwise_workload::Command::from_argv(argv).unwrap(),
            variables: vec![("STATUS".to_owned(), "7".to_owned())],
        }
    }

    fn shell(line: &str) -> RankCommand {
        command(&["sh", "-c", line])
    }

    #[test]
    fn the_first_failure_ends_the_others_and_counts() {
        // The second would sleep for an hour.
        let status = run_side_by_side(vec![shell("exit $STATUS"), shell("exec sleep 3600")]);
        assert_eq!(status.unwrap(), 7);
        let status = run_side_by_side(vec![shell("kill -9 $$"), shell("exec sleep 3600")]);
        assert_eq!(status.unwrap(), 137);
        let status = run_side_by_side(vec![shell("true"), shell("true"), shell("true")]);
        assert_eq!(status.unwrap(), 0);
    }

    #[test]
    fn a_failed_start_ends_the_other_commands() {
        let missing = command(&["/no/such/program"]);
        assert!(run_side_by_side(vec![shell("exec sleep 3600"), missing]).is_err());
    }
}
