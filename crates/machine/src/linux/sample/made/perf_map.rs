//! `/tmp/perf-PID.map`: a line for each piece of code.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use super::{Covered, FromStart, LARGEST_MAP, Name};
use pinwise_profile::Symbol;

/// Longer lines are skipped, bytes.
const LONGEST_LINE: u64 = 4096;

/// The last line that covers an address has its name: code is replaced.
pub(super) fn find(file: &File, addresses: &[u64]) -> Vec<Option<Symbol>> {
    let mut covered = Covered::new(addresses);
    each_line(file, |at, line| {
        if let Some((start, end, skipped)) = parse(line) {
            let name = Name {
                start,
                at: at + skipped as u64,
                length: line.len() - skipped,
            };
            covered.cover(start, end, name);
        }
        covered.has_room()
    });
    covered.symbols(file)
}

/// Passes on lines with their offsets until `take` has enough.
fn each_line(file: &File, mut take: impl FnMut(u64, &[u8]) -> bool) {
    let mut reader = BufReader::new(FromStart(file, 0)).take(LARGEST_MAP);
    let mut at = 0;
    let mut line = Vec::new();
    let mut is_rest = false;
    loop {
        line.clear();
        let read = reader
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line);
        let Ok(read @ 1..) = read else { return };
        let is_whole = line.ends_with(b"\n");
        let goes_on = is_rest || !is_whole || take(at, line.trim_ascii_end());
        if !goes_on {
            return;
        }
        is_rest = !is_whole;
        at += read as u64;
    }
}

/// `START SIZE name`, both hexadecimal: start and end of the code, and the offset of the name in
/// the line.
fn parse(line: &[u8]) -> Option<(u64, u64, usize)> {
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
        let found = find(&file, &addresses);
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
    fn damaged_lines_cost_only_themselves_and_later_ones_replace() {
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
    fn overlapping_lines_are_searched_for_a_limited_time() {
        let text = "0 ffffffffffffffff all\n".repeat(30_000);
        let addresses: Vec<(u64, Option<(&str, u64)>)> =
            (0..2_000).map(|at| (at, Some(("all", at)))).collect();
        check(text.as_bytes(), &addresses);
    }
}
