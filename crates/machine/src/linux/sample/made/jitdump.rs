//! `jit-PID.dump`: code that a runtime made, with its names and its bytes, as in the kernel's
//! tools/perf/Documentation/jitdump-specification.txt.
//!
//! A runtime reveals the file's path by mapping it as code. Source lines are not used: V8's line
//! addresses include a header that its code does not have.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use super::{AddressNames, FileReader, MAX_DUMP_BYTES, NamePosition};
use pinwise_profile::Symbol;

/// `JiTD`, in the byte order of the machine.
const MAGIC: u32 = 0x4a69_5444;
/// Kinds of records.
const LOAD: u32 = 0;
const MOVE: u32 = 1;
/// Longer names are cut, bytes.
const MAX_NAME_BYTES: u64 = 4096;
/// Limits the functions that can move.
const MAX_FUNCTIONS: usize = 1_000_000;
/// Kind, length and time at the start of each record, bytes.
const RECORD_HEADER_BYTES: u64 = 16;

/// Finds the name of the function that was last loaded at or moved to each address.
pub(super) fn find_symbols(file: &File, addresses: &[u64]) -> Vec<Option<Symbol>> {
    let mut names = AddressNames::new(addresses);
    let mut reader = Reader {
        bytes: BufReader::new(FileReader::new(file)),
        at: 0,
    };
    // After unreadable data nothing is read; the names before it are used.
    let _ = reader.read_names(&mut names);
    names.read_symbols(file)
}

struct Reader<'a> {
    bytes: BufReader<FileReader<'a>>,
    /// Offset in the file, bytes.
    at: u64,
}

impl Reader<'_> {
    /// Reads all records; `None` where the file ends or is malformed.
    fn read_names(&mut self, names: &mut AddressNames<'_>) -> Option<()> {
        let (magic, _version) = (self.read_u32()?, self.read_u32()?);
        if magic != MAGIC {
            return None;
        }
        let length = self.read_u32()?;
        self.skip_to(u64::from(length))?;
        let mut functions: BTreeMap<u64, NamePosition> = BTreeMap::new();
        while self.at < MAX_DUMP_BYTES && names.may_match_more() {
            let start = self.at;
            let (kind, length) = (self.read_u32()?, self.read_u32()?);
            let end = start.checked_add(u64::from(length).max(RECORD_HEADER_BYTES))?;
            let body = start + RECORD_HEADER_BYTES;
            match kind {
                LOAD => {
                    // Skips the process, the thread and the virtual address.
                    self.skip_to(body + 16)?;
                    let (first, size, index) =
                        (self.read_u64()?, self.read_u64()?, self.read_u64()?);
                    let name = self.read_name(first)?;
                    names.set_name(first, first.saturating_add(size), name);
                    if functions.len() < MAX_FUNCTIONS {
                        functions.insert(index, name);
                    }
                }
                MOVE => {
                    // Skips these and the old address.
                    self.skip_to(body + 24)?;
                    let (first, size, index) =
                        (self.read_u64()?, self.read_u64()?, self.read_u64()?);
                    if let Some(name) = functions.get_mut(&index) {
                        name.start = first;
                        names.set_name(first, first.saturating_add(size), *name);
                    }
                }
                _ => {}
            }
            self.skip_to(end)?;
        }
        Some(())
    }

    fn read_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.bytes.read_exact(&mut bytes).ok()?;
        self.at += N as u64;
        Some(bytes)
    }

    fn read_u32(&mut self) -> Option<u32> {
        self.read_array().map(u32::from_ne_bytes)
    }

    fn read_u64(&mut self) -> Option<u64> {
        self.read_array().map(u64::from_ne_bytes)
    }

    /// Reads the name of the code that begins at `start`, up to a zero byte.
    fn read_name(&mut self, start: u64) -> Option<NamePosition> {
        let offset = self.at;
        let mut name = Vec::new();
        let mut bytes = self.bytes.by_ref().take(MAX_NAME_BYTES);
        let read = bytes.read_until(0, &mut name).ok()?;
        self.at += read as u64;
        Some(NamePosition {
            start,
            offset,
            length: read - usize::from(name.last() == Some(&0)),
        })
    }

    /// `None` if `to` is behind: a record then claims to be shorter than what was read of it.
    fn skip_to(&mut self, to: u64) -> Option<()> {
        let by = i64::try_from(to.checked_sub(self.at)?).ok()?;
        self.bytes.seek_relative(by).ok()?;
        self.at = to;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use proptest::prelude::*;

    fn encode_header() -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [MAGIC, 1, 40, 62, 0, 1] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend([0; 16]);
        bytes
    }

    fn encode_record(id: u32, longs: &[u64], rest: &[u8]) -> Vec<u8> {
        let length = 16 + 8 + 8 * longs.len() + rest.len();
        let mut bytes = Vec::new();
        for word in [id, u32::try_from(length).unwrap(), 0, 0, 1, 1] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend(longs.iter().flat_map(|long| long.to_ne_bytes()));
        bytes.extend(rest);
        bytes
    }

    fn encode_load(start: u64, size: u64, index: u64, name: &str) -> Vec<u8> {
        let rest = [name.as_bytes(), &[0], &[0xcc; 100]].concat();
        encode_record(LOAD, &[start, start, size, index], &rest)
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &[(u64, Option<(&str, u64)>)]) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let addresses: Vec<u64> = expected.iter().map(|(address, _)| *address).collect();
        let found = find_symbols(&file, &addresses);
        for (symbol, (address, expected)) in found.iter().zip(expected) {
            let symbol = symbol.as_ref().map(|s| (s.name.as_str(), s.offset));
            assert_eq!(symbol, *expected, "{address:#x}");
        }
    }

    #[test]
    fn code_has_the_name_that_it_was_loaded_with() {
        let debug = encode_record(2, &[0x1000, 1, 7], b"file.js\0");
        let bytes = [
            encode_header(),
            debug,
            encode_load(0x1000, 0x10, 0, "JS:*sum file.js:1:1"),
            encode_load(0x2000, 8, 1, "other"),
        ];
        check(
            &bytes.concat(),
            &[
                (0x1004, Some(("JS:*sum file.js:1:1", 4))),
                (0xfff, None),
                (0x1010, None),
                (0x2007, Some(("other", 7))),
            ],
        );
    }

    #[test]
    fn the_last_loaded_or_moved_function_names_an_address() {
        let moved = encode_record(MOVE, &[0x1000, 0x1000, 0x3000, 0x10, 0], &[]);
        let bytes = [
            encode_header(),
            encode_load(0x1000, 0x10, 0, "first"),
            moved,
            encode_load(0x1000, 8, 1, "second"),
        ];
        check(
            &bytes.concat(),
            &[
                (0x3008, Some(("first", 8))),
                (0x1004, Some(("second", 4))),
                (0x1009, Some(("first", 9))),
            ],
        );
    }

    #[test]
    fn a_file_may_end_or_be_damaged_anywhere() {
        let bytes = [
            encode_header(),
            encode_load(0x1000, 8, 0, "first"),
            encode_load(0x2000, 8, 1, "cut"),
        ]
        .concat();
        let first = encode_header().len() + encode_load(0x1000, 8, 0, "first").len();
        check(&[], &[(0x1000, None)]);
        check(
            b"no dump at all, but long enough to be one",
            &[(0x1000, None)],
        );
        for end in 0..first {
            let is_named = end > encode_header().len() + 56 + 5;
            let name = if is_named { Some(("first", 0)) } else { None };
            if !(encode_header().len() + 56..=encode_header().len() + 61).contains(&end) {
                check(&bytes[..end], &[(0x1000, name), (0x2000, None)]);
            }
        }
        for (at, value) in (first..first + 8).flat_map(|at| [(at, 0), (at, 0xff)]) {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            check(&damaged, &[(0x1000, Some(("first", 0)))]);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            kinds in proptest::collection::vec((0..5u32, 0..64u32), 0..8),
        ) {
            let mut text = encode_header();
            for ((id, length), rest) in kinds.iter().zip(bytes.chunks(50)) {
                text.extend(id.to_ne_bytes());
                text.extend((length * 4).to_ne_bytes());
                text.extend(rest);
            }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&text).unwrap();
            prop_assert_eq!(find_symbols(&file, &[0, 0x1000, u64::MAX]).len(), 3);
        }
    }
}
