//! Where the fields of a tracepoint stand, as tracefs tells in its file
//! `format`. It refuses a format that lacks a field, has it in
//! another size than a number can have, or does not explain the states that
//! threads are left in.

use crate::trace::{Declared, States};

/// Longest `format` that is looked at.
const LONGEST: usize = 64 * 1024;

/// A tracepoint's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointFormat {
    /// The number by which the kernel names it.
    pub id: u16,
    fields: Vec<(String, Field)>,
    states: States,
}

/// Where a number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::machine::linux) struct Field {
    offset: usize,
    size: usize,
    is_signed: bool,
}

/// A format that cannot be used; its text says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// No number.
    #[error("the format has no ID")]
    NoId,
    /// A field is not there.
    #[error("the format has no field '{0}'")]
    Missing(&'static str),
    /// A field is there, but is no number.
    #[error("the field '{field}' is {size} bytes at {offset}, which is no number")]
    NoNumber {
        /// Which.
        field: &'static str,
        /// Where.
        offset: usize,
        /// How large.
        size: usize,
    },
    /// The letters of a thread's state are not explained.
    #[error("the format does not explain the states of 'prev_state'")]
    NoStates,
}

impl TracepointFormat {
    /// Reads a `format` file.
    ///
    /// # Errors
    /// [`FormatError::NoId`]; whether the fields are there is asked later.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let text = text.get(..LONGEST).unwrap_or(text);
        let mut id = None;
        let mut fields = Vec::new();
        let mut states = States::parse("");
        for line in text.lines() {
            let line = line.trim();
            if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            } else if let Some(declared) = line.strip_prefix("field:") {
                fields.extend(field(declared));
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                states = States::parse(print);
            }
        }
        Ok(Self {
            id: id.ok_or(FormatError::NoId)?,
            fields,
            states,
        })
    }

    /// A field that is a number.
    pub(in crate::machine::linux) fn number(
        &self,
        name: &'static str,
    ) -> Result<Field, FormatError> {
        let found = self.fields.iter().find(|(other, _)| other == name);
        let (_, field) = found.ok_or(FormatError::Missing(name))?;
        if matches!(field.size, 1 | 2 | 4 | 8) {
            return Ok(*field);
        }
        Err(FormatError::NoNumber {
            field: name,
            offset: field.offset,
            size: field.size,
        })
    }

    /// The states that threads are left in.
    pub(in crate::machine::linux) const fn left_states(&self) -> Result<States, FormatError> {
        if self.states.resting == 0 || self.states.gone == 0 {
            return Err(FormatError::NoStates);
        }
        Ok(self.states)
    }
}

impl Field {
    /// The number in what a tracepoint wrote; `None` where that is too short.
    pub(in crate::machine::linux) fn read(self, raw: &[u8]) -> Option<i64> {
        let bytes = raw.get(self.offset..)?.get(..self.size)?;
        let mut wide = [0u8; 8];
        let fill = if cfg!(target_endian = "little") {
            &mut wide[..self.size]
        } else {
            &mut wide[8 - self.size..]
        };
        fill.copy_from_slice(bytes);
        let number = i64::from_ne_bytes(wide);
        let unused = 64 - 8 * self.size;
        Some(if self.is_signed {
            (number << unused) >> unused
        } else {
            number
        })
    }
}

/// A field whose place is told.
fn field(line: &str) -> Option<(String, Field)> {
    let declared = Declared::parse(line);
    let field = Field {
        offset: declared.offset?.into(),
        size: declared.size?.into(),
        // Where it is not told: numbers of threads have one.
        is_signed: declared.is_signed.unwrap_or(true),
    };
    Some((declared.name.to_owned(), field))
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
