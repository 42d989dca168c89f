//! Mistakes in TOML files that people write. Each has its line and column, and is printed on one
//! line, whatever text it quotes.

use std::fmt;

use serde::de::DeserializeOwned;
use toml::Spanned;

/// A position in a file; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
}

impl Position {
    /// The beginning of a file.
    pub const START: Self = Self { line: 1, column: 1 };

    /// The position of a byte in a text.
    #[must_use]
    pub fn find(text: &str, byte: usize) -> Self {
        let mut end = byte.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.line, self.column)
    }
}

/// A mistake or an oddity in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {reason}")]
pub struct TomlError {
    /// Position in the file.
    pub position: Position,
    /// The reason, in one line, with the key.
    pub reason: String,
}

impl TomlError {
    /// A mistake at a place.
    #[must_use]
    pub fn new(position: Position, reason: impl AsRef<str>) -> Self {
        Self {
            position,
            reason: join_lines(reason.as_ref()),
        }
    }

    /// A mistake in a value of this text.
    #[must_use]
    pub fn mistake_in_value<T>(text: &str, value: &Spanned<T>, reason: impl AsRef<str>) -> Self {
        Self::new(Position::find(text, value.span().start), reason)
    }
}

/// Parses a text of at most `max_bytes`; a longer one is refused with the sentence `complaint`.
///
/// # Errors
/// If it is larger, or not TOML of this form.
pub fn parse<T: DeserializeOwned>(
    text: &str,
    max_bytes: usize,
    complaint: &str,
) -> Result<T, TomlError> {
    if text.len() > max_bytes {
        let reason = format!("larger than {} KiB: {complaint}", max_bytes / 1024);
        return Err(TomlError::new(Position::START, reason));
    }
    toml::from_str(text).map_err(|error| {
        let byte = error.span().map_or(0, |span| span.start);
        TomlError::new(Position::find(text, byte), error.message())
    })
}

/// Joins the lines of an error: it quotes keys and values, which may hold line breaks.
pub(crate) fn join_lines(text: &str) -> String {
    text.trim().replace(['\n', '\r'], " ")
}
