//! Writes data to standard output, everything else to standard error.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use super::args::{ColorChoice, Format, Global};
use pinwise_report::{Palette, visible_data, visible_lines};

/// The properties of the streams, and the only way to write to them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terminal {
    format: Format,
    palette: Palette,
    error_palette: Palette,
    is_verbose: bool,
    is_quiet: bool,
    /// Is standard output a terminal that shows only ASCII?
    out_is_ascii: bool,
    error_is_ascii: bool,
}

impl Terminal {
    pub(super) fn new(global: &Global) -> Self {
        let no_color =
            is_set("NO_COLOR") || read_variable("TERM").is_some_and(|term| term == "dumb");
        let is_forced = read_variable("CLICOLOR_FORCE").is_some_and(|value| value != "0");
        let is_colored = |is_terminal: bool| match global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if is_set("NO_COLOR") => false,
            ColorChoice::Auto => is_forced || (is_terminal && !no_color),
        };
        let palette = Palette::new(is_colored(io::stdout().is_terminal()));
        Self {
            format: global.format,
            palette: match global.store.as_deref() {
                Some("none") => palette.unstored(),
                _ => palette,
            },
            error_palette: Palette::new(is_colored(io::stderr().is_terminal())),
            is_quiet: global.quiet,
            is_verbose: global.verbose > 0,
            ..Self::plain()
        }
    }

    /// With default options, for errors before options are parsed.
    pub(super) fn plain() -> Self {
        let knows_unicode = is_unicode();
        Self {
            format: Format::Text,
            palette: Palette::new(false),
            error_palette: Palette::new(false),
            is_quiet: false,
            is_verbose: false,
            out_is_ascii: !knows_unicode && io::stdout().is_terminal(),
            error_is_ascii: !knows_unicode && io::stderr().is_terminal(),
        }
    }

    /// Is `--verbose` given?
    pub(super) const fn is_verbose(self) -> bool {
        self.is_verbose
    }

    pub(super) const fn palette(self) -> Palette {
        self.palette
    }

    pub(super) const fn format(self) -> Format {
        self.format
    }

    pub(super) fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// May progress be drawn?
    pub(super) fn shows_progress(self) -> bool {
        !self.is_quiet && io::stderr().is_terminal()
    }

    /// Is standard output a terminal?
    pub(super) fn is_read_by_people(self) -> bool {
        io::stdout().is_terminal()
    }

    /// Width of standard output in columns; `None` if it is not a terminal.
    pub(super) fn columns(self) -> Option<usize> {
        let (columns, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(columns.0.into())
    }

    /// Writes data. A reader that has gone away is not an error.
    pub(super) fn print(self, text: &str) -> anyhow::Result<()> {
        let text = match self.out_is_ascii {
            true => Cow::Owned(to_ascii(text)),
            false => Cow::Borrowed(text),
        };
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => Ok(result?),
        }
    }

    /// Writes data for programs unchanged. On a terminal control characters are made visible, since
    /// names in the data may come from anybody.
    pub(super) fn print_data(self, text: &str) -> anyhow::Result<()> {
        match self.is_read_by_people() {
            true => self.print(&visible_data(text)),
            false => self.print(text),
        }
    }

    /// Writes a record as JSON, as it is stored.
    pub(super) fn print_json(self, record: &impl serde::Serialize) -> anyhow::Result<()> {
        self.print_data(&format!("{}\n", serde_json::to_string(record)?))
    }

    /// Writes a record, as JSON or as its text.
    pub(super) fn show<T: serde::Serialize>(
        self,
        record: &T,
        text: impl FnOnce(&T, Palette) -> String,
    ) -> anyhow::Result<()> {
        match self.is_json() {
            true => self.print_json(record),
            false => self.print(&text(record, self.palette)),
        }
    }

    /// Writes a note to standard error, unless quiet.
    pub(super) fn note(self, sentence: &str) {
        if !self.is_quiet {
            self.to_stderr(&format!("{}\n", to_message(sentence)));
        }
    }

    /// Writes a warning to standard error, even if quiet.
    pub(super) fn warn(self, sentence: &str) {
        let mark = self.error_palette.warn("warning:");
        let message = to_message(&strip_error_number(sentence));
        self.to_stderr(&format!("{mark} {message}\n"));
    }

    /// Writes an error to standard error.
    pub(super) fn error(self, sentence: &str) {
        let mark = self.error_palette.bad("error:");
        let message = to_message(&strip_error_number(sentence));
        self.to_stderr(&format!("{mark} {message}\n"));
    }

    /// Writes help to standard error, instead of an error.
    pub(super) fn help(self, text: &str) {
        self.to_stderr(text);
    }

    /// Converts text to what standard error can show.
    pub(super) fn for_stderr(self, text: &str) -> String {
        match self.error_is_ascii {
            true => to_ascii(text),
            false => text.to_owned(),
        }
    }

    /// Is standard output a terminal that shows nothing but ASCII?
    pub(super) const fn stdout_is_ascii(self) -> bool {
        self.out_is_ascii
    }

    /// Is standard error a terminal that shows only ASCII?
    pub(super) const fn stderr_is_ascii(self) -> bool {
        self.error_is_ascii
    }

    fn to_stderr(self, text: &str) {
        let text = self.for_stderr(text);
        // Nothing can be done if this fails.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
pub(super) fn read_variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    value.filter(|value| !value.is_empty())
}

fn is_set(name: &str) -> bool {
    read_variable(name).is_some()
}

/// Is the locale UTF-8? If no variable says so, assume that the terminal is.
fn is_unicode() -> bool {
    let mut locales = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(read_variable);
    locales.next().is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Replaces the characters that pinwise prints by similar ASCII ones.
fn to_ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{0}'..='\u{7f}' => plain.push(character),
            '−' | '–' | '·' | '─' | '━' | '╌' => plain.push('-'),
            '±' => plain.push_str("+/-"),
            '×' => plain.push('x'),
            '…' => plain.push_str("..."),
            '→' => plain.push_str("->"),
            '≤' => plain.push_str("<="),
            '≥' => plain.push_str(">="),
            'µ' | 'μ' => plain.push('u'),
            'δ' => plain.push('d'),
            'α' => plain.push('a'),
            '│' | '┃' => plain.push('|'),
            '└' | '├' | '┌' | '┐' | '┘' | '┬' | '┴' | '┼' | '┤' => {
                plain.push('+')
            }
            '█' | '▉' | '▊' | '▋' | '▌' => plain.push('#'),
            '\u{a0}' | '\u{202f}' => plain.push(' '),
            _ => plain.push('?'),
        }
    }
    plain
}

/// Maximum number of characters of the user's input that a message quotes.
const LONGEST_QUOTE: usize = 200;
/// Maximum number of characters of a line of a message, and how many of these are kept from its
/// end, which contains the hint.
const LONGEST_LINE: usize = 1500;
const KEPT_END: usize = 300;

/// Makes a message safe and short: control characters become visible, and quotes of the user's
/// input, which can be megabytes long, are cut.
fn to_message(sentence: &str) -> String {
    let lines = sentence.lines().map(|line| {
        let line = visible_lines(&shorten_quotes(line));
        let length = line.chars().count();
        if length <= LONGEST_LINE {
            return line;
        }
        let start = line.chars().take(LONGEST_LINE - KEPT_END);
        let end = line.chars().skip(length - KEPT_END);
        start.chain(" … ".chars()).chain(end).collect()
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// Cuts text between quotation marks. An apostrophe within a word is not a quotation mark.
fn shorten_quotes(line: &str) -> String {
    let mut short = String::new();
    let mut rest = line;
    let mut before = ' ';
    while let Some(mark) = rest.chars().next() {
        let (shown, after) = rest.split_at(mark.len_utf8());
        short.push_str(shown);
        rest = after;
        let is_opening = matches!(mark, '\'' | '"' | '`') && !before.is_alphanumeric();
        before = mark;
        let Some(end) = rest.find(mark).filter(|_| is_opening) else {
            continue;
        };
        let quote = &rest[..end];
        match quote.char_indices().nth(LONGEST_QUOTE) {
            Some((cut, _)) => short.extend([&quote[..cut], "…"]),
            None => short.push_str(quote),
        }
        short.push(mark);
        rest = &rest[end + mark.len_utf8()..];
    }
    short
}

/// Removes the number that Rust adds to the message of a system error. Only in the first line:
/// later lines come from commands.
fn strip_error_number(sentence: &str) -> String {
    let (first, rest) = match sentence.split_once('\n') {
        Some((first, rest)) => (first, Some(rest)),
        None => (sentence, None),
    };
    let mut message = first.to_owned();
    if let Some((before, after)) = first.split_once(" (os error ")
        && let Some((_, after)) = after.split_once(')')
    {
        message = format!("{before}{after}");
    }
    rest.map_or(message.clone(), |rest| format!("{message}\n{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_plain_terminals_is_ascii() {
        let text = "ratio −3.1…+2.0 % · ±1 % → Run: a × b, 3 µs │ ü";
        let plain = to_ascii(text);
        assert_eq!(
            plain,
            "ratio -3.1...+2.0 % - +/-1 % -> Run: a x b, 3 us | ?"
        );
        assert!(plain.is_ascii());
    }

    #[test]
    fn a_message_quotes_little_of_a_long_input() {
        let long = "x".repeat(1 << 20);
        for (message, expected) in [
            (
                format!("--seed '{long}': not a number (such as 7)"),
                format!("--seed '{}…': not a number (such as 7)", &long[..200]),
            ),
            (
                format!("a.toml:1: unknown field `{long}`, expected `name`"),
                format!(
                    "a.toml:1: unknown field `{}…`, expected `name`",
                    &long[..200]
                ),
            ),
            (
                format!("the program's name '{long}' isn't known"),
                format!("the program's name '{}…' isn't known", &long[..200]),
            ),
        ] {
            assert_eq!(to_message(&message), expected);
        }
        let unquoted = to_message(&format!("{long}/a.toml: no such file (name another)"));
        assert!(unquoted.chars().count() <= LONGEST_LINE + 3);
        assert!(unquoted.ends_with("(name another)"));
        let short = "the program's name isn't 'known' here\nas \"one\" says";
        assert_eq!(to_message(short), short);
    }
}
