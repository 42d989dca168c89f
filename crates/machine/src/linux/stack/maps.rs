//! Finds the file that is mapped at an address of a process.

use std::path::Path;

use super::super::capture::read_file;

/// Mapped code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::linux) struct Mapping {
    pub(in crate::linux) start: u64,
    pub(in crate::linux) end: u64,
    /// Offset of the first address in the file, bytes.
    pub(in crate::linux) offset: u64,
    /// Index of the file among all known ones.
    pub(in crate::linux) module: usize,
}

/// The executable mappings of one process, in order and without overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::linux) struct Maps(Vec<Mapping>);

impl Maps {
    /// Adds a mapping, which replaces those that it overlaps.
    pub(in crate::linux) fn insert(&mut self, new: Mapping) {
        let mut kept = Vec::with_capacity(self.0.len() + 2);
        for old in self.0.drain(..) {
            if old.start < new.start {
                kept.push(Mapping {
                    end: old.end.min(new.start),
                    ..old
                });
            }
            if old.end > new.end {
                let start = old.start.max(new.end);
                kept.push(Mapping {
                    start,
                    offset: old.offset.saturating_add(start - old.start),
                    ..old
                });
            }
        }
        if new.start < new.end {
            kept.push(new);
        }
        kept.sort_unstable_by_key(|mapping| mapping.start);
        self.0 = kept;
    }

    pub(in crate::linux) fn clear(&mut self) {
        self.0.clear();
    }

    /// The mapping that contains an address.
    pub(in crate::linux) fn find(&self, address: u64) -> Option<&Mapping> {
        let after = self.0.partition_point(|mapping| mapping.start <= address);
        let mapping = self.0.get(after.checked_sub(1)?)?;
        (address < mapping.end).then_some(mapping)
    }
}

/// A line of `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::linux) struct Line {
    pub(in crate::linux) start: u64,
    pub(in crate::linux) end: u64,
    /// Offset of the first address in the file, bytes.
    pub(in crate::linux) offset: u64,
    /// May it be executed?
    pub(in crate::linux) is_code: bool,
    /// Empty for memory without a file.
    pub(in crate::linux) path: String,
}

/// Parses a line that maps code; `None` for memory that is not executable.
pub(in crate::linux) fn parse_code(line: &str) -> Option<Line> {
    parse_line(line).filter(|line| line.is_code)
}

/// Parses a line of any memory. In a path the kernel writes only a newline as an escape, `\012`.
pub(in crate::linux) fn parse_line(line: &str) -> Option<Line> {
    let mut rest = line;
    let mut field = || {
        rest = rest.trim_start_matches(' ');
        let (field, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        field
    };
    let (start, end) = field().split_once('-')?;
    let rights = field();
    let offset = field();
    let (_device, _inode) = (field(), field());
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    Some(Line {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset: hexadecimal(offset)?,
        is_code: rights.contains('x'),
        path: rest.trim_start_matches(' ').replace("\\012", "\n"),
    })
}

/// Reads `/proc/PID/maps`; the text is empty if that fails.
pub(in crate::linux) fn read_maps(pid: i32) -> String {
    let bytes = read_file(Path::new(&format!("/proc/{pid}/maps"))).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, module: usize) -> Mapping {
        Mapping {
            start,
            end,
            offset: 0x100 + start,
            module,
        }
    }

    #[test]
    fn lines_that_map_code_are_parsed() {
        let line = "7f10-7f20 r-xp 00000400 fe:00 1234       /usr/lib/a b.so (deleted)";
        let found = parse_code(line).unwrap();
        assert_eq!(
            (found.start, found.end, found.offset),
            (0x7f10, 0x7f20, 0x400)
        );
        assert_eq!(found.path, "/usr/lib/a b.so (deleted)");
        let newline = parse_code("7f10-7f20 r-xp 0 fe:00 9 /srv/a\\012b").unwrap();
        assert_eq!(newline.path, "/srv/a\nb");
        assert_eq!(parse_code("7f10-7f20 rwxp 0 00:00 0").unwrap().path, "");
        for other in [
            "",
            "7f10-7f20 r--p 0 00:00 0",
            "x-y r-xp 0 0 0",
            "7f10 r-xp",
        ] {
            assert_eq!(parse_code(other), None, "{other}");
        }
    }

    #[test]
    fn later_mappings_replace_earlier_ones() {
        let mut maps = Maps::default();
        maps.insert(mapping(0x1000, 0x5000, 0));
        maps.insert(mapping(0x2000, 0x3000, 1));
        let found = |address| {
            maps.find(address)
                .map(|m| (m.module, m.offset + address - m.start))
        };
        assert_eq!(found(0xfff), None);
        assert_eq!(found(0x1000), Some((0, 0x1100)));
        assert_eq!(found(0x2fff), Some((1, 0x30ff)));
        assert_eq!(found(0x3000), Some((0, 0x3100)));
        assert_eq!(found(0x5000), None);
        maps.insert(mapping(0, 0x10000, 2));
        assert_eq!(maps.0.len(), 1);
        maps.clear();
        assert_eq!(maps.find(0x1000), None);
    }
}
