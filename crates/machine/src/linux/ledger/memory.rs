//! Moves pages of a running process to other NUMA nodes and back.
//!
//! `migrate_pages(2)` moves all pages from one set of nodes to another. That can be undone only if
//! the process had no pages on the target before: on the way back those would move, too. So pages
//! are moved by their addresses (`move_pages(2)`), and the journal records each page's node.
//! Adjacent pages on one node form a [`PageRange`], which is restored exactly. If pages alternate
//! so often that more than [`MAX_RANGES`] would be needed, neighbouring ranges are joined to one
//! with several nodes; on the way back each node gets as many pages as it had, but not the same
//! ones.
//!
//! Pages that several processes use, such as those of libraries, stay where they are. A page that
//! is no longer on a target node is left alone.

use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use super::LedgerError;
use super::words::{format_cpus, parse_id, parse_some_cpus};
use crate::linux::capture::read_text;
use crate::linux::numa_maps::{open, read_ranges};
use crate::linux::sys;
use pinwise_format::round_bytes;
use pinwise_topology::CpuSet;

/// Most ranges that are recorded for one process.
const MAX_RANGES: usize = 4096;
/// Addresses per query of the kernel.
const BATCH: usize = 1024;
/// Mappings larger than this many bytes are left out: finding their pages takes minutes.
const MAX_MAPPING_BYTES: u64 = 1 << 40;
/// Unallocated pages of at most this many bytes do not end a range.
const MAX_GAP_BYTES: u64 = 2 << 20;
/// Size of a huge page, which is on one node as a whole.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// Moving back counts as done if at most one page in this many stays, for example because it is in
/// use.
const MAY_STAY: u64 = 100;

/// Adjacent pages, and their nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRange {
    /// Address of the first page.
    pub start: u64,
    /// End address of the last page.
    pub end: u64,
    /// Number of pages by node.
    pub nodes: BTreeMap<usize, u64>,
}

impl PageRange {
    /// The range as a word of a journal's line.
    pub(super) fn to_word(&self) -> String {
        let nodes = self.nodes.iter();
        let nodes: Vec<String> = nodes
            .map(|(node, pages)| format!("{node}={pages}"))
            .collect();
        format!("{:x}-{:x}:{}", self.start, self.end, nodes.join("+"))
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        let (addresses, nodes) = word.split_once(':')?;
        let (start, end) = addresses.split_once('-')?;
        let nodes = nodes.split('+').map(|part| {
            let (node, pages) = part.split_once('=')?;
            let node = node.parse().ok().filter(|&node| node <= CpuSet::MAX_CPU)?;
            Some((node, pages.parse().ok().filter(|&pages| pages > 0)?))
        });
        let range = Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            nodes: nodes.collect::<Option<_>>()?,
        };
        (range.start < range.end).then_some(range)
    }

    /// Are there pages on nodes other than the targets?
    fn has_pages_elsewhere(&self, targets: &CpuSet) -> bool {
        self.nodes.keys().any(|&node| !targets.contains(node))
    }
}

/// Pages of a process that were moved to other nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedMemory {
    /// Its id.
    pub process: i32,
    /// Its start time, ticks since boot.
    pub start: u64,
    /// The target nodes.
    pub nodes: CpuSet,
    /// The pages, with their nodes before.
    pub before: Vec<PageRange>,
}

impl MovedMemory {
    pub(super) fn to_words(&self) -> String {
        let ranges = self
            .before
            .iter()
            .map(|range| format!(" {}", range.to_word()));
        let ranges: String = ranges.collect();
        let (process, start) = (self.process, self.start);
        format!(
            "memory {process} {start} {}{ranges}",
            format_cpus(&self.nodes)
        )
    }

    /// Parses the words after the first one.
    pub(super) fn from_words(words: &[&str]) -> Option<Self> {
        let [process, start, nodes, ref ranges @ ..] = *words else {
            return None;
        };
        let ranges = ranges.iter().map(|range| PageRange::from_word(range));
        Some(Self {
            process: parse_id(process)?,
            start: start.parse().ok()?,
            nodes: parse_some_cpus(nodes)?,
            before: ranges.collect::<Option<_>>()?,
        })
    }

    /// Bytes of the pages that were moved from other nodes.
    fn bytes(&self) -> u64 {
        let nodes = self.before.iter().flat_map(|range| &range.nodes);
        let elsewhere = nodes.filter(|(node, _)| !self.nodes.contains(**node));
        let pages = elsewhere.fold(0, |all: u64, (_, pages)| all.saturating_add(*pages));
        pages.saturating_mul(page_bytes())
    }

    /// Moves pages that are elsewhere to the target nodes, interleaved by huge page.
    pub(super) fn move_to_targets(&self) -> Result<(), LedgerError> {
        let targets = &self.nodes;
        let nodes: Vec<usize> = targets.iter().collect();
        for range in &self.before {
            let mut mover = Mover::new(self.process);
            move_range(self.process, range, &mut mover, |address, node| {
                let turn =
                    usize::try_from(address / HUGE_PAGE_BYTES).unwrap_or(0) % nodes.len().max(1);
                (!targets.contains(node)).then(|| nodes.get(turn).copied().unwrap_or(node))
            })?;
        }
        Ok(())
    }

    /// Moves pages back that are on the target nodes and were not before.
    pub(super) fn move_back(&self) -> Result<(), LedgerError> {
        let (process, targets) = (self.process, &self.nodes);
        let (mut wanted, mut stayed) = (0, 0);
        for range in &self.before {
            let mut nodes = NodeSequence::new(&range.nodes);
            let mut mover = Mover::new(process);
            move_range(process, range, &mut mover, |_, node| {
                targets.contains(node).then(|| nodes.next())?
            })?;
            wanted += mover.wanted;
            stayed += mover.stayed;
        }
        match stayed > wanted / MAY_STAY {
            false => Ok(()),
            true => Err(LedgerError::Value(
                format!("memory of process {process}"),
                format!(
                    "{stayed} of {wanted} pages stay on node {targets}: in use, shared by now, or the other nodes are full"
                ),
            )),
        }
    }

    /// Does the process have pages on the target nodes that [`Self::move_back`] would move?
    pub(super) fn has_moved_pages(&self) -> bool {
        let mut has_some = false;
        for range in &self.before {
            let walked = walk_pages(self.process, range.start, range.end, |_, node| {
                has_some |= self.nodes.contains(node);
                !has_some
            });
            if has_some || walked.is_err() {
                break;
            }
        }
        has_some
    }
}

impl fmt::Display for MovedMemory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (process, bytes) = (self.process, round_bytes(self.bytes()));
        write!(
            out,
            "process {process}: {bytes} of memory back from node {}",
            self.nodes
        )
    }
}

fn page_bytes() -> u64 {
    sys::page_bytes() as u64
}

/// Finds the pages of a process that would move to these nodes.
pub(super) fn find_ranges(process: i32, targets: &CpuSet) -> Result<Vec<PageRange>, LedgerError> {
    check_targets(process, targets)?;
    let ends = read_mapping_ends(process);
    let Some(mappings) = read_ranges(process) else {
        return Err(LedgerError::Value(
            format!("memory of process {process}"),
            "the kernel does not show where it is (/proc/PID/numa_maps)".to_owned(),
        ));
    };
    let mut found = Vec::new();
    for mapping in mappings {
        let end = ends.get(&mapping.start).copied().unwrap_or(mapping.start);
        let is_elsewhere = mapping
            .nodes
            .iter()
            .any(|(node, _)| !targets.contains(*node));
        if !is_elsewhere || end - mapping.start > MAX_MAPPING_BYTES {
            continue;
        }
        let mut remaining_bytes: u64 = mapping.nodes.iter().map(|(_, bytes)| bytes).sum();
        let mut own = Vec::new();
        walk_pages(process, mapping.start, end, |address, node| {
            add_page(&mut own, address, node);
            if own.len() > 2 * MAX_RANGES {
                join_ranges(&mut own, MAX_RANGES);
            }
            remaining_bytes = remaining_bytes.saturating_sub(page_bytes());
            remaining_bytes > 0
        })?;
        found.append(&mut own);
        if found.len() > 2 * MAX_RANGES {
            join_ranges(&mut found, MAX_RANGES);
        }
    }
    join_ranges(&mut found, MAX_RANGES);
    found.retain(|range| range.has_pages_elsewhere(targets));
    Ok(found)
}

/// Checks that the process may use memory of these nodes.
fn check_targets(process: i32, targets: &CpuSet) -> Result<(), LedgerError> {
    // The kernel checks permission even for an empty list of pages.
    sys::query_page_nodes(process, &[], &mut [])
        .map_err(|error| explain_process_error(error, process))?;
    let path = format!("/proc/{process}/status");
    let status = read_text(path.as_ref()).ok_or(LedgerError::Gone(process))?;
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Mems_allowed_list:"));
    let allowed = allowed.and_then(|list| CpuSet::parse_list(list.trim()).ok());
    let Some(allowed) = allowed else {
        return Ok(());
    };
    match targets.is_subset(&allowed) {
        true => Ok(()),
        false => Err(LedgerError::Nodes(
            process,
            targets.difference(&allowed),
            allowed,
        )),
    }
}

/// Reads the end of each mapping, by its start.
fn read_mapping_ends(process: i32) -> BTreeMap<u64, u64> {
    let Some(file) = open(process, "maps") else {
        return BTreeMap::new();
    };
    let lines = BufReader::new(file.take(256 << 20)).lines();
    let parsed = lines.map_while(Result::ok).filter_map(|line| {
        let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
        let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
        Some((hexadecimal(start)?, hexadecimal(end)?))
    });
    parsed.collect()
}

/// Calls `take` with the address and node of each present page, until it returns false.
fn walk_pages(
    process: i32,
    start: u64,
    end: u64,
    mut take: impl FnMut(u64, usize) -> bool,
) -> Result<(), LedgerError> {
    let step = sys::page_bytes();
    let mut statuses = [0; BATCH];
    let mut from = start;
    while from < end {
        let addresses: Vec<u64> = (from..end).step_by(step).take(BATCH).collect();
        let statuses = &mut statuses[..addresses.len()];
        sys::query_page_nodes(process, &addresses, statuses)
            .map_err(|e| explain_process_error(e, process))?;
        for (&address, &status) in addresses.iter().zip(&*statuses) {
            // A negative status means that there is no page.
            if let Ok(node) = usize::try_from(status)
                && !take(address, node)
            {
                return Ok(());
            }
        }
        from = from.saturating_add((addresses.len() * step) as u64);
    }
    Ok(())
}

/// Appends a page to the last range, or as a new one.
fn add_page(ranges: &mut Vec<PageRange>, address: u64, node: usize) {
    let end = address + page_bytes();
    // A range with several nodes does not grow any more.
    let last = ranges.last_mut().filter(|last| last.nodes.len() == 1);
    let pages = last.and_then(|last| {
        let is_near = address - last.end <= MAX_GAP_BYTES;
        let pages = last.nodes.get_mut(&node).filter(|_| is_near)?;
        last.end = end;
        Some(pages)
    });
    match pages {
        Some(pages) => *pages += 1,
        None => ranges.push(PageRange {
            start: address,
            end,
            nodes: [(node, 1)].into(),
        }),
    }
}

/// Joins neighbouring ranges until there are at most `max`.
fn join_ranges(ranges: &mut Vec<PageRange>, max: usize) {
    let mut max_bytes = MAX_GAP_BYTES;
    while ranges.len() > max {
        let mut joined: Vec<PageRange> = Vec::new();
        for range in ranges.drain(..) {
            match joined.last_mut() {
                Some(last) if range.end - last.start <= max_bytes => {
                    last.end = range.end;
                    for (node, pages) in range.nodes {
                        *last.nodes.entry(node).or_default() += pages;
                    }
                }
                _ => joined.push(range),
            }
        }
        *ranges = joined;
        max_bytes = max_bytes.saturating_mul(2);
    }
}

/// Moves the pages of a range for which `to` returns another node.
fn move_range(
    process: i32,
    range: &PageRange,
    mover: &mut Mover,
    mut to: impl FnMut(u64, usize) -> Option<usize>,
) -> Result<(), LedgerError> {
    let mut failed = None;
    walk_pages(process, range.start, range.end, |address, node| {
        if let Some(wanted) = to(address, node).filter(|&wanted| wanted != node) {
            failed = mover.add(address, wanted).err();
        }
        failed.is_none()
    })?;
    match failed {
        Some(error) => Err(error),
        None => mover.flush(),
    }
}

/// Moves pages in batches.
struct Mover {
    process: i32,
    addresses: Vec<u64>,
    nodes: Vec<i32>,
    /// Pages that should move.
    wanted: u64,
    /// Of these, pages that the kernel did not move.
    stayed: u64,
}

impl Mover {
    const fn new(process: i32) -> Self {
        Self {
            process,
            addresses: Vec::new(),
            nodes: Vec::new(),
            wanted: 0,
            stayed: 0,
        }
    }

    fn add(&mut self, address: u64, node: usize) -> Result<(), LedgerError> {
        self.addresses.push(address);
        self.nodes.push(i32::try_from(node).unwrap_or(0));
        match self.addresses.len() < BATCH {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Moves the collected pages. The kernel stops a batch at the first page that it cannot move,
    /// so those that have not moved are tried again one by one.
    fn flush(&mut self) -> Result<(), LedgerError> {
        let process = self.process;
        let addresses = std::mem::take(&mut self.addresses);
        let nodes = std::mem::take(&mut self.nodes);
        if addresses.is_empty() {
            return Ok(());
        }
        let fail = |error| explain_process_error(error, process);
        self.wanted += addresses.len() as u64;
        sys::move_pages(process, &addresses, &nodes).map_err(fail)?;
        let mut statuses = vec![0; addresses.len()];
        sys::query_page_nodes(process, &addresses, &mut statuses).map_err(fail)?;
        for ((address, node), status) in addresses.iter().zip(&nodes).zip(statuses) {
            // A page that no longer exists needs no move.
            if status < 0 || status == *node {
                continue;
            }
            sys::move_pages(process, &[*address], &[*node]).map_err(fail)?;
            let mut now = [0];
            sys::query_page_nodes(process, &[*address], &mut now).map_err(fail)?;
            self.stayed += u64::from(now[0] >= 0 && now[0] != *node);
        }
        Ok(())
    }
}

/// The nodes to which pages of a range return, each as often as it had pages: one node after the
/// other, since a huge page cannot be on two.
struct NodeSequence<'a> {
    nodes: btree_map::Iter<'a, usize, u64>,
    node: usize,
    /// Pages that still return to `node`.
    remaining: u64,
}

impl<'a> NodeSequence<'a> {
    fn new(nodes: &'a BTreeMap<usize, u64>) -> Self {
        Self {
            nodes: nodes.iter(),
            node: 0,
            remaining: 0,
        }
    }
}

impl Iterator for NodeSequence<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.remaining == 0 {
            (self.node, self.remaining) = self.nodes.next().map(|(&node, &pages)| (node, pages))?;
        }
        self.remaining -= 1;
        Some(self.node)
    }
}

fn explain_process_error(error: io::Error, process: i32) -> LedgerError {
    match error.raw_os_error() {
        // EINVAL: a process that is ending has no memory any more.
        Some(libc::ESRCH | libc::EINVAL) => LedgerError::Gone(process),
        Some(libc::EPERM) => LedgerError::ForeignMemory(process),
        _ => LedgerError::System(format!("memory of process {process}"), error),
    }
}

#[cfg(test)]
mod tests;
