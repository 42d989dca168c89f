//! `/proc/PID/numa_maps`: the NUMA nodes of a process's pages.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// Most bytes of text that are read for one process.
const MAX_TEXT_BYTES: u64 = 256 << 20;

/// A range of addresses with its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    /// Bytes on each node.
    pub(super) nodes: Vec<(usize, u64)>,
    /// Does it consist of reserved huge pages?
    pub(super) is_huge: bool,
}

/// Opens a file of a process; `None` if the process has ended or belongs to someone else, or the
/// kernel has no such file.
pub(super) fn open(process: i32, name: &str) -> Option<File> {
    #[expect(clippy::disallowed_methods, reason = "the Edge reads /proc")]
    File::open(format!("/proc/{process}/{name}")).ok()
}

/// Reads the ranges of a process that have pages; they end early if the process exits.
pub(super) fn read_ranges(process: i32) -> Option<impl Iterator<Item = Range>> {
    let file = open(process, "numa_maps")?.take(MAX_TEXT_BYTES);
    Some(parse_ranges(BufReader::new(file)))
}

/// Reads how many bytes of a process are on each node.
pub(super) fn read_bytes_by_node(process: i32) -> BTreeMap<usize, u64> {
    let mut nodes = BTreeMap::new();
    for range in read_ranges(process).into_iter().flatten() {
        for (node, bytes) in range.nodes {
            *nodes.entry(node).or_default() += bytes;
        }
    }
    nodes
}

fn parse_ranges(text: impl BufRead) -> impl Iterator<Item = Range> {
    text.lines()
        .map_while(Result::ok)
        .filter_map(|line| parse_line(&line))
}

/// Parses a line: the start of a range, its pages on each node as `N0=12`, and the size of a page
/// in kB.
fn parse_line(line: &str) -> Option<Range> {
    let words = || line.split_ascii_whitespace();
    let size = words().find_map(|word| word.strip_prefix("kernelpagesize_kB="));
    let page_bytes = size.and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(4) << 10;
    let nodes = words().filter_map(|word| {
        let (node, pages) = word.strip_prefix('N')?.split_once('=')?;
        let pages: u64 = pages.parse().ok()?;
        Some((node.parse().ok()?, pages.saturating_mul(page_bytes)))
    });
    let nodes: Vec<(usize, u64)> = nodes.collect();
    (!nodes.is_empty()).then_some(Range {
        start: u64::from_str_radix(words().next()?, 16).ok()?,
        nodes,
        is_huge: words().any(|word| word == "huge"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_by_node_and_size() {
        let text = "55d0 default file=/bin/cat N9=x mapped=2 N0=2 kernelpagesize_kB=4\n\
                    7f00 bind:1 anon=5 dirty=5 N0=1 N1=4 kernelpagesize_kB=4\n\
                    7f80 default file=/anon_hugepage\\040(deleted) huge anon=3 N1=3 kernelpagesize_kB=2048\n\
                    7fff default stack\n";
        let found: Vec<Range> = parse_ranges(text.as_bytes()).collect();
        let range = |start: u64, nodes: &[(usize, u64)], is_huge: bool| Range {
            start,
            nodes: nodes.to_vec(),
            is_huge,
        };
        assert_eq!(
            found,
            [
                range(0x55d0, &[(0, 2 << 12)], false),
                range(0x7f00, &[(0, 1 << 12), (1, 4 << 12)], false),
                range(0x7f80, &[(1, 3 << 21)], true),
            ]
        );
    }
}
