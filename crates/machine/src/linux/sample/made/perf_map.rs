//! `/tmp/perf-PID.map`: a line for each piece of code.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use super::{AddressNames, FileReader, MAX_MAP_BYTES, NamePosition};
use pinwise_profile::Symbol;

/// Longest line that is read, bytes.
const MAX_LINE_BYTES: u64 = 4096;

/// Finds the name of each address: that of the last line that covers it, since code is replaced.
pub(super) fn find_symbols(file: &File, addresses: &[u64]) -> Vec<Option<Symbol>> {
    let mut names = AddressNames::new(addresses);
    for_each_line(file, |offset, line| {
        if let Some((start, end, name_offset)) = parse_line(line) {
            let name = NamePosition {
                start,
                offset: offset + name_offset as u64,
                length: line.len() - name_offset,
            };
            names.set_name(start, end, name);
        }
        names.may_match_more()
    });
    names.read_symbols(file)
}

/// Calls `visit` with the offset and text of each line until it returns false.
fn for_each_line(file: &File, mut visit: impl FnMut(u64, &[u8]) -> bool) {
    let mut reader = BufReader::new(FileReader::new(file)).take(MAX_MAP_BYTES);
    let mut offset = 0;
    let mut line = Vec::new();
    let mut is_rest = false;
    loop {
        line.clear();
        let read = reader
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        let Ok(read @ 1..) = read else { return };
        let is_whole = line.ends_with(b"\n");
        let is_cut = is_rest || !is_whole;
        if !is_cut && !visit(offset, line.trim_ascii_end()) {
            return;
        }
        is_rest = !is_whole;
        offset += read as u64;
    }
}

/// Parses `START SIZE name`, both hexadecimal, to the start and the end of the code and the offset
/// of the name in the line.
fn parse_line(line: &[u8]) -> Option<(u64, u64, usize)> {
    let mut fields = line.splitn(3, |&byte| byte == b' ');
    let (start, size, name) = (fields.next()?, fields.next()?, fields.next()?);
    let number = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        u64::from_str_radix(digits, 16).ok()
    };
    let start = number(start)?;
    let end = start.checked_add(number(size)?)?;
    Some((start, end, line.len() - name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[track_caller]
    fn check(text: &[u8], expected: &[(u64, Option<(&str, u64)>)]) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let addresses: Vec<u64> = expected.iter().map(|(address, _)| *address).collect();
        let found = find_symbols(&file, &addresses);
        for (symbol, (address, expected)) in found.iter().zip(expected) {
            let symbol = symbol.as_ref().map(|s| (s.name.as_str(), s.offset));
            assert_eq!(symbol, *expected, "{address:#x}");
        }
    }

    #[test]
    fn lines_name_their_address_ranges() {
        let text = b"1000 10 first\n0x2000 20 LFoo;::bar(I)V with spaces\r\n3000 8 last\n";
        check(
            text,
            &[
                (0x2004, Some(("LFoo;::bar(I)V with spaces", 4))),
                (0xfff, None),
                (0x1000, Some(("first", 0))),
                (0x1010, None),
                (0x3007, Some(("last", 7))),
            ],
        );
    }

    #[test]
    fn damaged_lines_are_skipped_and_later_lines_replace_earlier_ones() {
        let long = [&b"1000 10 "[..], &[b'x'; 10_000], b"\n"].concat();
        let text = [
            b"1000 10 old\nnonsense\n1000 zz bad\n\xff\xfe 1 bad\n".as_slice(),
            b"1000 8 new\nffffffffffffffff 10 wraps\n",
            &long,
            b"4000 10 after",
        ]
        .concat();
        check(
            &text,
            &[(0x1001, Some(("new", 1))), (0x1009, Some(("old", 9)))],
        );
        check(b"\n\n", &[(0, None)]);
        check(b"4000 10 unfinished", &[(0x4000, None)]);
    }

    #[test]
    fn many_overlapping_lines_are_searched() {
        let text = "0 ffffffffffffffff all\n".repeat(30_000);
        let addresses: Vec<(u64, Option<(&str, u64)>)> =
            (0..2_000).map(|at| (at, Some(("all", at)))).collect();
        check(text.as_bytes(), &addresses);
    }
}
