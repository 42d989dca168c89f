//! Writes documents from the definition of the command line, so that they cannot
//! disagree with it.

use std::fmt::Write;

use clap::builder::PossibleValuesParser;
use clap_complete::{Generator, Shell};
use clap_complete_nushell::Nushell;

use super::Exit;
use super::args::{self, CompletionsArgs, GenerateArgs, Generated, HelpExtent};
use super::files::write_file;
use super::recipes;
use super::terminal::Terminal;
use pinwise_placement::emit::Tool;
use pinwise_placement::known_names;
use pinwise_spin::table::algorithms;
use pinwise_workload::Metric;

pub(super) fn print_completions(
    args: &CompletionsArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    terminal.print(&generate_completions(args.shell))?;
    Ok(Exit::Done)
}

fn generate_completions(shell: Shell) -> String {
    let mut text = Vec::new();
    let mut command = add_value_names(args::build_command(HelpExtent::Full));
    clap_complete::generate(shell, &mut command, "pinwise", &mut text);
    let text = String::from_utf8_lossy(&text);
    match shell {
        Shell::Fish => text.replacen(FISH_PARSER, LENIENT_FISH_PARSER, 1),
        _ => text.into_owned(),
    }
}

/// How clap's script for fish parses the words before the cursor: an option whose value is still to
/// be typed is an error, and then nothing is completed.
const FISH_PARSER: &str = "
    argparse -s (__fish_pinwise_global_optspecs) -- $cmd 2>/dev/null
    or return
";
/// The same, but if the words cannot be parsed, it tries again without the last one.
const LENIENT_FISH_PARSER: &str = "
    set -l before $cmd
    set -e before[-1]
    argparse -s (__fish_pinwise_global_optspecs) -- $cmd 2>/dev/null
    or argparse -s (__fish_pinwise_global_optspecs) -- $before 2>/dev/null
    or return
";

pub(super) fn generate(args: &GenerateArgs) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(&args.folder)?;
    let command = || args::build_command(HelpExtent::Full);
    match args.what {
        Generated::Man => clap_mangen::generate_to(command(), &args.folder)?,
        Generated::Completions => {
            let mut command = add_value_names(command());
            for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
                let file = args.folder.join(shell.file_name("pinwise"));
                write_file(&file, &generate_completions(shell))?;
            }
            clap_complete::generate_to(Nushell, &mut command, "pinwise", &args.folder)?;
        }
        Generated::Reference => {
            write_file(&args.folder.join("cli.md"), &render_reference())?;
        }
    }
    Ok(Exit::Done)
}

/// Adds the names that options can have as values, for completions only: parsing also accepts other
/// values.
fn add_value_names(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let names: Vec<&str> = match arg.get_id().as_str() {
            "place" | "places" => {
                let names = known_names().into_iter();
                names.filter(|name| !name.contains(':')).collect()
            }
            "judge" => vec!["typical", "mean", "p90", "p99"],
            "metric" => Metric::names().collect(),
            "recipe" => recipes::list_names().collect(),
            "emit" | "target" => Tool::ALL.iter().map(|tool| tool.name()).collect(),
            "algorithms" => algorithms().map(|row| row.id).collect(),
            _ => return arg,
        };
        arg.value_parser(PossibleValuesParser::new(names))
    });
    command.mut_subcommands(add_value_names)
}

fn render_reference() -> String {
    let mut command = args::build_command(HelpExtent::Full).term_width(80);
    command.build();
    let mut text = String::from(
        "# Command line\n\nMade by `cargo xtask gen` from the definition of the command line.\n",
    );
    add_sections(&mut text, "pinwise", &mut command);
    text
}

/// The help of a command, then of all below it.
fn add_sections(text: &mut String, name: &str, command: &mut clap::Command) {
    let help = command.render_help().to_string();
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    for inner in command.get_subcommands_mut().filter(|s| !s.is_hide_set()) {
        let name = format!("{name} {}", inner.get_name());
        add_sections(text, &name, inner);
    }
}
