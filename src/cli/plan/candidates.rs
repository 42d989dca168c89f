//! The commands that are compared.

use anyhow::{Context, bail};

use crate::cli::args::{CompareArgs, ExperimentArgs, WorkloadArgs};
use crate::cli::terminal::Terminal;
use pinwise_format::count;
use pinwise_machine::linux::find_program;
use pinwise_workload::{Command, Sweep};

/// A named command.
pub(super) struct Candidate {
    pub(super) name: Option<String>,
    pub(super) command: Command,
}

pub(in crate::cli) fn parse_line(line: &str, args: &WorkloadArgs) -> anyhow::Result<Command> {
    let command = match args.shell() {
        Some(shell) => Command::in_shell(shell, line),
        None => Command::from_line(line),
    };
    Ok(command?)
}

/// The one command of an experiment that has no more.
pub(super) fn command_of(args: &ExperimentArgs) -> anyhow::Result<Command> {
    match Written::of(args) {
        Written::Words(words) => one_command(None, words, &args.workload),
        Written::Lines([line]) => one_command(Some(line), &[], &args.workload),
        Written::Lines(lines) => {
            let many = lines.len();
            if lines.iter().any(|line| line.contains(char::is_whitespace)) {
                bail!("one command, not {many}: give one line in quotes, or -- PROGRAM ARGUMENTS");
            }
            let line = shell_words::join(lines);
            bail!("one command, not {many}: write it last, after --, as in: -- {line}")
        }
    }
}

/// What stands on the command line beside the options.
#[derive(Clone, Copy)]
enum Written<'a> {
    /// Commands, a line each; one or more.
    Lines(&'a [String]),
    /// One command with its arguments; perhaps none.
    Words(&'a [String]),
}

impl<'a> Written<'a> {
    /// Words without blanks of which the first is a program and another is none
    /// are one command with its arguments, as one writes it in a shell.
    fn of(args: &'a ExperimentArgs) -> Self {
        let lines = args.lines.as_slice();
        let has_blanks = |line: &String| line.contains(char::is_whitespace);
        match lines {
            [] => Self::Words(&args.argv),
            [first, rest @ ..]
                if is_program(first)
                    && !lines.iter().any(has_blanks)
                    && !rest.iter().all(is_program) =>
            {
                Self::Words(lines)
            }
            _ => Self::Lines(lines),
        }
    }
}

/// Is it a program that could be run here?
fn is_program(word: &String) -> bool {
    find_program(std::slice::from_ref(word), &[]).is_some()
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
        (None, argv) if args.shell().is_some() => parse_line(&argv.join(" "), args),
        (None, argv) => Ok(Command::from_argv(argv.to_vec())?),
    }
}

pub(super) fn candidates(args: &CompareArgs) -> anyhow::Result<Vec<Candidate>> {
    let sweeps = args.sweeps()?;
    let written = Written::of(&args.experiment);
    let commands = match written {
        Written::Lines(lines) if lines.len() > 1 || !args.names.is_empty() => lines,
        _ => &args.commands,
    };
    check_names(&args.names, commands.len())?;
    if let ([name], [line], true) = (args.names.as_slice(), commands, sweeps.is_empty()) {
        bail!(
            "--name {name}: names distinguish commands, and '{line}' is the only one; its arms are named by their placements"
        );
    }
    let mut lines: Vec<(Option<String>, String)> = commands
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
        let line = match written {
            Written::Lines(lines) => lines.join(" "),
            Written::Words([]) => bail!("--parameter needs a command that uses it"),
            Written::Words(words) => shell_words::join(words),
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
            "{} for {}: --name names the command at the same position",
            count(names.len(), "name"),
            count(commands, "command")
        );
    }
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            bail!("--name '{name}' is given twice; every arm needs a name of its own");
        }
    }
    Ok(())
}

pub(in crate::cli) fn warn_of_shell_characters(
    command: &Command,
    args: &WorkloadArgs,
    terminal: &Terminal,
) {
    if args.shell().is_none()
        && let Some(mark) = command.shell_characters()
    {
        terminal.warn(&format!(
            "'{mark}' is passed to {} as it is; for a shell to act on it, add --shell",
            command.program()
        ));
    }
}
