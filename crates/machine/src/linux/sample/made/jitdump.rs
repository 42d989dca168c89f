//! `jit-PID.dump`: code that a runtime made, with its names and its bytes, as in the kernel's
//! tools/perf/Documentation/jitdump-specification.txt.
//!
//! A runtime reveals its file by mapping it as code. Source lines are not used: V8 gives the
//! addresses of lines behind a header that does not exist.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use super::{Covered, FromStart, LARGEST_DUMP, Name};
use pinwise_profile::Symbol;

/// `JiTD`, in the byte order of the machine.
const MAGIC: u32 = 0x4a69_5444;
const LOAD: u32 = 0;
const MOVE: u32 = 1;
/// Longer names are cut, bytes.
const LONGEST_NAME: u64 = 4096;
/// Limits the pieces of code that can move.
const MAX_PIECES: usize = 1_000_000;
/// Number, length and time before each record, bytes.
const HEAD: u64 = 16;

/// The last code at an address has its name: code is replaced and moved.
pub(super) fn find(file: &File, addresses: &[u64]) -> Vec<Option<Symbol>> {
    let mut covered = Covered::new(addresses);
    let mut reader = Reader {
        bytes: BufReader::new(FromStart(file, 0)),
        at: 0,
    };
    // Unreadable data ends the list; everything before it holds.
    let _ = reader.go_through(&mut covered);
    covered.symbols(file)
}

struct Reader<'a> {
    bytes: BufReader<FromStart<'a>>,
    at: u64,
}

impl Reader<'_> {
    /// `None` at the end of the list.
    fn go_through(&mut self, covered: &mut Covered<'_>) -> Option<()> {
        let (magic, _version) = (self.short()?, self.short()?);
        if magic != MAGIC {
            return None;
        }
        let length = self.short()?;
        self.skip_to(u64::from(length))?;
        let mut pieces: BTreeMap<u64, Name> = BTreeMap::new();
        while self.at < LARGEST_DUMP && covered.has_room() {
            let start = self.at;
            let (id, length) = (self.short()?, self.short()?);
            let end = start.checked_add(u64::from(length).max(HEAD))?;
            // The time, the process, the thread, the address in a file.
            self.skip_to(start + HEAD)?;
            match id {
                LOAD => {
                    self.skip_to(start + HEAD + 16)?;
                    let (first, size, index) = (self.long()?, self.long()?, self.long()?);
                    let name = self.name(first)?;
                    covered.cover(first, first.saturating_add(size), name);
                    if pieces.len() < MAX_PIECES {
                        pieces.insert(index, name);
                    }
                }
                MOVE => {
                    self.skip_to(start + HEAD + 24)?;
                    let (first, size, index) = (self.long()?, self.long()?, self.long()?);
                    if let Some(name) = pieces.get_mut(&index) {
                        name.start = first;
                        covered.cover(first, first.saturating_add(size), *name);
                    }
                }
                _ => {}
            }
            self.skip_to(end)?;
        }
        Some(())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.bytes.read_exact(&mut bytes).ok()?;
        self.at += N as u64;
        Some(bytes)
    }

    fn short(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    /// The name of code that begins at `start`, up to its zero byte.
    fn name(&mut self, start: u64) -> Option<Name> {
        let at = self.at;
        let mut name = Vec::new();
        let mut bytes = self.bytes.by_ref().take(LONGEST_NAME);
        let read = bytes.read_until(0, &mut name).ok()?;
        self.at += read as u64;
        Some(Name {
            start,
            at,
            length: read - usize::from(name.last() == Some(&0)),
        })
    }

    /// Never backwards: a record whose length is less than what was read of it ends the list.
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

    fn header() -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [MAGIC, 1, 40, 62, 0, 1] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend([0; 16]);
        bytes
    }

    fn record(id: u32, longs: &[u64], rest: &[u8]) -> Vec<u8> {
        let length = 16 + 8 + 8 * longs.len() + rest.len();
        let mut bytes = Vec::new();
        for word in [id, u32::try_from(length).unwrap(), 0, 0, 1, 1] {
            bytes.extend(u32::to_ne_bytes(word));
        }
        bytes.extend(longs.iter().flat_map(|long| long.to_ne_bytes()));
        bytes.extend(rest);
        bytes
    }

    fn load(start: u64, size: u64, index: u64, name: &str) -> Vec<u8> {
        let rest = [name.as_bytes(), &[0], &[0xcc; 100]].concat();
        record(LOAD, &[start, start, size, index], &rest)
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: &[(u64, Option<(&str, u64)>)]) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let addresses: Vec<u64> = expected.iter().map(|(address, _)| *address).collect();
        let found = find(&file, &addresses);
        for (symbol, (address, expected)) in found.iter().zip(expected) {
            let symbol = symbol.as_ref().map(|s| (s.name.as_str(), s.offset));
            assert_eq!(symbol, *expected, "{address:#x}");
        }
    }

    #[test]
    fn code_has_the_name_that_it_was_loaded_with() {
        let debug = record(2, &[0x1000, 1, 7], b"file.js\0");
        let bytes = [
            header(),
            debug,
            load(0x1000, 0x10, 0, "JS:*sum file.js:1:1"),
            load(0x2000, 8, 1, "other"),
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
    fn code_is_replaced_and_moved() {
        let moved = record(MOVE, &[0x1000, 0x1000, 0x3000, 0x10, 0], &[]);
        let bytes = [
            header(),
            load(0x1000, 0x10, 0, "first"),
            moved,
            load(0x1000, 8, 1, "second"),
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
            header(),
            load(0x1000, 8, 0, "first"),
            load(0x2000, 8, 1, "cut"),
        ]
        .concat();
        let first = header().len() + load(0x1000, 8, 0, "first").len();
        check(&[], &[(0x1000, None)]);
        check(
            b"no dump at all, but long enough to be one",
            &[(0x1000, None)],
        );
        for end in 0..first {
            let is_named = end > header().len() + 56 + 5;
            let name = if is_named { Some(("first", 0)) } else { None };
            if !(header().len() + 56..=header().len() + 61).contains(&end) {
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
        fn any_bytes_are_gone_through(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            kinds in proptest::collection::vec((0..5u32, 0..64u32), 0..8),
        ) {
            let mut text = header();
            for ((id, length), rest) in kinds.iter().zip(bytes.chunks(50)) {
                text.extend(id.to_ne_bytes());
                text.extend((length * 4).to_ne_bytes());
                text.extend(rest);
            }
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&text).unwrap();
            prop_assert_eq!(find(&file, &[0, 0x1000, u64::MAX]).len(), 3);
        }
    }
}
