//! Arguments on how a command is run.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::files::Named;
use crate::cli::values::{parse_count, parse_duration};

/// How a command is run.
#[derive(Debug, Args)]
#[command(next_help_heading = "How the command runs")]
pub struct WorkloadArgs {
    /// File for standard input of every run [default: nothing]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Standard output and error: `discard`, `inherit`, or a folder that gets
    /// two files per run
    #[arg(
        long,
        value_name = "WHERE",
        default_value = "discard",
        default_value_if("show_output", "true", "inherit")
    )]
    pub output: String,
    /// The same as --output inherit
    #[arg(long, conflicts_with = "output")]
    pub show_output: bool,
    /// Run before every run, unmeasured
    #[arg(long, short = 'p', value_name = "COMMAND")]
    pub prepare: Option<String>,
    /// Run after every run, unmeasured
    #[arg(long, short = 'c', value_name = "COMMAND")]
    pub cleanup: Option<String>,
    /// Kill a run that takes longer; its arm then does not count [default: the
    /// budget, for compare]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Accept any exit status
    #[arg(long, short = 'i')]
    pub ignore_failure: bool,
    /// Pass commands to a shell; pipes and redirections then work
    #[arg(long, value_name = "SHELL", num_args = 0..=1, require_equals = true, default_missing_value = "sh")]
    pub shell: Option<String>,
    /// Without a shell, as it is anyway unless --shell is given
    #[arg(short = 'N', hide = true, conflicts_with = "shell")]
    pub no_shell: bool,
    /// Add to the environment of every run
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub environment: Vec<String>,
    /// Fix the number of threads, whatever CPUs are seen; of OpenMP, Go, Rayon,
    /// Tokio, Java and BLAS programs
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub threads_env: Option<usize>,
}

impl WorkloadArgs {
    /// Files that it reads.
    pub(in crate::cli) fn inputs(&self) -> Vec<Named<'_>> {
        let input = self.input.iter();
        input.map(|path| ("--input", path.as_path())).collect()
    }

    /// The shell that commands are passed to; `none` is none, as elsewhere.
    pub fn shell(&self) -> Option<&str> {
        self.shell.as_deref().filter(|shell| *shell != "none")
    }
}
