//! The commands that `compare` compares.

use std::path::Path;

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
    /// The options for this command.
    pub(super) options: WorkloadArgs,
}

/// Parses a command line: for the shell of `--shell`, or split into words.
pub(in crate::cli) fn parse_line(line: &str, args: &WorkloadArgs) -> anyhow::Result<Command> {
    let command = match args.shell() {
        Some(shell) => Command::wrap_in_shell(shell, line),
        None => Command::from_line(line),
    };
    Ok(command?)
}

/// Parses the command of an experiment that has only one.
pub(super) fn make_single_candidate(
    args: &ExperimentArgs,
    terminal: &Terminal,
) -> anyhow::Result<Candidate> {
    let command = match Written::from_args(args) {
        Written::Words(words) => parse_command(None, words, &args.workload, terminal)?,
        Written::Lines([line]) => parse_command(Some(line), &[], &args.workload, terminal)?,
        Written::Lines(lines) => {
            let many = lines.len();
            if lines.iter().any(|line| line.contains(char::is_whitespace)) {
                bail!("one command, not {many}: give one line in quotes, or -- PROGRAM ARGUMENTS");
            }
            let line = shell_words::join(lines);
            bail!("one command, not {many}: write it last, after --, as in: -- {line}")
        }
    };
    for word in command.argv() {
        Sweep::fill(word, &[])?;
    }
    Ok(Candidate {
        name: None,
        command,
        options: args.workload.for_command(0, 1, &[])?,
    })
}

/// What the command line has beside options.
#[derive(Clone, Copy)]
enum Written<'a> {
    /// Commands, a line each; one or more.
    Lines(&'a [String]),
    /// One command with its arguments; perhaps none.
    Words(&'a [String]),
}

impl<'a> Written<'a> {
    /// Several words without blanks, of which the first is a program and not all others are, are
    /// one command with its arguments, as in a shell.
    fn from_args(args: &'a ExperimentArgs) -> Self {
        let lines = args.lines.as_slice();
        let has_blanks = |line: &String| line.contains(char::is_whitespace);
        match lines {
            [] => Self::Words(&args.argv),
            [first, rest @ ..]
                if is_program(first)
                    && !lines.iter().any(has_blanks)
                    && !rest.iter().all(|word| is_program(word)) =>
            {
                Self::Words(lines)
            }
            _ => Self::Lines(lines),
        }
    }
}

/// Refuses the path of a second program that does not exist: if it were taken for an argument, the
/// placements of one command would be compared, and a gate might pass.
fn check_second_program(lines: &[String]) -> anyhow::Result<()> {
    let is_path = |word: &str| word.starts_with(['.', '/']) && word.contains('/');
    let Some((first, rest)) = lines.split_first() else {
        return Ok(());
    };
    let missing = rest.iter().find(|word| {
        let is_one_word = !word.contains(char::is_whitespace);
        is_one_word && is_path(word) && !Path::new(word).exists()
    });
    match missing {
        Some(missing) if is_path(first) && is_program(first) => bail!(
            "{missing}: no such program (if it is an argument: pinwise compare -- {})",
            shell_words::join(lines)
        ),
        _ => Ok(()),
    }
}

/// Is it a program that could be run here?
pub(in crate::cli) fn is_program(word: &str) -> bool {
    find_program(&[word.to_owned()], &[]).is_some()
}

/// Parses a line, or arguments, as one command.
pub(in crate::cli) fn parse_command(
    line: Option<&str>,
    argv: &[String],
    args: &WorkloadArgs,
    terminal: &Terminal,
) -> anyhow::Result<Command> {
    let command = match (line, argv) {
        (Some(line), _) => parse_line(line, args)?,
        (None, []) => {
            bail!("no command; write it last, after --, as in: -- ./prog")
        }
        (None, argv) if args.shell().is_some() => parse_line(&argv.join(" "), args)?,
        (None, argv) => Command::from_argv(argv.to_vec())?,
    };
    check_shell_syntax(&command, line, args, terminal)?;
    Ok(command)
}

/// Lists the commands to compare, with all combinations of parameters.
pub(super) fn list_candidates(
    args: &CompareArgs,
    terminal: &Terminal,
) -> anyhow::Result<Vec<Candidate>> {
    check_second_program(&args.experiment.lines)?;
    let sweeps = args.sweeps()?;
    let options = &args.experiment.workload;
    let written = Written::from_args(&args.experiment);
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
        return Ok(vec![make_single_candidate(&args.experiment, terminal)?]);
    }
    if lines.is_empty() {
        let line = match written {
            Written::Lines(lines) => lines.join(" "),
            Written::Words([]) => bail!("--parameter needs a command that uses it"),
            Written::Words(words) => shell_words::join(words),
        };
        lines.push((None, line));
    }
    let written = lines.iter().map(|(_, line)| line.as_str());
    let texts: Vec<&str> = written.chain(options.texts()).collect();
    Sweep::check_used(&sweeps, &texts).context("--parameter")?;
    let choices = Sweep::combinations(&sweeps).context("--parameter")?;
    let mut candidates = Vec::new();
    for (position, (name, line)) in lines.iter().enumerate() {
        for choice in &choices {
            let line = Sweep::fill(line, choice)?;
            let name = match (name, choice.is_empty(), lines.len()) {
                (Some(name), ..) => name_with_values(name, choice)?,
                (None, false, 1) => Sweep::label(choice),
                (None, _, _) => line.clone(),
            };
            let command = parse_line(&line, options)?;
            check_shell_syntax(&command, Some(&line), options, terminal)?;
            candidates.push(Candidate {
                name: Some(name),
                command,
                options: options.for_command(position, lines.len(), choice)?,
            });
        }
    }
    Ok(candidates)
}

/// The name with the parameters' values in place of `{NAME}`, or else appended.
fn name_with_values(name: &str, choice: &[(&str, &str)]) -> anyhow::Result<String> {
    let filled = Sweep::fill(name, choice).context("--name")?;
    Ok(match choice.is_empty() || filled != name {
        true => filled,
        false => format!("{name} {}", Sweep::label(choice)),
    })
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

/// Warns of a shell's syntax in arguments without a shell: a shell has read them already, so they
/// may be meant so. Refuses it in a line.
fn check_shell_syntax(
    command: &Command,
    line: Option<&str>,
    args: &WorkloadArgs,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    if let Some(line) = line {
        return refuse_shell_syntax(command, line, args);
    }
    if let (None, Some(syntax)) = (args.shell(), command.find_shell_syntax(None)) {
        terminal.warn(&format!(
            "'{syntax}' is a shell's syntax, and none runs this command; add --shell sh"
        ));
    }
    Ok(())
}

/// Refuses a line without a shell that contains a shell's syntax, which would be passed on as it is.
pub(in crate::cli) fn refuse_shell_syntax(
    command: &Command,
    line: &str,
    args: &WorkloadArgs,
) -> anyhow::Result<()> {
    match (args.shell(), command.find_shell_syntax(Some(line))) {
        (None, Some(syntax)) => bail!(
            "'{line}': '{syntax}' is a shell's syntax, and none runs this command; add --shell sh, or quote it"
        ),
        _ => Ok(()),
    }
}
