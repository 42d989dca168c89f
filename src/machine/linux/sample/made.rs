//! Names that programs give the code that they make at run time: the files
//! `/tmp/perf-PID.map`, as the kernel's perf has them.
//!
//! They are opened while the process lives and read when sampling is over, line
//! by line: however large one is, only names that are asked for are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::super::capture::read_file;
use super::files::open_regular;
use crate::code::demangled;
use crate::profile::Symbol;

/// Files that are kept open at most.
const MOST_FILES: usize = 256;
/// Of one file so much is read, bytes: a million functions.
const LARGEST: u64 = 128 << 20;
/// Longer lines are skipped, bytes.
const LONGEST_LINE: u64 = 4096;
/// Addresses that are given names, those of all lines together: lines may be
/// said to cover everything.
const MOST_MATCHES: usize = 10_000_000;
const ROOT: u32 = 0;

/// A file of names, or why it is not read.
type Opened = Result<File, String>;

/// Files of names by process.
#[derive(Debug, Default)]
pub(super) struct NameFiles(BTreeMap<i32, Opened>);

impl NameFiles {
    /// Opens those that are there by now.
    pub(super) fn open_of(&mut self, processes: &BTreeSet<i32>) {
        for &pid in processes {
            if self.0.len() >= MOST_FILES {
                return;
            }
            if !self.0.contains_key(&pid)
                && let Some(opened) = open(pid)
            {
                self.0.insert(pid, opened);
            }
        }
    }

    /// Which were not opened, and why.
    pub(super) fn refusals(&self) -> Vec<String> {
        let refused = self.0.iter().filter_map(|(pid, opened)| {
            let why = opened.as_ref().err()?;
            Some(format!(
                "Names of the code that process {pid} made are missing: {why}."
            ))
        });
        refused.collect()
    }

    /// A name for each address of a process where there is one.
    pub(super) fn names(
        &self,
        pid: i32,
        addresses: &[u64],
        notes: &mut Vec<String>,
    ) -> Vec<Option<Symbol>> {
        let Some(Ok(file)) = self.0.get(&pid) else {
            return vec![None; addresses.len()];
        };
        if file.metadata().is_ok_and(|file| file.len() > LARGEST) {
            notes.push(format!(
                "Names of the code that process {pid} made are incomplete: its list is larger \
                 than {} MiB.",
                LARGEST >> 20
            ));
        }
        find(file, addresses)
    }
}

/// `None` where there is none, or the process is gone.
fn open(pid: i32) -> Option<Opened> {
    let status = read_file(Path::new(&format!("/proc/{pid}/status")))?;
    let status = String::from_utf8_lossy(&status);
    // The process's own number, by which it calls its file; and who it is.
    let own = last_of(&status, "NStgid:").map_or_else(|| pid.to_string(), str::to_owned);
    let user: u32 = fields(&status, "Uid:")?.nth(1)?.parse().ok()?;
    let name = format!("/tmp/perf-{own}.map");
    match open_regular(Path::new(&format!("/proc/{pid}/root{name}"))) {
        Ok(file) => {
            let owner = file.metadata().ok()?.uid();
            if owner == user || owner == ROOT {
                Some(Ok(file))
            } else {
                Some(Err(format!("{name} belongs to another user ({owner})")))
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(Err(format!("{name}: {error}"))),
    }
}

fn fields<'a>(status: &'a str, name: &str) -> Option<impl Iterator<Item = &'a str>> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_ascii_whitespace())
}

fn last_of<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    fields(status, name)?.last()
}

/// Where in the file the name of an address is.
#[derive(Debug, Clone, Copy)]
struct Hit {
    start: u64,
    at: u64,
    length: usize,
}

/// The last line that covers an address has its name: code is replaced.
fn find(file: &File, addresses: &[u64]) -> Vec<Option<Symbol>> {
    let mut sorted: Vec<(u64, usize)> = addresses.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let mut hits: Vec<Option<Hit>> = vec![None; addresses.len()];
    let mut left = MOST_MATCHES;
    each_line(file, |at, line| {
        let Some((start, end, skipped)) = parse(line) else {
            return left > 0;
        };
        let hit = Hit {
            start,
            at: at + skipped as u64,
            length: line.len() - skipped,
        };
        let first = sorted.partition_point(|(address, _)| *address < start);
        for (_, index) in sorted[first..]
            .iter()
            .take_while(|(a, _)| *a < end)
            .take(left)
        {
            hits[*index] = Some(hit);
            left -= 1;
        }
        left > 0
    });
    let symbol = |(hit, address): (Option<Hit>, &u64)| {
        let hit = hit?;
        let mut bytes = vec![0; hit.length];
        file.read_exact_at(&mut bytes, hit.at).ok()?;
        Some(Symbol {
            name: demangled(&String::from_utf8_lossy(&bytes)),
            offset: address - hit.start,
            source: None,
            inlined: Vec::new(),
        })
    };
    hits.into_iter().zip(addresses).map(symbol).collect()
}

/// Hands on lines with where they begin, until `take` has enough.
fn each_line(file: &File, mut take: impl FnMut(u64, &[u8]) -> bool) {
    let mut reader = BufReader::new(FromStart(file, 0)).take(LARGEST);
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

/// Reads a file from its beginning, wherever its descriptor stands.
struct FromStart<'a>(&'a File, u64);

impl Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read_at(buffer, self.1)?;
        self.1 += read as u64;
        Ok(read)
    }
}

/// `START SIZE name`, both hexadecimal: where code begins and ends, and how many
/// bytes stand before the name.
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
    fn lines_name_what_they_cover() {
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
    fn lines_that_cover_everything_are_gone_through_for_so_long_only() {
        let text = "0 ffffffffffffffff all\n".repeat(30_000);
        let addresses: Vec<(u64, Option<(&str, u64)>)> =
            (0..2_000).map(|at| (at, Some(("all", at)))).collect();
        check(text.as_bytes(), &addresses);
    }
}
