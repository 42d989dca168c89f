//! Command lines of pinwise itself, one argument per line. The parsers of
//! durations, shares and counts are private; they are reached through the
//! command line.

use clap::Parser;
use pinwise::cli::Cli;

/// Reads any bytes.
pub(crate) fn run(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let arguments = std::iter::once("pinwise").chain(text.split('\n'));
    if let Err(error) = Cli::try_parse_from(arguments) {
        assert!(!error.to_string().is_empty());
    }
}
