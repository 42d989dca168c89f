//! The two streams of pinwise: data out, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use super::args::{ColorChoice, Format, Global};
use pinwise_report::{Palette, visible_lines};

/// What is known of the streams, and the only way to write to them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terminal {
    format: Format,
    palette: Palette,
    error_palette: Palette,
    is_quiet: bool,
    /// Is it a terminal that shows nothing but ASCII?
    out_is_ascii: bool,
    error_is_ascii: bool,
}

impl Terminal {
    pub(super) fn new(global: &Global) -> Self {
        let no_color = is_set("NO_COLOR") || variable("TERM").is_some_and(|term| term == "dumb");
        let is_forced = variable("CLICOLOR_FORCE").is_some_and(|value| value != "0");
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
            ..Self::plain()
        }
    }

    /// Without knowledge of the options, which could not be read.
    pub(super) fn plain() -> Self {
        let knows_unicode = is_unicode();
        Self {
            format: Format::Text,
            palette: Palette::new(false),
            error_palette: Palette::new(false),
            is_quiet: false,
            out_is_ascii: !knows_unicode && io::stdout().is_terminal(),
            error_is_ascii: !knows_unicode && io::stderr().is_terminal(),
        }
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

    /// Does a person read what is printed?
    pub(super) fn is_read_by_people(self) -> bool {
        io::stdout().is_terminal()
    }

    /// Columns of the terminal that data is printed on; `None` where it is none.
    pub(super) fn columns(self) -> Option<usize> {
        let (columns, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(columns.0.into())
    }

    /// Writes data. A reader that has gone away is no error.
    pub(super) fn print(self, text: &str) -> anyhow::Result<()> {
        match self.out_is_ascii {
            true => self.print_bytes(ascii(text).as_bytes()),
            false => self.print_bytes(text.as_bytes()),
        }
    }

    /// The same of data that is no text.
    pub(super) fn print_bytes(self, bytes: &[u8]) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        match out.write_all(bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => Ok(result?),
        }
    }

    /// Writes a record as JSON, the way it is stored.
    pub(super) fn print_json(self, record: &impl serde::Serialize) -> anyhow::Result<()> {
        self.print(&format!("{}\n", serde_json::to_string(record)?))
    }

    /// Writes a record, as JSON or as the text that is made of it.
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

    /// A note on standard error, unless quiet.
    pub(super) fn note(self, sentence: &str) {
        if !self.is_quiet {
            self.to_stderr(&format!("{}\n", visible_lines(sentence)));
        }
    }

    /// A warning on standard error, quiet or not.
    pub(super) fn warn(self, sentence: &str) {
        let mark = self.error_palette.warn("warning:");
        self.to_stderr(&format!(
            "{mark} {}\n",
            visible_lines(&without_number(sentence))
        ));
    }

    /// The one line of an error.
    pub(super) fn error(self, sentence: &str) {
        let mark = self.error_palette.bad("error:");
        self.to_stderr(&format!(
            "{mark} {}\n",
            visible_lines(&without_number(sentence))
        ));
    }

    /// Help that nobody asked for, in place of an error.
    pub(super) fn help(self, text: &str) {
        self.to_stderr(text);
    }

    /// Text as standard error can show it.
    pub(super) fn on_stderr(self, text: &str) -> String {
        match self.error_is_ascii {
            true => ascii(text),
            false => text.to_owned(),
        }
    }

    /// Is standard output a terminal that shows nothing but ASCII?
    pub(super) const fn stdout_is_ascii(self) -> bool {
        self.out_is_ascii
    }

    /// Is standard error a terminal that shows nothing but ASCII?
    pub(super) const fn stderr_is_ascii(self) -> bool {
        self.error_is_ascii
    }

    fn to_stderr(self, text: &str) {
        let text = self.on_stderr(text);
        // Nothing can be done if this fails.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
pub(super) fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    value.filter(|value| !value.is_empty())
}

fn is_set(name: &str) -> bool {
    variable(name).is_some()
}

/// Does the locale say UTF-8? Where it says nothing, terminals of today are.
fn is_unicode() -> bool {
    let mut said = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable);
    said.next().is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// The nearest ASCII of what pinwise prints.
fn ascii(text: &str) -> String {
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

/// The library's words for an error of the system end with its number, which
/// helps nobody. Later lines are a command's own and stay as they are.
fn without_number(sentence: &str) -> String {
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
        let plain = ascii(text);
        assert_eq!(
            plain,
            "ratio -3.1...+2.0 % - +/-1 % -> Run: a x b, 3 us | ?"
        );
        assert!(plain.is_ascii());
    }
}
