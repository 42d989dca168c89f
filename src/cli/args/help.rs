//! `-h` and `--help`: groups of commands, what only the long one has, and how the short one fits a
//! screen.

use std::collections::HashMap;

use clap::{CommandFactory, Subcommand};

use super::formats::list_own_formats;
use super::{Cli, Command};

/// The commands by what they are for, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Experiments", &["compare", "search", "gate", "bench"]),
    (
        "Observation",
        &["topology", "doctor", "trace", "top", "profile", "spin"],
    ),
    ("Placement", &["run", "apply"]),
    ("Records", &["record", "serve"]),
    ("Clusters", &["fleet"]),
    ("More", &["reproduce", "completions"]),
];

/// Options that `-h` leaves to `--help`, whichever command has them.
const RARE: [&str; 54] = [
    "abort_if_worse",
    "arms",
    "color",
    "companion_metric_commands",
    "companion_metrics",
    "companions",
    "conclude",
    "confirm",
    "emit",
    "environment",
    "exclusive",
    "export_csv",
    "export_hyperfine",
    "export_markdown",
    "fit_threads",
    "folded",
    "input",
    "instructions",
    "irqs",
    "isa",
    "isolate",
    "judge",
    "kernel",
    "limits",
    "machines",
    "max_slowdown",
    "memory_policies",
    "metric_command",
    "metric_url",
    "names",
    "nices",
    "no_cost",
    "output",
    "parameter_lists",
    "placebo",
    "policies",
    "precision",
    "ready",
    "real",
    "recipe",
    "require_verdict",
    "sample",
    "score",
    "seed",
    "settle",
    "show_output",
    "stacks",
    "tags",
    "threads_env",
    "timeout",
    "trace",
    "undecided_limit",
    "units",
    "with_core_scheduling",
];

/// Commands with so many options that `--help` has only a line for each; man pages and the
/// reference have their full texts.
const MANY_OPTIONS: [&str; 1] = ["compare"];

/// Options that are another's in other tools' words.
const OTHER_WORDS: [&str; 2] = ["parameter_lists", "show_output"];

/// Options that only refine another one; for commands with many options only the reference has
/// them.
const REFINEMENTS: [&str; 10] = [
    "arms",
    "companion_metric_commands",
    "companion_metrics",
    "fit_threads",
    "isa",
    "ready",
    "score",
    "settle",
    "undecided_limit",
    "with_core_scheduling",
];

/// With every option and example in its help, laid out as closely as in the short one.
fn full(command: clap::Command) -> clap::Command {
    let examples = command.get_after_long_help().cloned();
    let about = command.get_long_about().cloned();
    let command = command.mut_args(|arg| match arg.get_long_help().cloned() {
        Some(help) => arg.help(help),
        None => arg,
    });
    let command = match examples {
        Some(examples) => command.after_help(examples),
        None => command,
    };
    let command = match about {
        Some(about) => command.about(about),
        None => command,
    };
    command.mut_subcommands(full)
}

/// With a help of two screens at most.
fn long(command: clap::Command) -> clap::Command {
    let has_many = |command: &clap::Command| MANY_OPTIONS.contains(&command.get_name());
    full(command).mut_subcommands(|command| match has_many(&command) {
        true => one_line_each(command.mut_args(|arg| {
            let id = arg.get_id().as_str();
            let is_left_out = OTHER_WORDS.contains(&id) || REFINEMENTS.contains(&id);
            arg.hide_short_help(is_left_out)
        })),
        false => command,
    })
}

/// Both spellings of the help option print the present help: which one that is has been chosen
/// before.
fn add_help_option(command: clap::Command, heading: Option<&'static str>) -> clap::Command {
    let help = clap::Arg::new("help")
        .short('h')
        .long("help")
        .action(clap::ArgAction::HelpShort)
        .help_heading(heading)
        .display_order(usize::MAX)
        .help("Print help: -h for common options, --help for more");
    command
        .disable_help_flag(true)
        .arg(help)
        .mut_subcommands(|command| add_help_option(command, Some("Global options")))
}

/// With a help that fits one screen: the usual options, a line each, and nothing after the
/// examples but a file that the command needs.
fn brief(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let is_rare = RARE.contains(&arg.get_id().as_str());
        let is_option = arg.get_long().is_some();
        match is_rare && is_option {
            true => arg.hide_short_help(true),
            false => arg,
        }
    });
    let command = one_line_each(command);
    let after = command.get_after_help().map(ToString::to_string);
    let command = match after.as_deref() {
        Some(after) => command.after_help(keep_examples(after)),
        None => command,
    };
    command.mut_subcommands(brief)
}

/// The examples, with that of a file.
fn keep_examples(after: &str) -> String {
    let paragraphs = after.split("\n\n").enumerate();
    let is_file = |text: &str| {
        text.lines()
            .next()
            .is_some_and(|l| l.ends_with(" is a file:"))
    };
    let kept = paragraphs.filter(|(at, text)| *at == 0 || is_file(text));
    let kept: Vec<&str> = kept.map(|(_, text)| text).collect();
    kept.join("\n\n")
}

/// With as much of each option's text as fits into a line.
fn one_line_each(command: clap::Command) -> clap::Command {
    let columns = columns_of_groups(&command);
    command.mut_args(|arg| {
        let column = columns.get(&heading_of(&arg)).copied().unwrap_or_default();
        shorten_to_line(arg, WIDTH.saturating_sub(column))
    })
}

/// Columns of a help on a terminal of the usual width.
const WIDTH: usize = 80;

/// What clap sets beside the longest option of a group: two indents, a short
/// name, and the gap before its text.
const BESIDE_OPTION: usize = 12;

fn heading_of(arg: &clap::Arg) -> Option<String> {
    match arg.is_positional() {
        true => Some("Arguments".to_owned()),
        false => arg.get_help_heading().map(ToOwned::to_owned),
    }
}

/// The column at which the texts of each group of options begin.
fn columns_of_groups(command: &clap::Command) -> HashMap<Option<String>, usize> {
    let mut columns = HashMap::new();
    let shown = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !arg.is_hide_short_help_set());
    for arg in shown {
        let column = written_width(arg) + BESIDE_OPTION;
        let widest = columns.entry(heading_of(arg)).or_default();
        *widest = column.max(*widest);
    }
    columns
}

/// Columns that an option takes with its values. (Its own `Display` asks for the
/// number of values, which clap sets only as it parses.)
fn written_width(arg: &clap::Arg) -> usize {
    let name = arg.get_long().map_or(0, |long| "--".len() + long.len());
    let takes_values = arg.get_action().takes_values();
    let values = arg.get_value_names().filter(|_| takes_values);
    name + values
        .into_iter()
        .flatten()
        .map(|value| " <>".len() + value.len())
        .sum::<usize>()
}

/// With as much of its help as fits into a line: whole clauses, with its possible values or its
/// default if there is room for either. The first clause always stays.
fn shorten_to_line(arg: clap::Arg, room: usize) -> clap::Arg {
    let Some(help) = arg.get_help().map(ToString::to_string) else {
        return arg;
    };
    let written = help.split_once(" [default: ");
    let (body, default) = match written.and_then(|(body, rest)| Some((body, rest.split_once(']')?)))
    {
        Some((body, (default, _))) => (body, format!(" [default: {default}]")),
        None => (&*help, default_of(&arg)),
    };
    let cuts = || clause_ends(body).chain([body.len()]);
    let room = room.saturating_sub(aliases_width(&arg));
    let longest = |room: usize| {
        let fits = |at: &usize| body[..*at].chars().count() <= room;
        cuts().filter(fits).last()
    };
    let endings = match arg.get_action().takes_values() {
        true => vec![values_of(&arg), default],
        false => Vec::new(),
    };
    let mut filled = endings.iter().filter(|ending| !ending.is_empty());
    let whole = filled.find_map(|ending| {
        let at = longest(room.checked_sub(ending.chars().count())?)?;
        Some(format!("{}{ending}", &body[..at]))
    });
    let text = whole.unwrap_or_else(|| {
        let at = longest(room).or_else(|| cuts().next());
        body[..at.unwrap_or_default()].to_owned()
    });
    match endings.is_empty() {
        true => arg.help(text),
        false => arg
            .help(text)
            .hide_possible_values(true)
            .hide_env(true)
            .hide_default_value(true),
    }
}

/// Columns that clap writes other names of an option in, behind its text.
fn aliases_width(arg: &clap::Arg) -> usize {
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    aliases
        .iter()
        .map(|alias| " [alias: --]".len() + alias.len())
        .sum()
}

/// ` [default: 1%]`; empty if there is none to show.
fn default_of(arg: &clap::Arg) -> String {
    let values = arg.get_default_values().iter();
    let shown = values.filter(|_| !arg.is_hide_default_value_set());
    shown
        .map(|value| format!(" [default: {}]", value.to_string_lossy()))
        .collect()
}

/// ` [text, json, csv]`; empty if any value is possible.
fn values_of(arg: &clap::Arg) -> String {
    let values = arg.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let names: Vec<&str> = shown.map(clap::builder::PossibleValue::get_name).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" [{}]", names.join(", ")),
    }
}

/// Where a help text may end early: after its first clause, outside of brackets.
fn clause_ends(help: &str) -> impl Iterator<Item = usize> {
    const ENDS: [&str; 4] = ["; ", ": ", " [", ", such as "];
    help.char_indices()
        .scan(0_usize, |depth, (at, letter)| {
            let is_end = *depth == 0 && ENDS.iter().any(|end| help[at..].starts_with(end));
            match letter {
                '[' | '(' => *depth += 1,
                ']' | ')' => *depth = depth.saturating_sub(1),
                _ => {}
            }
            Some(is_end.then_some(at))
        })
        .flatten()
}

/// How much the help of a command contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum HelpExtent {
    /// None is printed: nothing is laid out for it.
    Unseen,
    /// What is used every day.
    Brief,
    /// Every option, on two screens at most.
    Long,
    /// Every option with its full text.
    Full,
}

/// The command line for parsing a valid call: only the called command is described.
pub(in crate::cli) fn called_command_line() -> clap::Command {
    Cli::command()
}

/// Every command with its options: those that are updated are described at once, not
/// [deferred](super::deferred).
fn whole() -> clap::Command {
    let described = Command::augment_subcommands_for_update(clap::Command::new("pinwise"));
    Cli::command().mut_subcommands(|command| {
        let described = described.find_subcommand(command.get_name());
        described.cloned().unwrap_or(command)
    })
}

/// The whole command line, its commands in groups.
pub(in crate::cli) fn command(extent: HelpExtent) -> clap::Command {
    let command = match extent {
        HelpExtent::Unseen => whole(),
        HelpExtent::Brief => brief(list_own_formats(whole())),
        HelpExtent::Long => long(list_own_formats(whole())),
        HelpExtent::Full => full(list_own_formats(whole())),
    };
    let command = add_help_option(command, None);
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        groups.push_str(heading);
        groups.push_str(":\n");
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            groups.push_str(&format!("  {name:<12} {about}\n"));
        }
        groups.push('\n');
    }
    let usage = "{about-with-newline}\n{usage-heading} {usage}\n\n";
    command.help_template(format!(
        "{usage}{groups}Options:\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{HelpExtent, command};

    /// clap breaks longer lines again, which leaves single words.
    #[test]
    fn text_below_the_options_fits_the_help() {
        fn check(command: &clap::Command) {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            for text in texts.into_iter().flatten() {
                for line in text.to_string().lines() {
                    let name = command.get_name();
                    assert!(line.chars().count() <= super::WIDTH, "{name}: {line}");
                }
            }
            command.get_subcommands().for_each(check);
        }
        for extent in [HelpExtent::Brief, HelpExtent::Long, HelpExtent::Full] {
            check(&command(extent));
        }
    }
}
