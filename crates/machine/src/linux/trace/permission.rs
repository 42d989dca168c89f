//! Why perf is refused, and the command that would permit it.
//!
//! Permission is tested by trying. A refusal is explained from the settings that the kernel checks
//! (`kernel.perf_event_paranoid`, capabilities, container filters), and a command is only suggested
//! if it would help.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::{capture, sys};
use super::Target;
use pinwise_sched::{Refusal, Tid};

/// What was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum Attempt {
    /// Switch records of a program's threads.
    Own(Target),
    /// Switch records of whole CPUs.
    Wide,
    /// Tracepoints.
    Points,
}

/// What the kernel checks.
#[derive(Debug, Clone)]
struct PerfSettings {
    /// `kernel.perf_event_paranoid`; `None`: a kernel without perf.
    paranoid: Option<i32>,
    is_root: bool,
    /// The path of this program, for commands.
    program: String,
}

/// Explains why perf could not be used.
pub(in crate::linux) fn explain_refusal(attempt: Attempt, error: &io::Error) -> Refusal {
    let settings = PerfSettings {
        paranoid: read_paranoid(),
        is_root: sys::is_root(),
        program: own_program(),
    };
    if let Attempt::Own(Target::Process(pid)) = attempt
        && let Some(refusal) = explain_foreign_process(pid, error, &settings)
    {
        return refusal;
    }
    explain(attempt, error, &settings)
}

/// Refuses sources that report all threads unless this process is in the initial PID namespace. In
/// another one, the kernel reports threads outside of it with the id of the idle thread.
pub(in crate::linux) fn check_initial_pid_namespace() -> Result<(), Refusal> {
    // PROC_PID_INIT_INO of the kernel (include/linux/proc_ns.h).
    const FIRST: u64 = 0xEFFF_FFFC;
    let own = Path::new("/proc/self/ns/pid").metadata();
    if own.is_ok_and(|own| own.ino() != FIRST) {
        return Err(Refusal {
            reason: "pinwise runs in a PID namespace of its own (a container), in which threads \
                     of others cannot be distinguished from idling"
                .to_owned(),
            remedy: Some("docker run --pid=host --cap-add PERFMON --cap-add BPF".to_owned()),
        });
    }
    Ok(())
}

/// The refusal for a process with too many threads to attach to.
pub(in crate::linux) fn explain_too_many_threads(
    pid: Tid,
    threads: usize,
    needed: usize,
    most: usize,
) -> Refusal {
    Refusal {
        reason: format!(
            "process {pid} has {threads} threads, for which {needed} descriptors are needed and \
             {most} are permitted"
        ),
        remedy: Some(format!("ulimit -n {}", needed.next_power_of_two())),
    }
}

/// The system's message, without the error's number.
pub(in crate::linux) fn message_of(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_owned()
}

/// Prefixes a command that only root may run with `sudo`, unless this user is root.
pub(super) fn with_sudo(command: &str) -> String {
    let prefix = if sys::is_root() { "" } else { "sudo " };
    format!("{prefix}{command}")
}

/// A pinwise command with `sudo`.
pub(super) fn sudo_pinwise(command: &str) -> String {
    format!("sudo {} {command}", own_program())
}

fn explain(attempt: Attempt, error: &io::Error, settings: &PerfSettings) -> Refusal {
    let Some(paranoid) = settings.paranoid else {
        return Refusal {
            reason: "this kernel has no perf events (CONFIG_PERF_EVENTS)".to_owned(),
            remedy: None,
        };
    };
    let message = message_of(error);
    let is_denied = matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES));
    if !is_denied {
        let reason = match error.raw_os_error() {
            Some(libc::ENOSYS) => {
                "perf_event_open is not available (a container's filter)".to_owned()
            }
            Some(libc::EMFILE) => format!("{message}: one descriptor per CPU and more are needed"),
            _ => format!("perf_event_open: {message}"),
        };
        let remedy = match error.raw_os_error() {
            Some(libc::ENOSYS) => Some("docker run --cap-add PERFMON".to_owned()),
            Some(libc::EMFILE) => Some("ulimit -n 65536".to_owned()),
            _ => None,
        };
        return Refusal { reason, remedy };
    }
    if settings.is_root {
        return Refusal {
            reason: format!(
                "perf_event_open: {message}, though pinwise runs as root (a container)"
            ),
            remedy: Some("docker run --cap-add PERFMON".to_owned()),
        };
    }
    explain_denial(attempt, paranoid, &message, settings)
}

fn explain_denial(
    attempt: Attempt,
    paranoid: i32,
    message: &str,
    settings: &PerfSettings,
) -> Refusal {
    let most = match attempt {
        Attempt::Own(_) => 2,
        Attempt::Wide => 0,
        Attempt::Points => -1,
    };
    if paranoid <= most {
        return Refusal {
            reason: format!(
                "perf_event_open: {message}, though kernel.perf_event_paranoid is {paranoid} (a \
                 filter of a container, or a security module)"
            ),
            remedy: Some("docker run --cap-add PERFMON".to_owned()),
        };
    }
    let remedy = match attempt {
        Attempt::Own(_) => "sudo sysctl kernel.perf_event_paranoid=2".to_owned(),
        _ => format!("sudo setcap cap_perfmon=ep {}", settings.program),
    };
    Refusal {
        reason: format!(
            "kernel.perf_event_paranoid is {paranoid}, and more than {most} forbids it to users \
             without CAP_PERFMON"
        ),
        remedy: Some(remedy),
    }
}

/// The refusal if the process belongs to another user.
fn explain_foreign_process(
    pid: Tid,
    error: &io::Error,
    settings: &PerfSettings,
) -> Option<Refusal> {
    let is_denied = matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES));
    let owner = Path::new(&format!("/proc/{pid}")).metadata().ok()?.uid();
    if !is_denied || settings.is_root || owner == sys::effective_user() {
        return None;
    }
    Some(Refusal {
        reason: format!("process {pid} belongs to another user (uid {owner})"),
        remedy: Some(format!("sudo {} … --pid {pid}", settings.program)),
    })
}

fn read_paranoid() -> Option<i32> {
    let text = capture::read_file(Path::new("/proc/sys/kernel/perf_event_paranoid"))?;
    String::from_utf8_lossy(&text).trim().parse().ok()
}

/// Path of this program, for commands that are shown.
pub(super) fn own_program() -> String {
    let path = Path::new("/proc/self/exe").read_link();
    path.map_or_else(|_| "pinwise".to_owned(), |path| path.display().to_string())
}
