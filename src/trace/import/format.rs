//! Where the fields of a tracepoint are, from the description that the kernel
//! gives in its `format` file and `perf record` copies into `perf.data`.
//!
//! Offsets are nowhere known beforehand: `pid` of `sched_migrate_task` moved
//! from byte 24 to byte 12 when `comm` became a `__data_loc` (Linux 6.18).

use super::bytes::Bytes;
use super::told::Comm;
use crate::trace::{Declared, Left, States};

/// A tracepoint's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    /// Without its system: `sched_switch`.
    pub(super) name: String,
    /// What `perf_event_attr.config` holds.
    pub(super) id: u64,
    fields: Vec<Field>,
    states: States,
}

/// A field and its place in a record's raw data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    name: String,
    offset: usize,
    size: usize,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Here,
    /// A number tells offset (lower half) and length (upper half).
    DataLoc,
    /// The same, counted from the end of that number.
    RelDataLoc,
}

/// More than any tracepoint has.
const MOST_FIELDS: usize = 128;

impl Format {
    /// Reads the text of a `format` file. The error is a clause about it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.map(str::trim).ok_or_else(|| format!("has no {key}"))
        };
        let id = value("ID:")?;
        let fields = text.lines().map(str::trim);
        let fields = fields.filter_map(|line| line.strip_prefix("field:"));
        Ok(Self {
            name: value("name:")?.to_owned(),
            id: id.parse().map_err(|_| format!("has ID '{id}'"))?,
            fields: fields
                .take(MOST_FIELDS)
                .map(Field::parse)
                .collect::<Result<_, _>>()?,
            states: states(value("print fmt:").unwrap_or("")),
        })
    }

    /// A field that must be there. The error is a clause that names it.
    pub(super) fn field(&self, name: &str) -> Result<Field, String> {
        self.optional(name).ok_or_else(|| {
            let own = self.fields.iter().map(|field| field.name.as_str());
            let own: Vec<&str> = own.filter(|name| !name.starts_with("common_")).collect();
            let own: String = own.join(", ").chars().take(200).collect();
            format!("has no field '{name}' (it has {own})")
        })
    }

    pub(super) fn optional(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|field| field.name == name).cloned()
    }

    /// A number that must be there, of a size that numbers have.
    pub(super) fn number(&self, name: &str) -> Result<Field, String> {
        let field = self.field(name)?;
        if !matches!(field.size, 1 | 2 | 4 | 8) || field.place != Place::Here {
            return Err(format!("has field '{name}' of {} bytes", field.size));
        }
        Ok(field)
    }

    /// How a thread left, from `prev_state`.
    pub(super) fn left(&self, state: u64) -> Left {
        self.states.left(state)
    }
}

/// How a thread left, from a state that came without its description.
pub(super) fn left_of(state: u64) -> Left {
    States::USUAL.left(state)
}

/// Those of the kernel that wrote, or the usual ones where it does not tell.
fn states(print: &str) -> States {
    let told = States::parse(print);
    if told.resting == 0 {
        States::USUAL
    } else {
        told
    }
}

impl Field {
    fn parse(line: &str) -> Result<Self, String> {
        let declared = Declared::parse(line);
        let name = declared.name.to_owned();
        let without = |key: &str| format!("has field '{name}' without {key}");
        let place = match declared.kind {
            "__data_loc" => Place::DataLoc,
            "__rel_loc" => Place::RelDataLoc,
            _ => Place::Here,
        };
        let offset = declared.offset.ok_or_else(|| without("offset:"))?;
        let size = declared.size.ok_or_else(|| without("size:"))?;
        Ok(Self {
            name,
            offset: offset.into(),
            size: size.into(),
            place,
        })
    }

    /// The number in a record's raw data.
    pub(super) fn number(&self, raw: &[u8], is_big_endian: bool) -> Option<u64> {
        let rest = raw.get(self.offset..)?;
        Bytes::new(rest, is_big_endian).number(self.size)
    }

    /// The same where a thread or a CPU is meant: 4 bytes with a sign.
    pub(super) fn small(&self, raw: &[u8], is_big_endian: bool) -> Option<i32> {
        let number = self.number(raw, is_big_endian)?;
        i32::try_from(number)
            .or_else(|_| u32::try_from(number).map(u32::cast_signed))
            .or_else(|_| i32::try_from(number.cast_signed()))
            .ok()
    }

    /// The name in a record's raw data.
    pub(super) fn comm(&self, raw: &[u8], is_big_endian: bool) -> Option<Comm> {
        let here = raw.get(self.offset..)?;
        if self.place == Place::Here {
            return here.get(..self.size).map(Comm::new);
        }
        let place = usize::try_from(Bytes::new(here, is_big_endian).u32()?).ok()?;
        let (mut offset, length) = (place & 0xffff, place >> 16);
        if self.place == Place::RelDataLoc {
            offset += self.offset + self.size;
        }
        raw.get(offset..offset + length).map(Comm::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIGRATE: &str = "name: sched_migrate_task\nID: 371\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"comm=%s\", __get_str(comm)\n";

    #[test]
    fn names_lie_where_the_record_says() {
        let format = Format::parse(MIGRATE).unwrap();
        let mut raw = vec![0; 16];
        raw[8..12].copy_from_slice(&((5u32 << 16) | 16).to_le_bytes());
        raw[12..16].copy_from_slice(&(-7i32).to_le_bytes());
        raw.extend(b"a=\x1b\n\0");
        let comm = format.field("comm").unwrap();
        assert_eq!(&*comm.comm(&raw, false).unwrap().text(), "a=\u{1b}\n");
        assert_eq!(format.number("pid").unwrap().small(&raw, false), Some(-7));
        raw.truncate(18);
        assert_eq!(comm.comm(&raw, false), None);
        assert_eq!(comm.comm(&raw[..10], false), None);
    }

    #[test]
    fn missing_and_odd_fields_are_named() {
        let check = |from: &str, to: &str, part: &str| {
            let read = Format::parse(&MIGRATE.replace(from, to));
            let error = read.and_then(|format| format.number("pid")).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check("pid;", "tid;", "no field 'pid' (it has comm, tid)");
        check("size:4;\tsigned:1", "size:3;\tsigned:1", "'pid' of 3 bytes");
        check("offset:12", "offset:-1", "'pid' without offset:");
        check("ID: 371", "ID: x", "ID 'x'");
        check("name:", "mane:", "no name:");
    }

    #[test]
    fn states_are_those_of_the_kernel_that_wrote() {
        let modern = Format::parse(MIGRATE).unwrap();
        let old = Format {
            states: states(
                "__print_flags(REC->prev_state & (2048-1), \"|\", { 1, \"S\"} , { 2, \"D\" }, \
                 { 64, \"x\" }, { 512, \"P\" }) : \"R\"",
            ),
            ..modern.clone()
        };
        for (format, state, left) in [
            (&modern, 0, Left::Preempted),
            (&modern, 0x100, Left::Preempted),
            (&modern, 0x1, Left::Blocked),
            (&modern, 0x80, Left::Blocked),
            (&modern, 0x20, Left::Ended),
            (&old, 0x800, Left::Preempted),
            (&old, 512, Left::Blocked),
            (&old, 64, Left::Ended),
        ] {
            assert_eq!(format.left(state), left, "{state:#x}");
        }
    }
}
