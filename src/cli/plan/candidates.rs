//! The commands that are compared.

use anyhow::{Context, bail};

use crate::cli::args::{CompareArgs, ExperimentArgs, WorkloadArgs};
use crate::cli::terminal::Terminal;
use crate::format::count;
use crate::workload::{Command, Sweep};

/// A named command.
pub(super) struct Candidate {
    pub(super) name: Option<String>,
    pub(super) command: Command,
}

pub(in crate::cli) fn parse_line(line: &str, args: &WorkloadArgs) -> anyhow::Result<Command> {
    let command = match &args.shell {
        Some(shell) => Command::in_shell(shell, line),
        None => Command::from_line(line),
    };
    Ok(command?)
}

pub(super) fn command_of(args: &ExperimentArgs) -> anyhow::Result<Command> {
    one_command(args.line.as_deref(), &args.argv, &args.workload)
}

/// The one command of an experiment: a line, or arguments.
pub(in crate::cli) fn one_command(
    line: Option<&str>,
    argv: &[String],
    args: &WorkloadArgs,
) -> anyhow::Result<Command> {
    match (line, argv) {
        (Some(line), _) => parse_line(line, args),
        (None, []) => {
            bail!("there is no command; write it last, after --, as in: -- ./prog")
        }
        (None, argv) if args.shell.is_some() => parse_line(&argv.join(" "), args),
        (None, argv) => Ok(Command::from_argv(argv.to_vec())?),
    }
}

pub(super) fn candidates(args: &CompareArgs) -> anyhow::Result<Vec<Candidate>> {
    let sweeps: Vec<Sweep> = args
        .parameters
        .iter()
        .map(|text| text.parse().context("--parameter"))
        .collect::<anyhow::Result<_>>()?;
    check_names(&args.names, args.commands.len())?;
    let mut lines: Vec<(Option<String>, String)> = args
        .commands
        .iter()
        .enumerate()
        .map(|(index, line)| (args.names.get(index).cloned(), line.clone()))
        .collect();
    if lines.is_empty() && sweeps.is_empty() {
        let command = command_of(&args.experiment)?;
        return Ok(vec![Candidate {
            name: None,
            command,
        }]);
    }
    if lines.is_empty() {
        let line = match &args.experiment.line {
            Some(line) => line.clone(),
            None if args.experiment.argv.is_empty() => {
                bail!("--parameter needs a command that uses it")
            }
            None => shell_words::join(&args.experiment.argv),
        };
        lines.push((None, line));
    }
    let mut candidates = Vec::new();
    for (name, line) in &lines {
        for (choice, line) in Sweep::expand(&sweeps, line).context("--parameter")? {
            let label = match (name, choice.is_empty(), lines.len()) {
                (Some(name), true, _) => name.clone(),
                (Some(name), false, _) => format!("{name} {choice}"),
                (None, false, 1) => choice,
                (None, _, _) => line.clone(),
            };
            candidates.push(Candidate {
                name: Some(label),
                command: parse_line(&line, &args.experiment.workload)?,
            });
        }
    }
    Ok(candidates)
}

fn check_names(names: &[String], commands: usize) -> anyhow::Result<()> {
    if names.len() > commands {
        bail!(
            "{} for {}: --name names the --command at the same position",
            count(names.len(), "name"),
            count(commands, "command")
        );
    }
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            bail!("--name '{name}' stands twice; every arm needs a name of its own");
        }
    }
    Ok(())
}

pub(in crate::cli) fn warn_of_shell_characters(
    command: &Command,
    args: &WorkloadArgs,
    terminal: &Terminal,
) {
    if args.shell.is_none()
        && let Some(mark) = command.shell_characters()
    {
        terminal.warn(&format!(
            "'{mark}' is passed to {} as it is; for a shell to act on it, add --shell",
            command.program()
        ));
    }
}
