//! The two streams of pinwise: data out, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use super::args::{ColorChoice, Format, Global};
use pinwise_report::{Palette, visible};

/// What is known of the streams, and the only way to write to them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terminal {
    format: Format,
    palette: Palette,
    error_palette: Palette,
    is_quiet: bool,
}

impl Terminal {
    pub(super) fn new(global: &Global) -> Self {
        #[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_colored = |is_terminal: bool| match global.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !no_color,
        };
        Self {
            format: global.format,
            palette: Palette::new(is_colored(io::stdout().is_terminal())),
            error_palette: Palette::new(is_colored(io::stderr().is_terminal())),
            is_quiet: global.quiet,
        }
    }

    /// Without knowledge of the options, which could not be read.
    pub(super) const fn plain() -> Self {
        Self {
            format: Format::Text,
            palette: Palette::new(false),
            error_palette: Palette::new(false),
            is_quiet: false,
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

    /// Writes data. A reader that has gone away is no error.
    pub(super) fn print(self, text: &str) -> anyhow::Result<()> {
        self.print_bytes(text.as_bytes())
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

    fn to_stderr(self, text: &str) {
        // Nobody is left to be reported if this fails.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
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

fn visible_lines(text: &str) -> String {
    text.lines().map(visible).collect::<Vec<_>>().join("\n")
}
