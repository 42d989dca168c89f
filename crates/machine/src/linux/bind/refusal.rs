//! Why the threads of a command cannot be bound, and what would allow it.
//!
//! Reads this process's state; changes nothing.

use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::{sys, tree};
use super::calls;
use crate::MachineError;
use pinwise_workload::Command;

/// Number of the capability that lets a process trace any other, and lets traced programs keep
/// their privileges (`capabilities(7)`).
const CAP_SYS_PTRACE: u32 = 19;

/// A privilege that a traced program would lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Privilege {
    User,
    Group,
    Capabilities,
}

impl Privilege {
    const fn describe(self) -> &'static str {
        match self {
            Self::User => "it is setuid",
            Self::Group => "it is setgid",
            Self::Capabilities => "it has file capabilities",
        }
    }
}

/// Checks before the start whether the program would lose its privileges.
pub(in crate::linux) fn check_program(
    program: &CStr,
    command: &Command,
) -> Result<(), MachineError> {
    let status = Status::read_own();
    if status.may_trace_all || status.has_no_new_privileges {
        return Ok(());
    }
    let path = Path::new(std::ffi::OsStr::from_bytes(program.to_bytes()));
    match find_privilege(path) {
        None => Ok(()),
        Some(privilege) => Err(MachineError::Refused {
            what: format!("to trace '{command}' with its privileges"),
            reason: format!(
                "{}, which it loses when traced; bind it as root, or place it without /bound",
                privilege.describe()
            ),
        }),
    }
}

/// Makes the error for a refused trace, with its remedy.
pub(in crate::linux) fn explain_refusal(error: &io::Error, command: &Command) -> MachineError {
    MachineError::Refused {
        what: format!("to bind the threads of '{command}'"),
        reason: explain(error, &Status::read_own(), read_yama_scope().as_deref()),
    }
}

fn explain(error: &io::Error, status: &Status, yama: Option<&str>) -> String {
    let forbidden = [libc::EPERM, libc::EACCES, libc::ENOSYS];
    if !error
        .raw_os_error()
        .is_some_and(|code| forbidden.contains(&code))
    {
        return format!("ptrace: {error}");
    }
    if status.tracer != 0 {
        return format!(
            "{} (process {}) already traces pinwise, and a process can have only one tracer; start pinwise without it, or place without /bound",
            tree::process_name(status.tracer).unwrap_or_else(|| "another process".to_owned()),
            status.tracer
        );
    }
    match yama {
        Some("3") => {
            return "kernel.yama.ptrace_scope is 3, which forbids all tracing until the next boot; place without /bound".to_owned();
        }
        Some("2") if !status.may_trace_all => {
            return "kernel.yama.ptrace_scope is 2; allow it as root with: sysctl -w kernel.yama.ptrace_scope=1".to_owned();
        }
        _ => {}
    }
    if status.is_filtered {
        return format!(
            "ptrace: {error}; a seccomp filter, as containers have, may forbid it: docker run --cap-add SYS_PTRACE"
        );
    }
    format!(
        "ptrace: {error}; a security module may forbid it: run as root, or place without /bound"
    )
}

fn read_yama_scope() -> Option<String> {
    super::super::capture::read_text(Path::new("/proc/sys/kernel/yama/ptrace_scope"))
}

/// This process's `/proc/self/status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Status {
    /// The process that traces it; 0: none.
    tracer: i32,
    may_trace_all: bool,
    is_filtered: bool,
    /// Does `no_new_privs` keep programs from gaining privileges on execution anyway?
    has_no_new_privileges: bool,
}

impl Status {
    fn read_own() -> Self {
        let text = super::super::capture::read_file(Path::new("/proc/self/status"));
        Self::parse(&String::from_utf8_lossy(&text.unwrap_or_default()))
    }

    fn parse(text: &str) -> Self {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map_or("", str::trim)
        };
        let capabilities = u64::from_str_radix(field("CapEff"), 16).unwrap_or(0);
        Self {
            tracer: field("TracerPid").parse().unwrap_or(0),
            may_trace_all: capabilities & (1 << CAP_SYS_PTRACE) != 0,
            is_filtered: field("Seccomp") == "2",
            has_no_new_privileges: field("NoNewPrivs") == "1",
        }
    }
}

/// The privilege that a program gives on execution; `None` if it gives no more than this process
/// has.
fn find_privilege(program: &Path) -> Option<Privilege> {
    let metadata = std::fs::metadata(program).ok()?;
    if calls::is_without_setuid(program) {
        return None;
    }
    let mode = metadata.mode();
    if mode & libc::S_ISUID != 0 && metadata.uid() != sys::effective_user() {
        return Some(Privilege::User);
    }
    let is_setgid = mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0;
    if is_setgid && metadata.gid() != calls::effective_group() {
        return Some(Privilege::Group);
    }
    calls::has_attribute(program, c"security.capability").then_some(Privilege::Capabilities)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(code: i32, status: &str, yama: Option<&str>) -> String {
        let error = io::Error::from_raw_os_error(code);
        explain(&error, &Status::parse(status), yama)
    }

    #[test]
    fn a_refusal_names_its_remedy() {
        let user = "TracerPid:\t0\nCapEff:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n";
        let root = "CapEff:\t000001ffffffffff\nSeccomp:\t2\n";
        assert!(words(libc::EPERM, user, Some("3")).contains("next boot"));
        assert!(words(libc::EPERM, user, Some("2")).contains("sysctl -w"));
        assert!(!words(libc::EPERM, root, Some("2")).contains("sysctl -w"));
        assert!(words(libc::EPERM, root, None).contains("--cap-add SYS_PTRACE"));
        assert!(words(libc::ENOSYS, root, None).contains("--cap-add SYS_PTRACE"));
        assert!(words(libc::EPERM, user, Some("0")).contains("security module"));
        assert!(words(libc::EPERM, "TracerPid:\t1\n", None).contains("(process 1) already traces"));
        let gone = words(libc::ESRCH, user, Some("3"));
        assert!(!gone.contains("boot"), "{gone}");
    }

    #[test]
    fn the_status_of_a_process_is_parsed() {
        let status = Status::parse(
            "Name:\tTracerPid:\nTracerPid:\t77\nCapEff:\t0000000000080000\nNoNewPrivs:\t1\nSeccomp:\t2\n",
        );
        assert_eq!(
            status,
            Status {
                tracer: 77,
                may_trace_all: true,
                is_filtered: true,
                has_no_new_privileges: true
            }
        );
        assert_eq!(Status::parse("nonsense"), Status::default());
    }

    #[test]
    fn setuid_programs_of_other_users_would_lose_their_privilege() {
        // The same file system as the tests' programs, on which setuid counts.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prog");
        std::fs::write(&path, "").unwrap();
        let with_mode = |mode| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&path, mode).unwrap();
            find_privilege(&path)
        };
        // Its owner runs this test and gains nothing.
        assert_eq!(with_mode(0o755), None);
        assert_eq!(with_mode(0o4755), None);
        assert_eq!(with_mode(0o2755), None);
    }
}
