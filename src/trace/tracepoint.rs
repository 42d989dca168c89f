//! What the kernel's descriptions of tracepoints (tracefs' files `format`, which
//! `perf record` copies into `perf.data`) say, line by line.
//!
//! Offsets differ between kernels, and between builds of the same one: none is
//! ever taken from memory. What to do about a line that is missing or odd is
//! left to who reads.

use super::Left;

/// A field as it is declared: `TYPE NAME[N]; offset:O; size:S; signed:B;`. What
/// is not told, or is no number, is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared<'a> {
    /// The first word of its type.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Where it stands in the raw data, bytes.
    pub offset: Option<u16>,
    /// Its size, bytes.
    pub size: Option<u16>,
    /// Has it a sign? Kernels before 2.6.32 do not say.
    pub is_signed: Option<bool>,
}

impl<'a> Declared<'a> {
    /// Reads what follows `field:` in a line.
    #[must_use]
    pub fn parse(line: &'a str) -> Self {
        let mut parts = line.split(';').map(str::trim);
        let declared = parts.next().unwrap_or("");
        let name = declared.rsplit([' ', '\t', '*']).next().unwrap_or("");
        let mut field = Self {
            kind: declared.split(' ').next().unwrap_or(""),
            name: name.split('[').next().unwrap_or(""),
            offset: None,
            size: None,
            is_signed: None,
        };
        for (key, value) in parts.filter_map(|part| part.split_once(':')) {
            let value = value.trim();
            match key.trim() {
                "offset" => field.offset = value.parse().ok(),
                "size" => field.size = value.parse().ok(),
                "signed" => field.is_signed = Some(value != "0"),
                _ => {}
            }
        }
        field
    }
}

/// Bits of a left thread's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct States {
    /// Those in which a thread does not run on.
    pub resting: u64,
    /// Of those the ones that nobody returns from (dead, zombie).
    pub gone: u64,
}

impl States {
    /// Since Linux 4.14, for a description that does not tell them: `S`, `D`,
    /// `T`, `t`, `X`, `Z`, `P`, `I` from the lowest bit on.
    pub const USUAL: Self = Self {
        resting: 0xff,
        gone: 0x30,
    };

    /// From the table in a state's print format: pairs `{ 0x01, "S" }`.
    #[must_use]
    pub fn parse(print: &str) -> Self {
        let mut states = Self {
            resting: 0,
            gone: 0,
        };
        for piece in print.split('{').skip(1) {
            let Some((bit, letter)) = pair(piece) else {
                continue;
            };
            if letter != "R" {
                states.resting |= bit;
            }
            if matches!(letter, "X" | "x" | "Z") {
                states.gone |= bit;
            }
        }
        states
    }

    /// How a thread left. A state without a bit that rests is "running", or the
    /// bit above all others by which the kernel marks who was pushed aside.
    #[must_use]
    pub const fn left(self, state: u64) -> Left {
        if state & self.gone != 0 {
            Left::Ended
        } else if state & self.resting != 0 {
            Left::Blocked
        } else {
            Left::Preempted
        }
    }
}

fn pair(piece: &str) -> Option<(u64, &str)> {
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
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, name: &str, offset: Option<u16>, size: Option<u16>) {
        let field = Declared::parse(line);
        assert_eq!((field.name, field.offset, field.size), (name, offset, size));
    }

    #[test]
    fn fields_are_read_as_far_as_they_go() {
        let long = "char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;";
        check(long, "prev_comm", Some(8), Some(16));
        check(
            "const char *name; size:8; offset:2;",
            "name",
            Some(2),
            Some(8),
        );
        check("int x; offset:-1; size:4;", "x", None, Some(4));
        check("", "", None, None);
        let moved = Declared::parse("__data_loc char[] comm; offset:8; size:4; signed:0;");
        assert_eq!((moved.kind, moved.is_signed), ("__data_loc", Some(false)));
    }

    #[test]
    fn states_without_a_pair_are_none() {
        let none = States {
            resting: 0,
            gone: 0,
        };
        assert_eq!(
            States::parse("\"%s\", { x, \"S\" }, { 1, S }, { 2, \"D\""),
            none
        );
        let some = States::parse("{ 0x1, \"S\" }, { 16, \"X\" }, { 0x40, \"R\" }");
        assert_eq!((some.resting, some.gone), (0x11, 0x10));
    }
}
