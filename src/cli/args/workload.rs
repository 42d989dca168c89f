//! Arguments on how a command is run.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

use crate::cli::files::NamedFile;
use crate::cli::values::{parse_count, parse_duration, parse_shell};
use pinwise_format::count;
use pinwise_workload::Sweep;

/// How a command is run.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "How the command runs")]
pub struct WorkloadArgs {
    /// File for standard input of every run [default: none]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Standard output and error: `discard`, `inherit`, `pipe`, or a FOLDER/ that
    /// gets two files per run
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
    /// Run this before every run, unmeasured; with several commands, once or for each
    #[arg(long, short = 'p', value_name = "COMMAND")]
    pub prepare: Vec<String>,
    /// Run this after every run, unmeasured; with several commands, once or for each
    #[arg(long, value_name = "COMMAND")]
    pub conclude: Vec<String>,
    /// Kill a longer run; its arm counts as at least that slow
    /// [default: none; of compare, the --budget]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub timeout: Option<Duration>,
    /// Accept any exit status
    #[arg(long, short = 'i')]
    pub ignore_failure: bool,
    /// Run commands in this shell, such as sh, for pipes and redirections
    #[arg(long, short = 'S', value_name = "SHELL", value_parser = parse_shell)]
    pub shell: Option<String>,
    /// Without a shell, which is the default
    #[arg(short = 'N', hide = true, conflicts_with = "shell")]
    pub no_shell: bool,
    /// Add to the environment of every run
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub environment: Vec<String>,
    /// Set thread counts by environment variables; for OpenMP, Go, Rayon, Tokio, Java
    /// and BLAS programs
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub threads_env: Option<usize>,
}

impl WorkloadArgs {
    /// Files that it reads.
    pub(in crate::cli) fn inputs(&self) -> Vec<NamedFile<'_>> {
        let input = self.input_file().into_iter();
        let option = "--input";
        input.map(|path| NamedFile { option, path }).collect()
    }

    /// The file of `--input`, unless it is `none`.
    pub fn input_file(&self) -> Option<&PathBuf> {
        let input = self.input.as_ref();
        input.filter(|path| path.as_os_str() != "null")
    }

    /// The shell that commands are passed to.
    pub fn shell(&self) -> Option<&str> {
        match self.shell.as_deref() {
            None | Some("none") => None,
            Some("default") => Some("sh"),
            shell => shell,
        }
    }

    /// The texts in which `{NAME}` is replaced by a parameter.
    pub(in crate::cli) fn texts(&self) -> Vec<&str> {
        let helpers = self.prepare.iter().chain(&self.conclude);
        let texts = helpers.chain(&self.environment).map(String::as_str);
        let input = self.input.iter().filter_map(|path| path.to_str());
        texts.chain(input).collect()
    }

    /// What belongs to the command at this position of this many, with a combination's
    /// values in place of parameters.
    pub(in crate::cli) fn for_command(
        &self,
        position: usize,
        commands: usize,
        choice: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let fill = |option: &'static str, text: &str| Sweep::fill(text, choice).context(option);
        let own = |option, texts: &[String]| {
            let many = texts.len();
            if many > 1 && many != commands {
                bail!(
                    "{option} is given {many} times for {}: give it once, or once for each",
                    count(commands, "command")
                );
            }
            let text = texts.get(position).or(texts.first());
            text.map(|text| fill(option, text))
                .into_iter()
                .collect::<anyhow::Result<_>>()
        };
        let input = self.input_file().map(|path| match path.to_str() {
            Some(text) => fill("--input", text).map(PathBuf::from),
            None => Ok(path.clone()),
        });
        let environment = self.environment.iter().map(|text| fill("--env", text));
        Ok(Self {
            input: input.transpose()?,
            prepare: own("--prepare", &self.prepare)?,
            conclude: own("--conclude", &self.conclude)?,
            environment: environment.collect::<anyhow::Result<_>>()?,
            ..self.clone()
        })
    }
}
