//! Arguments as they were parsed, or what the parser says in one line.

use std::ffi::OsString;

use clap::ArgMatches;
use clap::error::ErrorKind;

use super::args::{self, HelpExtent};
use super::parser_words::one_line;
use super::terminal::Terminal;
use super::{Exit, config, idioms};

/// Most calls are in order, and need their own options alone.
pub(super) fn parse(
    config: &config::Config,
    arguments: &[OsString],
) -> Result<ArgMatches, clap::Error> {
    let extent = idioms::extent_of(arguments);
    let read = |command| config.apply(command).try_get_matches_from(arguments);
    if extent == HelpExtent::Unseen && !config.changes_commands() {
        match read(args::called_command_line()) {
            Err(error) if error.use_stderr() => {}
            parsed => return parsed,
        }
    }
    read(args::command(extent))
}

/// Help and version are data; any other answer of the parser is an error, reported
/// in one line with its hint.
pub(super) fn report(error: &clap::Error, arguments: &[OsString]) -> Exit {
    let kind = error.kind();
    if !error.use_stderr() {
        // Help and version, the first with bold headings if possible; a reader that has gone away
        // is not an error.
        let terminal = Terminal::plain();
        let _ = match terminal.stdout_is_ascii() {
            true => terminal.print(&error.to_string()),
            false => error.print().map_err(Into::into),
        };
        return Exit::Done;
    }
    // One and the same, but for an option that is set in the environment.
    if matches!(
        kind,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
    ) {
        Terminal::plain().help(&idioms::help_of(arguments));
        return Exit::Error;
    }
    Terminal::plain().error(&idioms::hint(error, arguments).unwrap_or_else(|| one_line(error)));
    match arguments.iter().any(|argument| argument == "--bisect") {
        true => Exit::StopBisecting,
        false => Exit::Error,
    }
}
