//! `-h` and `--help`: groups of commands, options that only `--help` shows, and how `-h` fits a
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

/// Options that only `--help` shows, in every command.
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
    "open_ended",
    "output",
    "parameter_lists",
    "placebo",
    "policies",
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

/// Options that repeat another one under the name that other tools use.
const ALIASES: [&str; 2] = ["parameter_lists", "show_output"];

/// Options that only refine another one: the help of commands with many options leaves them to the
/// reference.
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

/// Makes the help show every option and example in full, in the dense layout of `-h`.
fn show_in_full(command: clap::Command) -> clap::Command {
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
    command.mut_subcommands(show_in_full)
}

/// Makes the help show every option, a line each where there are many: two screens at most.
fn show_all_options(command: clap::Command) -> clap::Command {
    let has_many = |command: &clap::Command| MANY_OPTIONS.contains(&command.get_name());
    show_in_full(command).mut_subcommands(|command| match has_many(&command) {
        true => shorten_each_to_line(command.mut_args(|arg| {
            let id = arg.get_id().as_str();
            let is_left_out = ALIASES.contains(&id) || REFINEMENTS.contains(&id);
            arg.hide_short_help(is_left_out)
        })),
        false => command,
    })
}

/// Makes `-h` and `--help` print the same help: its extent was chosen before parsing.
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

/// Makes the help fit one screen: the common options, a line each, and nothing after the
/// examples but a file that the command needs.
fn show_common_options(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let is_rare = RARE.contains(&arg.get_id().as_str());
        let is_option = arg.get_long().is_some();
        match is_rare && is_option {
            true => arg.hide_short_help(true),
            false => arg,
        }
    });
    let command = shorten_each_to_line(command);
    let after = command.get_after_help().map(ToString::to_string);
    let command = match after.as_deref() {
        Some(after) => command.after_help(keep_examples(after)),
        None => command,
    };
    command.mut_subcommands(show_common_options)
}

/// Keeps the examples (the first paragraph) and the example of a file.
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

/// Cuts the text of each option to what fits into a line.
fn shorten_each_to_line(command: clap::Command) -> clap::Command {
    let columns = measure_columns_by_heading(&command);
    command.mut_args(|arg| {
        let column = columns.get(&heading_of(&arg)).copied().unwrap_or_default();
        shorten_to_line(arg, WIDTH.saturating_sub(column))
    })
}

/// The width of the help in columns.
const WIDTH: usize = 80;

/// Columns that clap adds to the longest option of a group: two indents, a short
/// name, and the gap before its text.
const OPTION_MARGIN: usize = 12;

fn heading_of(arg: &clap::Arg) -> Option<String> {
    match arg.is_positional() {
        true => Some("Arguments".to_owned()),
        false => arg.get_help_heading().map(ToOwned::to_owned),
    }
}

/// The column at which the texts of each group of options begin.
fn measure_columns_by_heading(command: &clap::Command) -> HashMap<Option<String>, usize> {
    let mut columns = HashMap::new();
    let shown = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !arg.is_hide_short_help_set());
    for arg in shown {
        let column = measure_option_width(arg) + OPTION_MARGIN;
        let widest = columns.entry(heading_of(arg)).or_default();
        *widest = column.max(*widest);
    }
    columns
}

/// Columns that an option takes with its values. (Its `Display` needs the
/// number of values, which clap sets only as it parses.)
fn measure_option_width(arg: &clap::Arg) -> usize {
    let name = arg.get_long().map_or(0, |long| "--".len() + long.len());
    let takes_values = arg.get_action().takes_values();
    let values = arg.get_value_names().filter(|_| takes_values);
    name + values
        .into_iter()
        .flatten()
        .map(|value| " <>".len() + value.len())
        .sum::<usize>()
}

/// Cuts the help of an option to `room` columns: whole clauses, then its possible values or its
/// default if there is room for either. The first clause always stays.
fn shorten_to_line(arg: clap::Arg, room: usize) -> clap::Arg {
    let Some(help) = arg.get_help().map(ToString::to_string) else {
        return arg;
    };
    let written = help.split_once(" [default: ");
    let (body, default) = match written.and_then(|(body, rest)| Some((body, rest.split_once(']')?)))
    {
        Some((body, (default, _))) => (body, format!(" [default: {default}]")),
        None => (&*help, format_default(&arg)),
    };
    let cuts = || find_clause_ends(body).chain([body.len()]);
    let room = room.saturating_sub(measure_aliases_width(&arg));
    let longest = |room: usize| {
        let fits = |at: &usize| body[..*at].chars().count() <= room;
        cuts().filter(fits).last()
    };
    let endings = match arg.get_action().takes_values() {
        true => vec![format_values(&arg), default],
        false => Vec::new(),
    };
    let mut filled = endings.iter().filter(|ending| !ending.is_empty());
    let extended = filled.find_map(|ending| {
        let at = longest(room.checked_sub(ending.chars().count())?)?;
        Some(format!("{}{ending}", &body[..at]))
    });
    let text = extended.unwrap_or_else(|| {
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

/// Columns of the aliases that clap writes after the text of an option.
fn measure_aliases_width(arg: &clap::Arg) -> usize {
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    aliases
        .iter()
        .map(|alias| " [alias: --]".len() + alias.len())
        .sum()
}

/// ` [default: 1%]`; empty if there is none to show.
fn format_default(arg: &clap::Arg) -> String {
    let values = arg.get_default_values().iter();
    let shown = values.filter(|_| !arg.is_hide_default_value_set());
    shown
        .map(|value| format!(" [default: {}]", value.to_string_lossy()))
        .collect()
}

/// ` [text, json, csv]`; empty if any value is possible.
fn format_values(arg: &clap::Arg) -> String {
    let values = arg.get_possible_values();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let names: Vec<&str> = shown.map(clap::builder::PossibleValue::get_name).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" [{}]", names.join(", ")),
    }
}

/// Byte offsets at which a help text may be cut: the ends of clauses outside of brackets.
fn find_clause_ends(help: &str) -> impl Iterator<Item = usize> {
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
    /// No help is printed, so none is laid out.
    None,
    /// The common options.
    Brief,
    /// Every option, on two screens at most.
    Long,
    /// Every option with its full text.
    Full,
}

/// The command line for parsing a valid call: only the called command's options are built.
pub(in crate::cli) fn called_command_line() -> clap::Command {
    Cli::command()
}

/// Every command with its options: clap's methods for updates build them at once, not
/// [deferred](super::deferred).
fn build_all_commands() -> clap::Command {
    let described = Command::augment_subcommands_for_update(clap::Command::new("pinwise"));
    Cli::command().mut_subcommands(|command| {
        let described = described.find_subcommand(command.get_name());
        described.cloned().unwrap_or(command)
    })
}

/// The command line with all commands, which the help lists in groups.
pub(in crate::cli) fn build_command(extent: HelpExtent) -> clap::Command {
    let command = match extent {
        HelpExtent::None => build_all_commands(),
        HelpExtent::Brief => show_common_options(list_own_formats(build_all_commands())),
        HelpExtent::Long => show_all_options(list_own_formats(build_all_commands())),
        HelpExtent::Full => show_in_full(list_own_formats(build_all_commands())),
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
    use super::{HelpExtent, build_command};

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
            check(&build_command(extent));
        }
    }
}
