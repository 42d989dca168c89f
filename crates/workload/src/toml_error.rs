//! Mistakes in TOML that people write: each has its line and column, and is one line, whatever text
//! it quotes. The meaning of the keys is left to others.

use std::fmt;

use serde::de::DeserializeOwned;
use toml::Spanned;

/// A place in a file; columns count characters.
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

    /// The place of a byte of a text.
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

/// Reads a text of at most `largest` bytes; `what` is its kind, for messages.
///
/// # Errors
/// If it is larger, or not TOML of this form.
pub fn read<T: DeserializeOwned>(text: &str, largest: usize, what: &str) -> Result<T, TomlError> {
    if text.len() > largest {
        let reason = format!("larger than {} KiB: {what}", largest / 1024);
        return Err(TomlError::new(Position::START, reason));
    }
    toml::from_str(text).map_err(|error| {
        let byte = error.span().map_or(0, |span| span.start);
        TomlError::new(Position::find(text, byte), error.message())
    })
}

/// Errors quote keys and values, which may hold line breaks.
pub(crate) fn join_lines(text: &str) -> String {
    text.trim().replace(['\n', '\r'], " ")
}
