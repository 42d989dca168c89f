//! Where the fields of a tracepoint stand, as tracefs tells in its file
//! `format`.
//!
//! Offsets differ between kernels, and between builds of the same one: none is
//! ever taken from memory. It refuses a format that lacks a field, has it in
//! another size than a number can have, or does not explain the states that
//! threads are left in.

/// Longest `format` that is looked at.
const LONGEST: usize = 64 * 1024;

/// A tracepoint's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracepointFormat {
    /// The number by which the kernel names it.
    pub id: u16,
    fields: Vec<(String, Field)>,
    /// Bits of a left thread's state and the letters that explain them.
    states: Vec<(u64, String)>,
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
        let mut states = Vec::new();
        for line in text.lines() {
            let line = line.trim();
            if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            } else if let Some(declared) = line.strip_prefix("field:") {
                fields.extend(parse_field(declared));
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                states = parse_states(print);
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

    /// All bits of states in which a thread does not run on, and of those the
    /// ones of threads that are gone (dead, zombie).
    pub(in crate::machine::linux) fn left_states(&self) -> Result<(u64, u64), FormatError> {
        let all = |keep: fn(&str) -> bool| {
            let kept = self.states.iter().filter(|(_, letter)| keep(letter));
            kept.fold(0, |bits, (bit, _)| bits | bit)
        };
        let resting = all(|letter| letter != "R");
        let gone = all(|letter| matches!(letter, "X" | "x" | "Z"));
        if resting == 0 || gone == 0 {
            return Err(FormatError::NoStates);
        }
        Ok((resting, gone))
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

/// `pid_t prev_pid; offset:24; size:4; signed:1;`, with tabs between.
fn parse_field(declared: &str) -> Option<(String, Field)> {
    let mut parts = declared.split(';').map(str::trim);
    let name = parts.next()?.rsplit([' ', '\t', '*']).next()?;
    let name = name.split('[').next()?;
    let mut field = Field {
        offset: usize::MAX,
        size: 0,
        // Kernels before 2.6.32 do not say; their numbers of threads are.
        is_signed: true,
    };
    for part in parts {
        if let Some((key, value)) = part.split_once(':') {
            match key.trim() {
                "offset" => field.offset = value.trim().parse().ok()?,
                "size" => field.size = value.trim().parse().ok()?,
                "signed" => field.is_signed = value.trim() != "0",
                _ => {}
            }
        }
    }
    Some((name.to_owned(), field))
}

/// The pairs `{ 0x01, "S" }` of a state's print format.
fn parse_states(print: &str) -> Vec<(u64, String)> {
    let pairs = print.split('{').skip(1).filter_map(|piece| {
        let (bit, letter) = piece.split_once('}')?.0.split_once(',')?;
        let letter = letter.trim().strip_prefix('"')?.strip_suffix('"')?;
        Some((parse_bit(bit.trim())?, letter.to_owned()))
    });
    pairs.collect()
}

fn parse_bit(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
