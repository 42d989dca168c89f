//! Parses arguments, and prints help or the parser's error.

use std::ffi::OsString;

use clap::ArgMatches;
use clap::error::ErrorKind;

use super::args::{self, HelpExtent};
use super::parser_words::to_one_line;
use super::terminal::Terminal;
use super::{Exit, config, idioms};

/// Parses arguments, first with the options of the called command only: most calls are valid.
pub(super) fn parse(
    config: &config::Config,
    arguments: &[OsString],
) -> Result<ArgMatches, clap::Error> {
    let extent = idioms::find_requested_help(arguments);
    let read = |command| config.apply(command).try_get_matches_from(arguments);
    if extent == HelpExtent::None && !config.changes_commands() {
        match read(args::called_command_line()) {
            Err(error) if error.use_stderr() => {}
            parsed => return parsed,
        }
    }
    read(args::build_command(extent))
}

/// Prints help or the version to standard output; anything else is an error, printed in one line
/// with a hint.
pub(super) fn report(error: &clap::Error, arguments: &[OsString]) -> Exit {
    let kind = error.kind();
    if !error.use_stderr() {
        // clap prints bold headings if possible. A closed pipe is not an error.
        let terminal = Terminal::plain();
        let help = idioms::name_help_by_alias(&error.to_string(), arguments);
        let _ = match help.is_some() || terminal.stdout_is_ascii() {
            true => terminal.print(&help.unwrap_or_else(|| error.to_string())),
            false => error.print().map_err(Into::into),
        };
        return Exit::Done;
    }
    // clap reports the second if an option is set by the environment, otherwise the first.
    if matches!(
        kind,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
    ) {
        Terminal::plain().help(&idioms::render_help_of(arguments));
        return Exit::Error;
    }
    Terminal::plain()
        .error(&idioms::explain(error, arguments).unwrap_or_else(|| to_one_line(error)));
    match arguments.iter().any(|argument| argument == "--bisect") {
        true => Exit::StopBisecting,
        false => Exit::Error,
    }
}
