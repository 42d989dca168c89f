//! Translates a command into requests to the kernel, and the kernel's refusals into errors that a
//! user understands.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::bind::refusal;
use super::spawn::{self, FindError, Step};
use super::{search_path, sys, whole_environment};
use crate::{MachineError, RunSetting};
use pinwise_placement::{MemoryBinding, MemoryPolicy};
use pinwise_topology::{CpuSet, fnv1a};
use pinwise_workload::{Command, Workload};

/// Largest program that is read for its digest, bytes: an experiment should begin at once.
const MAX_PROGRAM_BYTES: u64 = 64 << 20;

/// The purpose of a command.
#[derive(Debug, Clone, Copy)]
pub(super) enum CommandPurpose<'a> {
    /// To be measured, with its settings and the number of bytes to add to its environment.
    Measured(&'a Workload, &'a [RunSetting], usize),
    /// To prepare or clean up.
    Helper,
    /// To run during a measured one, with its own mark.
    Companion { mark: &'a str },
}

impl<'a> CommandPurpose<'a> {
    /// The mark of its processes.
    pub(super) const fn mark(self, own: &'a str) -> &'a str {
        match self {
            Self::Companion { mark } => mark,
            Self::Measured(..) | Self::Helper => own,
        }
    }
}

/// Replaces this process by a command on `cpus` with `variables` added to its environment. Calls
/// `granted` before, with the mask that the kernel granted. Returns only if it failed.
///
/// # Errors
/// [`MachineError`] says what the kernel refused.
pub fn execute(
    command: &Command,
    cpus: &CpuSet,
    memory: Option<&MemoryBinding>,
    variables: &[(String, String)],
    granted: impl FnOnce(&CpuSet),
) -> MachineError {
    let placed = locate(None, command, &search_path()).and_then(|program| {
        place_self(command, cpus, memory, granted)?;
        Ok(program)
    });
    match placed {
        Err(error) => error,
        Ok(program) => {
            let error = spawn::replace(
                &program,
                &c_arguments(command),
                &environment_with(variables),
            );
            explain_start_error(Step::Execute, &error, command, cpus, memory)
        }
    }
}

/// Sets the CPUs and memory policy of this process and its successor.
pub(super) fn place_self(
    command: &Command,
    cpus: &CpuSet,
    memory: Option<&MemoryBinding>,
    granted: impl FnOnce(&CpuSet),
) -> Result<(), MachineError> {
    let refused = |step: Step| {
        move |error: io::Error| explain_start_error(step, &error, command, cpus, memory)
    };
    sys::set_affinity(cpus).map_err(refused(Step::Affinity))?;
    granted(&sys::affinity().map_err(refused(Step::Affinity))?);
    if let Some(binding) = memory {
        let nodes: CpuSet = binding.nodes.iter().copied().collect();
        let (mode, nodes) = policy_mode(binding, &nodes);
        sys::set_memory_policy(mode, nodes).map_err(refused(Step::Memory))?;
    }
    Ok(())
}

/// The inherited environment, with these variables added or replaced.
pub(super) fn environment_with(variables: &[(String, String)]) -> Vec<CString> {
    let is_replaced = |name: &String| variables.iter().any(|(other, _)| other == name);
    let inherited = whole_environment();
    let kept = inherited.filter(|(name, _)| !is_replaced(name));
    let added = variables
        .iter()
        .filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok());
    kept.map(|(_, entry)| entry).chain(added).collect()
}

/// Remembers the paths of programs that were started before.
#[derive(Debug)]
pub(super) struct Programs {
    search_path: String,
    found: BTreeMap<PathBuf, CString>,
}

impl Programs {
    pub(super) fn new() -> Self {
        Self {
            search_path: search_path(),
            found: BTreeMap::new(),
        }
    }

    /// Finds the path of a command's program, relative to `folder`.
    pub(super) fn resolve_program(
        &mut self,
        folder: Option<&Path>,
        command: &Command,
    ) -> Result<CString, MachineError> {
        let name = command.program();
        let key = folder.map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
        if let Some(path) = self.found.get(&key) {
            return Ok(path.clone());
        }
        let path = locate(folder, command, &self.search_path)?;
        self.found.insert(key, path.clone());
        Ok(path)
    }

    /// A digest of the file of a workload's program, hexadecimal; `None` if it cannot be read or is
    /// too large.
    #[expect(clippy::disallowed_methods, reason = "the Edge reads programs")]
    pub(super) fn digest(&self, workload: &Workload) -> Option<String> {
        let folder = workload.folder.as_deref();
        let path = locate(folder, &workload.command, &self.search_path).ok()?;
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        let path = folder.map_or_else(|| path.to_owned(), |folder| folder.join(path));
        let file = std::fs::metadata(&path).ok()?;
        let is_read = file.is_file() && file.len() <= MAX_PROGRAM_BYTES;
        let contents = is_read.then(|| std::fs::read(path))?.ok()?;
        Some(format!("{:016x}", fnv1a(contents)))
    }
}

/// Finds the path of a command's program, relative to `folder`.
pub(super) fn locate(
    folder: Option<&Path>,
    command: &Command,
    search_path: &str,
) -> Result<CString, MachineError> {
    let found = spawn::find_program_in(folder, command.program(), search_path);
    found.map_err(|error| match error {
        FindError::NotFound => MachineError::NotFound {
            program: command.program().to_owned(),
            hint: missing_hint(command.program()),
        },
        FindError::NotExecutable(reason) => MachineError::NotExecutable {
            program: command.program().to_owned(),
            reason,
        },
    })
}

fn missing_hint(program: &str) -> Option<String> {
    if program.contains(' ') {
        let hint = "it contains a space: omit the quotes of a program with arguments; to compare command lines, omit the --";
        return Some(hint.to_owned());
    }
    let is_here = || Path::new(program).exists();
    match program.contains('/') {
        true => None,
        false if is_here() => Some(format!("for the one in this folder write ./{program}")),
        false => Some("it is not in PATH".to_owned()),
    }
}

/// The arguments of a command, the program's name first.
pub(super) fn c_arguments(command: &Command) -> Vec<CString> {
    let arguments = command.argv().iter();
    arguments
        .filter_map(|a| CString::new(a.as_str()).ok())
        .collect()
}

/// The kernel's number of a memory policy, and the nodes to pass with it.
pub(super) fn policy_mode<'a>(
    memory: &MemoryBinding,
    nodes: &'a CpuSet,
) -> (libc::c_int, &'a CpuSet) {
    const NO_NODES: &CpuSet = &CpuSet::new();
    // From linux/mempolicy.h; libc does not have them.
    const MPOL_PREFERRED_MANY: libc::c_int = 5;
    const MPOL_WEIGHTED_INTERLEAVE: libc::c_int = 6;
    match memory.policy {
        MemoryPolicy::Local => (libc::MPOL_LOCAL, NO_NODES),
        MemoryPolicy::Bind => (libc::MPOL_BIND, nodes),
        MemoryPolicy::Interleave => (libc::MPOL_INTERLEAVE, nodes),
        MemoryPolicy::Weighted => (MPOL_WEIGHTED_INTERLEAVE, nodes),
        // With the older policy, the kernel would use only the first of several nodes.
        MemoryPolicy::Preferred if memory.nodes.len() > 1 => (MPOL_PREFERRED_MANY, nodes),
        MemoryPolicy::Preferred => (libc::MPOL_PREFERRED, nodes),
    }
}

/// Checks whether the kernel would accept this memory policy for a child of this process.
///
/// # Errors
/// [`MachineError::Refused`] with the reason, for example an unknown policy.
pub fn check_memory_policy(memory: &MemoryBinding) -> Result<(), MachineError> {
    let nodes: CpuSet = memory.nodes.iter().copied().collect();
    let (mode, nodes) = policy_mode(memory, &nodes);
    sys::try_memory_policy(mode, nodes)
        .map_err(|error| explain_memory_refusal(&error, Some(memory)))
}

fn explain_memory_refusal(error: &io::Error, memory: Option<&MemoryBinding>) -> MachineError {
    let policy = memory.map_or("", |memory| memory.policy.name());
    let memory = memory.filter(|memory| !memory.nodes.is_empty());
    let since = memory.and_then(|memory| match memory.policy {
        MemoryPolicy::Weighted => Some("6.9"),
        MemoryPolicy::Preferred if memory.nodes.len() > 1 => Some("5.15"),
        _ => None,
    });
    let reason = match (error.raw_os_error(), since) {
        (Some(libc::EINVAL), Some(since)) => {
            format!("this kernel does not support it; Linux {since} and later do")
        }
        _ => error.to_string(),
    };
    MachineError::Refused {
        what: format!("the memory policy {policy}"),
        reason,
    }
}

/// The error for a step that failed when a command was started.
pub(super) fn explain_start_error(
    step: Step,
    error: &io::Error,
    command: &Command,
    cpus: &CpuSet,
    memory: Option<&MemoryBinding>,
) -> MachineError {
    let reason = error.to_string();
    match step {
        Step::Affinity => MachineError::Refused {
            what: format!("CPUs {cpus} for '{command}'"),
            reason: format!("{reason} (did a cpuset or CPU hotplug take them away?)"),
        },
        Step::Memory => explain_memory_refusal(error, memory),
        Step::Execute if error.raw_os_error() == Some(libc::ENOEXEC) => {
            MachineError::NotExecutable {
                program: command.program().to_owned(),
                reason: "it is neither a binary of this machine nor a script with #!".to_owned(),
            }
        }
        // The program itself exists: it was found before.
        Step::Execute if error.raw_os_error() == Some(libc::ENOENT) => {
            MachineError::NotExecutable {
                program: command.program().to_owned(),
                reason: "what runs it is missing: the program named after #!, or its loader"
                    .to_owned(),
            }
        }
        Step::Execute => MachineError::NotExecutable {
            program: command.program().to_owned(),
            reason,
        },
        Step::Folder => MachineError::System {
            action: format!("starting '{command}' in its folder"),
            reason,
        },
        Step::Trace => refusal::explain_refusal(error, command),
        Step::Group => MachineError::Refused {
            what: "a cgroup of the command's own".to_owned(),
            reason,
        },
        Step::Clone | Step::Descriptors | Step::Scheduling | Step::Cookie => MachineError::System {
            action: format!("starting '{command}'"),
            reason,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_equal_contents_are_equal_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let written = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
        };
        written("a", "#!/bin/sh\n");
        written("b", "#!/bin/sh\n");
        written("c", "#!/bin/sh\nexit 1\n");
        let digest = |name: &str| {
            let mut workload = Workload::new(Command::from_line(name).unwrap());
            workload.folder = Some(folder.path().to_owned());
            Programs::new().digest(&workload)
        };
        let first = digest("./a");
        assert!(first.is_some());
        assert_eq!(first, digest("./b"));
        assert_ne!(first, digest("./c"));
        assert_eq!(digest("./missing"), None);
        assert!(digest("sh").is_some());
    }
}
