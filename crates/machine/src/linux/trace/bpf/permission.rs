//! Says what prevents BPF here, and which command permits it.
//!
//! It checks only what can be known in advance; other refusals are reported with the kernel's
//! error.

use super::super::permission::{check_initial_pid_namespace, own_program};
use pinwise_sched::Refusal;

/// The first kernel release whose BPF has atomic additions that return the old value.
const OLDEST_RELEASE: (u32, u32) = (5, 12);
/// The kernel's description of its own structures.
pub(super) const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Bits of capabilities, from linux/capability.h.
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// What loading BPF programs requires of this process and its kernel.
#[derive(Debug, Clone)]
pub(super) struct BpfConditions {
    /// The kernel's release, as `uname -r` prints it.
    pub(super) release: String,
    /// Does the kernel describe its structures?
    pub(super) has_btf: bool,
    /// Set if thread ids of this process differ from the kernel's.
    pub(super) other_namespace: Option<Refusal>,
    /// The effective capabilities.
    pub(super) capabilities: u64,
    /// The program that would need a capability.
    pub(super) program: String,
}

impl BpfConditions {
    /// Reads the conditions of this process.
    pub(super) fn read() -> Self {
        Self {
            release: read_text("/proc/sys/kernel/osrelease").trim().to_owned(),
            has_btf: std::path::Path::new(BTF).exists(),
            other_namespace: check_initial_pid_namespace().err(),
            capabilities: parse_capabilities(&read_text("/proc/self/status")),
            program: own_program(),
        }
    }

    /// Finds the most fundamental obstacle, if any.
    pub(super) fn find_obstacle(&self) -> Option<Refusal> {
        let refusal = |reason: String, remedy: Option<String>| Some(Refusal { reason, remedy });
        let (major, minor) = OLDEST_RELEASE;
        if parse_version(&self.release).is_some_and(|found| found < OLDEST_RELEASE) {
            let reason = format!("Linux {} is older than {major}.{minor}", self.release);
            return refusal(reason, None);
        }
        if !self.has_btf {
            let reason = format!("there is no {BTF}: the kernel was built without BTF");
            return refusal(reason, None);
        }
        if self.other_namespace.is_some() {
            return self.other_namespace.clone();
        }
        let names: Vec<&str> = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
            .into_iter()
            .filter(|(bit, _)| self.capabilities & (bit | CAP_SYS_ADMIN) == 0)
            .map(|(_, name)| name)
            .collect();
        if names.is_empty() {
            return None;
        }
        let verb = if names.len() == 1 { "is" } else { "are" };
        let reason = format!("{} {verb} missing", names.join(" and "));
        let program = pinwise_format::shell::word(&self.program);
        let remedy = format!("sudo setcap cap_bpf,cap_perfmon+ep {program}");
        refusal(reason, Some(remedy))
    }
}

/// Explains why the kernel refuses although no obstacle was found.
pub(super) fn explain_refusal(error: &(dyn std::error::Error + 'static)) -> Refusal {
    let mut causes = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let line = error.to_string();
        let line = line.lines().next().unwrap_or_default();
        // The verifier's log may follow, which is only useful to developers.
        let line = line.split(". Verifier output").next().unwrap_or(line);
        if !causes.iter().any(|cause: &String| cause.contains(line)) {
            causes.push(line.to_owned());
        }
        next = error.source();
    }
    let is_forbidden = causes.iter().any(|cause| cause.contains("os error 1)"));
    let hint = if is_forbidden {
        " (lockdown of the kernel, or a container's filter of system calls)"
    } else {
        ""
    };
    Refusal {
        reason: format!("the kernel refuses: {}{hint}", causes.join(": ")),
        remedy: None,
    }
}

fn read_text(path: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "the Edge reads /proc")]
    std::fs::read_to_string(path).unwrap_or_default()
}

fn parse_capabilities(status: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .unwrap_or_default();
    u64::from_str_radix(line.trim(), 16).unwrap_or(0)
}

fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl Fn(&mut BpfConditions), expected: Option<(&str, Option<&str>)>) {
        let mut conditions = BpfConditions {
            release: "6.18.44-any".to_owned(),
            has_btf: true,
            other_namespace: None,
            capabilities: CAP_BPF | CAP_PERFMON,
            program: "/opt/my tools/pinwise".to_owned(),
        };
        change(&mut conditions);
        let found = conditions.find_obstacle();
        match (found, expected) {
            (None, None) => {}
            (Some(found), Some((reason, remedy))) => {
                assert!(found.reason.contains(reason), "{}", found.reason);
                assert_eq!(found.remedy.as_deref(), remedy, "{}", found.reason);
            }
            (found, expected) => panic!("{found:?} for {expected:?}"),
        }
    }

    #[test]
    fn obstacles_are_reported_with_their_remedy() {
        let setcap = "sudo setcap cap_bpf,cap_perfmon+ep '/opt/my tools/pinwise'";
        check(|_| {}, None);
        check(|s| s.capabilities = CAP_SYS_ADMIN, None);
        check(
            |s| s.capabilities = CAP_PERFMON,
            Some(("CAP_BPF is missing", Some(setcap))),
        );
        check(
            |s| s.capabilities = 0,
            Some(("CAP_BPF and CAP_PERFMON are missing", Some(setcap))),
        );
        check(
            |s| s.release = "5.4.0-42-generic".to_owned(),
            Some(("Linux 5.4.0-42-generic is older than 5.12", None)),
        );
        check(|s| s.release = "5.12".to_owned(), None);
        check(|s| s.release = "unheard of".to_owned(), None);
        check(|s| s.has_btf = false, Some(("built without BTF", None)));
        check(
            |s| {
                s.other_namespace = Some(Refusal {
                    reason: "in a container".to_owned(),
                    remedy: None,
                });
            },
            Some(("in a container", None)),
        );
    }

    #[test]
    fn capabilities_are_read_from_status() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000000c000000000\n";
        assert_eq!(parse_capabilities(status), CAP_BPF | CAP_PERFMON);
        assert_eq!(parse_capabilities("CapEff:\tnonsense"), 0);
    }

    #[test]
    fn the_kernels_message_is_quoted_without_the_verifiers_log() {
        let error = std::io::Error::from_raw_os_error(libc::EPERM);
        let refusal = explain_refusal(&error);
        assert!(refusal.reason.contains("lockdown"), "{}", refusal.reason);
        assert!(!refusal.reason.contains('\n'));
    }
}
