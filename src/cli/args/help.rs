//! `-h` and `--help`: groups of commands, what is left to the long one, and
//! how the short one fits a screen.

use std::collections::HashMap;

use clap::CommandFactory;

use super::Cli;

/// The commands by what they are for, in the order of the help.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Ask", &["compare", "search", "gate", "bench"]),
    (
        "Look",
        &["topology", "doctor", "trace", "top", "profile", "spin"],
    ),
    ("Do", &["run", "apply"]),
    ("Keep", &["record", "serve"]),
    ("Many machines", &["fleet"]),
    ("More", &["reproduce", "completions"]),
];

/// Options that `-h` leaves to `--help`, whichever command has them.
const RARE: [&str; 42] = [
    "abort_if_worse",
    "arms",
    "cleanup",
    "color",
    "confirm",
    "emit",
    "environment",
    "export_csv",
    "export_hyperfine",
    "export_markdown",
    "folded",
    "input",
    "instructions",
    "irqs",
    "isa",
    "judge",
    "kernel",
    "least_within",
    "machines",
    "memory_policies",
    "metric_command",
    "metric_url",
    "names",
    "no_cost",
    "output",
    "parameter_lists",
    "placebo",
    "precision",
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
    "units",
];

/// The same with every option and example in its help, laid out as closely as
/// in the short one.
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

/// Both spellings of the help option print what is there: what that is has been
/// chosen before.
fn with_help(command: clap::Command, heading: Option<&'static str>) -> clap::Command {
    let help = clap::Arg::new("help")
        .short('h')
        .long("help")
        .action(clap::ArgAction::HelpShort)
        .help_heading(heading)
        .display_order(usize::MAX)
        .help("Print help: -h the usual options, --help all");
    command
        .disable_help_flag(true)
        .arg(help)
        .mut_subcommands(|command| with_help(command, Some("Global options")))
}

/// The same with a help that fits one screen: the usual options, a line each,
/// and nothing after the examples.
fn brief(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let is_rare = RARE.contains(&arg.get_id().as_str());
        let is_option = arg.get_long().is_some();
        match is_rare && is_option {
            true => arg.hide_short_help(true),
            false => arg,
        }
    });
    let columns = columns_of_groups(&command);
    let command = command.mut_args(|arg| {
        let column = columns.get(&heading_of(&arg)).copied().unwrap_or_default();
        in_one_line(arg, WIDTH.saturating_sub(column))
    });
    let examples = command.get_after_help().map(ToString::to_string);
    let command = match examples.as_deref().and_then(|text| text.split_once("\n\n")) {
        Some((examples, _)) => command.after_help(examples.to_owned()),
        None => command,
    };
    command.mut_subcommands(brief)
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

/// Where the texts of each group of options begin.
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

/// The same with as much of its help as fits into a line: whole clauses, then
/// its default. The first clause stays whatever it takes.
fn in_one_line(arg: clap::Arg, room: usize) -> clap::Arg {
    let Some(help) = arg.get_help().map(ToString::to_string) else {
        return arg;
    };
    let mut cuts: Vec<usize> = clause_ends(&help).collect();
    cuts.push(help.len());
    let fits = |&&at: &&usize| help[..at].chars().count() <= room;
    let at = cuts.iter().rfind(fits).or(cuts.first());
    let text = help[..at.copied().unwrap_or(help.len())].to_owned();
    let default: String = arg
        .get_default_values()
        .iter()
        .map(|value| format!(" [default: {}]", value.to_string_lossy()))
        .collect();
    let hides_default = arg.is_hide_default_value_set();
    let has_room = text.chars().count() + default.chars().count() <= room;
    match arg.get_action().takes_values() {
        false => arg.help(text),
        true => arg
            .help(text)
            .hide_possible_values(true)
            .hide_env(true)
            .hide_default_value(hides_default || !has_room),
    }
}

/// Where a help text may end early: before what is said beyond its first clause,
/// outside of brackets.
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

/// How much the help of a command holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum HelpExtent {
    /// None is printed: nothing is laid out for it.
    Unseen,
    /// What is used every day.
    Brief,
    /// Everything.
    Full,
}

/// The whole command line, its commands in groups.
pub(in crate::cli) fn command(extent: HelpExtent) -> clap::Command {
    let command = match extent {
        HelpExtent::Unseen => Cli::command(),
        HelpExtent::Brief => brief(Cli::command()),
        HelpExtent::Full => full(Cli::command()),
    };
    let command = with_help(command, None);
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
    fn what_stands_below_the_options_is_not_wider_than_a_help() {
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
        for extent in [HelpExtent::Brief, HelpExtent::Full] {
            check(&command(extent));
        }
    }
}
