//! Runs Slurm's commands. Other modules parse their output.

use std::io::ErrorKind;
use std::process::{Command, Stdio};

use crate::launcher::{self, LaunchError};

/// Environment variables that make Slurm's commands filter, wait or use fewer CPUs, and that no
/// option overrides; see sbatch(1), squeue(1), sinfo(1), scancel(1) and sacct(1). Defaults of the
/// user or the site for account, partition, QOS or reservation are not removed.
const DISTORTING_VARIABLES: [&str; 36] = [
    "SBATCH_ARRAY_INX",
    "SBATCH_CORE_SPEC",
    "SBATCH_DISTRIBUTION",
    "SBATCH_GET_USER_ENV",
    "SBATCH_HINT",
    "SBATCH_IGNORE_PBS",
    "SBATCH_INPUT",
    "SBATCH_MEM_BIND",
    "SBATCH_MEM_PER_CPU",
    "SBATCH_MEM_PER_GPU",
    "SBATCH_NO_KILL",
    "SBATCH_NO_REQUEUE",
    "SBATCH_OVERCOMMIT",
    "SBATCH_SIGNAL",
    "SBATCH_THREADS_PER_CORE",
    "SBATCH_THREAD_SPEC",
    "SBATCH_WAIT",
    "SBATCH_CONTAINER",
    "SQUEUE_ACCOUNT",
    "SQUEUE_LICENSES",
    "SQUEUE_NAMES",
    "SQUEUE_PARTITION",
    "SQUEUE_QOS",
    "SQUEUE_SORT",
    "SQUEUE_STATES",
    "SQUEUE_USERS",
    "SINFO_PARTITION",
    "SINFO_SORT",
    "SCANCEL_ACCOUNT",
    "SCANCEL_BATCH",
    "SCANCEL_INTERACTIVE",
    "SCANCEL_PARTITION",
    "SCANCEL_QOS",
    "SCANCEL_STATE",
    "SCANCEL_USER",
    "SCANCEL_WCKEY",
];

/// The output of a command.
#[derive(Debug)]
pub(super) struct CommandOutput {
    /// Its standard output.
    pub(super) stdout: String,
    /// Its standard error on one line; if that is empty, its exit status.
    pub(super) message: String,
    /// Did it exit with 0?
    pub(super) is_success: bool,
}

impl CommandOutput {
    /// The standard output of a successful command.
    pub(super) fn require_success(self, program: &str) -> Result<String, LaunchError> {
        if self.is_success {
            return Ok(self.stdout);
        }
        Err(LaunchError::Refused {
            program: program.to_owned(),
            message: self.message,
        })
    }
}

/// Runs a command of Slurm and waits for it.
pub(super) fn run_command(
    program: &str,
    arguments: &[String],
) -> Result<CommandOutput, LaunchError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the Edge starts Slurm's commands"
    )]
    let mut command = Command::new(program);
    for name in DISTORTING_VARIABLES {
        command.env_remove(name);
    }
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|reason| match reason.kind() {
        ErrorKind::NotFound => LaunchError::Absent {
            program: program.to_owned(),
            hint: "load Slurm's module or run this on a login node of the cluster; \
                   without Slurm, --launcher ssh takes a list of hosts"
                .to_owned(),
        },
        _ => LaunchError::System {
            what: program.to_owned(),
            reason,
        },
    })?;
    let mut message = format_message(&String::from_utf8_lossy(&output.stderr), program);
    if message.is_empty() {
        message = format!("{}, without output", output.status);
    }
    Ok(CommandOutput {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        message,
        is_success: output.status.success(),
    })
}

/// Joins Slurm's message to one line, without the prefix `sbatch: error: `.
pub(super) fn format_message(text: &str, program: &str) -> String {
    let prefix = format!("{program}: ");
    launcher::join_to_line(text.lines().map(|line| {
        let line = line.trim();
        let line = line.strip_prefix(&prefix).unwrap_or(line);
        line.strip_prefix("error: ").unwrap_or(line)
    }))
}
