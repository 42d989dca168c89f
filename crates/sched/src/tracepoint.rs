//! Parses the kernel's descriptions of tracepoints (tracefs' files `format`, which `perf record`
//! copies into `perf.data`).
//!
//! Offsets of fields differ between kernels, and between builds of the same one, so they are always
//! read. For example, `pid` of `sched_migrate_task` moved from byte 24 to byte 12 when `comm`
//! became a `__data_loc` (Linux 6.18).

use super::LeaveReason;
use super::bytes::{ByteOrder, Bytes};

/// Longest accepted description.
const MAX_DESCRIPTION_BYTES: usize = 64 * 1024;
/// Limits the fields; no tracepoint has more.
const MAX_FIELDS: usize = 128;

/// A tracepoint's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Its name without its system: `sched_switch`.
    pub name: String,
    /// The kernel's id, `perf_event_attr.config`.
    pub id: u64,
    fields: Vec<DeclaredField>,
    /// The meaning of thread states, if described.
    pub states: Option<States>,
}

/// Why a description cannot be used; the text is a clause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// No name.
    #[error("has no name")]
    NoName,
    /// No number.
    #[error("has no numeric ID")]
    NoId,
    /// A field is missing.
    #[error("has no field '{name}' (it has {own})")]
    Missing {
        /// The name of the field.
        name: String,
        /// The existing fields.
        own: String,
    },
    /// The field exists, but its offset is missing.
    #[error("has field '{0}' without offset: or size:")]
    NoPosition(String),
    /// The field exists, but is not a number.
    #[error("has field '{name}' of {size} bytes, which is not a number")]
    NoNumber {
        /// The name of the field.
        name: String,
        /// Its size, bytes.
        size: usize,
    },
    /// The description does not explain the states of threads.
    #[error("does not explain the states of 'prev_state'")]
    NoStates,
}

/// A field and its place in a record's raw data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
    is_signed: bool,
    location: Location,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Location {
    /// The field contains the value.
    Inline,
    /// The field is a number: the lower half is the value's offset, the upper half its length, bytes.
    DataLoc,
    /// The same, but the offset counts from the end of the field.
    RelDataLoc,
}

/// A declared field: `TYPE NAME[N]; offset:O; size:S; signed:B;`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DeclaredField {
    name: String,
    /// `None` if offset or size is no number.
    field: Option<Field>,
}

impl Format {
    /// Parses the text of a `format` file.
    ///
    /// # Errors
    /// [`FormatError::NoName`] and [`FormatError::NoId`]; fields are checked when they are
    /// requested.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let text = text.get(..MAX_DESCRIPTION_BYTES).unwrap_or(text);
        let lines = || text.lines().map(str::trim);
        let value = |key: &str| {
            lines()
                .find_map(|line| line.strip_prefix(key))
                .map(str::trim)
        };
        let fields = lines().filter_map(|line| line.strip_prefix("field:"));
        let id = value("ID:").and_then(|id| id.parse().ok());
        Ok(Self {
            name: value("name:").ok_or(FormatError::NoName)?.to_owned(),
            id: id.ok_or(FormatError::NoId)?,
            fields: fields.take(MAX_FIELDS).map(DeclaredField::parse).collect(),
            states: value("print fmt:").and_then(States::parse),
        })
    }

    /// Finds a required field.
    ///
    /// # Errors
    /// [`FormatError`], which names the field.
    pub fn field(&self, name: &str) -> Result<Field, FormatError> {
        let Some(found) = self.fields.iter().find(|field| field.name == name) else {
            let names = self.fields.iter().map(|field| field.name.as_str());
            let own: Vec<&str> = names.filter(|name| !name.starts_with("common_")).collect();
            return Err(FormatError::Missing {
                name: name.to_owned(),
                own: own.join(", ").chars().take(200).collect(),
            });
        };
        let field = found.field;
        field.ok_or_else(|| FormatError::NoPosition(name.to_owned()))
    }

    /// Finds a required field that is a number.
    ///
    /// # Errors
    /// [`FormatError`], which names the field.
    pub fn number(&self, name: &str) -> Result<Field, FormatError> {
        let field = self.field(name)?;
        if matches!(field.size, 1 | 2 | 4 | 8) && field.location == Location::Inline {
            return Ok(field);
        }
        Err(FormatError::NoNumber {
            name: name.to_owned(),
            size: field.size,
        })
    }
}

impl DeclaredField {
    /// Parses the text after `field:` in a line.
    fn parse(line: &str) -> Self {
        let mut parts = line.split(';').map(str::trim);
        let declared = parts.next().unwrap_or("");
        let name = declared.rsplit([' ', '\t', '*']).next().unwrap_or("");
        let location = match declared.split(' ').next() {
            Some("__data_loc") => Location::DataLoc,
            Some("__rel_loc") => Location::RelDataLoc,
            _ => Location::Inline,
        };
        let (mut offset, mut size) = (None, None);
        // Kernels before 2.6.32 do not say whether a field is signed; thread ids are.
        let mut is_signed = true;
        for (key, value) in parts.filter_map(|part| part.split_once(':')) {
            let value = value.trim();
            match key.trim() {
                "offset" => offset = value.parse::<u16>().ok(),
                "size" => size = value.parse::<u16>().ok(),
                "signed" => is_signed = value != "0",
                _ => {}
            }
        }
        let field = offset.zip(size).map(|(offset, size)| Field {
            offset: offset.into(),
            size: size.into(),
            is_signed,
            location,
        });
        Self {
            name: name.split('[').next().unwrap_or("").to_owned(),
            field,
        }
    }
}

impl Field {
    /// The number in a record's raw data; `None` if that is too short.
    #[inline]
    #[must_use]
    pub fn number(self, raw: &[u8], order: impl ByteOrder) -> Option<i64> {
        let number = Bytes::new(raw.get(self.offset..)?, order).number(self.size)?;
        let number = number.cast_signed();
        let unused = 64 - 8 * self.size;
        Some(match self.is_signed {
            true => (number << unused) >> unused,
            false => number,
        })
    }

    /// The same for a thread or a CPU: 4 bytes with a sign.
    #[inline]
    #[must_use]
    pub fn small(self, raw: &[u8], order: impl ByteOrder) -> Option<i32> {
        let number = self.number(raw, order)?;
        let unsigned = || u32::try_from(number).map(u32::cast_signed);
        i32::try_from(number).or_else(|_| unsigned()).ok()
    }

    /// The bytes of a text in a record's raw data.
    #[must_use]
    pub fn text(self, raw: &[u8], order: impl ByteOrder) -> Option<&[u8]> {
        let here = raw.get(self.offset..)?;
        if self.location == Location::Inline {
            return here.get(..self.size);
        }
        let position = usize::try_from(Bytes::new(here, order).u32()?).ok()?;
        let (mut offset, length) = (position & 0xffff, position >> 16);
        if self.location == Location::RelDataLoc {
            offset += self.offset + self.size;
        }
        raw.get(offset..offset + length)
    }
}

/// Bits of the state in which a thread leaves its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct States {
    /// Bits of a thread that is not runnable.
    pub not_runnable: u64,
    /// Of those, the bits of a thread that has ended (dead, zombie).
    pub ended: u64,
}

impl States {
    /// The states since Linux 4.14, for a description that does not name them: `S`, `D`, `T`, `t`,
    /// `X`, `Z`, `P`, `I` from the lowest bit on.
    pub const USUAL: Self = Self {
        not_runnable: 0xff,
        ended: 0x30,
    };

    /// Parses the table of states in a print format: pairs `{ 0x01, "S" }`; `None` if there is
    /// none.
    fn parse(print: &str) -> Option<Self> {
        let mut states = Self {
            not_runnable: 0,
            ended: 0,
        };
        for piece in print.split('{').skip(1) {
            let Some((bit, letter)) = parse_pair(piece) else {
                continue;
            };
            if letter != "R" {
                states.not_runnable |= bit;
            }
            if matches!(letter, "X" | "x" | "Z") {
                states.ended |= bit;
            }
        }
        (states.not_runnable != 0 && states.ended != 0).then_some(states)
    }

    /// Why a thread left its CPU. Without one of these bits it was preempted: the state is
    /// "running", or the top bit, by which the kernel marks a preempted thread.
    #[must_use]
    pub const fn find_leave_reason(self, state: u64) -> LeaveReason {
        if state & self.ended != 0 {
            LeaveReason::Ended
        } else if state & self.not_runnable != 0 {
            LeaveReason::Blocked
        } else {
            LeaveReason::Preempted
        }
    }
}

fn parse_pair(piece: &str) -> Option<(u64, &str)> {
    let (bit, letter) = piece.split_once('}')?.0.split_once(',')?;
    let letter = letter.trim().strip_prefix('"')?.strip_suffix('"')?;
    let bit = bit.trim();
    let bit = match bit.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => bit.parse().ok()?,
    };
    Some((bit, letter))
}

#[cfg(test)]
mod tests;
