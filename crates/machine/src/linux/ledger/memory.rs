//! Pages of a running process, moved to other NUMA nodes and back.
//!
//! `migrate_pages(2)` moves all pages of one set of nodes to another, and can be undone only if the
//! target had none before: those would move along. So pages are moved by their addresses
//! (`move_pages(2)`), and the journal records each page's node. Adjacent pages on one node form a
//! [`PageRange`], which is exact. If pages alternate so often that more than [`MAX_PIECES`] would
//! be needed, neighbouring ones become a piece of several nodes; on the way back each node gets as
//! many pages as it had, but not the same ones.
//!
//! Pages that several processes use, such as those of libraries, stay. A page that is not where
//! pinwise put it is left alone.

use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use super::LedgerError;
use super::words::{id, list, some_cpus};
use crate::linux::capture::read_text;
use crate::linux::numa_maps::{open, read_ranges};
use crate::linux::sys;
use pinwise_format::round_bytes;
use pinwise_topology::CpuSet;

/// Limits the pieces recorded for one process.
const MAX_PIECES: usize = 4096;
/// Addresses per query of the kernel.
const BATCH: usize = 1024;
/// Larger ranges of addresses, in bytes, are left out: searching their pages takes minutes.
const LONGEST_RANGE: u64 = 1 << 40;
/// Unallocated pages of at most this many bytes do not end a piece.
const LONGEST_GAP: u64 = 2 << 20;
/// A huge page is on one node as a whole.
const HUGE: u64 = 2 << 20;
/// One in this many pages may be in use and stay when moved back.
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
    pub(super) fn to_word(&self) -> String {
        let nodes = self.nodes.iter();
        let nodes: Vec<String> = nodes
            .map(|(node, pages)| format!("{node}={pages}"))
            .collect();
        format!("{:x}-{:x}:{}", self.start, self.end, nodes.join("+"))
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        let (range, nodes) = word.split_once(':')?;
        let (start, end) = range.split_once('-')?;
        let nodes = nodes.split('+').map(|part| {
            let (node, pages) = part.split_once('=')?;
            let node = node.parse().ok().filter(|&node| node <= CpuSet::MAX_CPU)?;
            Some((node, pages.parse().ok().filter(|&pages| pages > 0)?))
        });
        let piece = Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            nodes: nodes.collect::<Option<_>>()?,
        };
        (piece.start < piece.end).then_some(piece)
    }

    /// Are there pages that should be elsewhere?
    fn has_others(&self, targets: &CpuSet) -> bool {
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
    /// Their nodes before.
    pub before: Vec<PageRange>,
}

impl MovedMemory {
    pub(super) fn to_words(&self) -> String {
        let pieces = self
            .before
            .iter()
            .map(|piece| format!(" {}", piece.to_word()));
        let pieces: String = pieces.collect();
        let (process, start) = (self.process, self.start);
        format!("memory {process} {start} {}{pieces}", list(&self.nodes))
    }

    /// Parses the words after the first one.
    pub(super) fn from_words(words: &[&str]) -> Option<Self> {
        let [process, start, nodes, ref pieces @ ..] = *words else {
            return None;
        };
        let pieces = pieces.iter().map(|piece| PageRange::from_word(piece));
        Some(Self {
            process: id(process)?,
            start: start.parse().ok()?,
            nodes: some_cpus(nodes)?,
            before: pieces.collect::<Option<_>>()?,
        })
    }

    /// Bytes of pages that were on other nodes.
    fn bytes(&self) -> u64 {
        let nodes = self.before.iter().flat_map(|piece| &piece.nodes);
        let elsewhere = nodes.filter(|(node, _)| !self.nodes.contains(**node));
        let pages = elsewhere.fold(0, |all: u64, (_, pages)| all.saturating_add(*pages));
        pages.saturating_mul(page_bytes())
    }

    /// Moves pages that are elsewhere to the nodes, huge pages in turns.
    pub(super) fn move_there(&self) -> Result<(), LedgerError> {
        let targets = &self.nodes;
        let nodes: Vec<usize> = targets.iter().collect();
        for piece in &self.before {
            let mut mover = Mover::new(self.process);
            walk_and_move(self.process, piece, &mut mover, |address, node| {
                let turn = usize::try_from(address / HUGE).unwrap_or(0) % nodes.len().max(1);
                (!targets.contains(node)).then(|| nodes.get(turn).copied().unwrap_or(node))
            })?;
        }
        Ok(())
    }

    /// Moves pages back that are on the target nodes and were not before.
    pub(super) fn move_back(&self) -> Result<(), LedgerError> {
        let (process, targets) = (self.process, &self.nodes);
        let (mut wanted, mut left) = (0, 0);
        for piece in &self.before {
            let mut shares = Shares::new(&piece.nodes);
            let mut mover = Mover::new(process);
            walk_and_move(process, piece, &mut mover, |_, node| {
                targets.contains(node).then(|| shares.next())?
            })?;
            wanted += mover.wanted;
            left += mover.left;
        }
        match left > wanted / MAY_STAY {
            false => Ok(()),
            true => Err(LedgerError::Value(
                format!("memory of process {process}"),
                format!(
                    "{left} of {wanted} pages stay on node {targets}: in use, shared by now, or the other nodes are full"
                ),
            )),
        }
    }

    /// Does the process have pages that [`Self::move_back`] would examine?
    pub(super) fn is_there(&self) -> bool {
        let mut is_there = false;
        for piece in &self.before {
            let walked = walk(self.process, piece.start, piece.end, |_, node| {
                is_there |= self.nodes.contains(node);
                !is_there
            });
            if is_there || walked.is_err() {
                break;
            }
        }
        is_there
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
pub(super) fn find_pieces(process: i32, targets: &CpuSet) -> Result<Vec<PageRange>, LedgerError> {
    check(process, targets)?;
    let ends = ends(process);
    let Some(ranges) = read_ranges(process) else {
        return Err(LedgerError::Value(
            format!("memory of process {process}"),
            "the kernel does not show where it is (/proc/PID/numa_maps)".to_owned(),
        ));
    };
    let mut found = Vec::new();
    for range in ranges {
        let end = ends.get(&range.start).copied().unwrap_or(range.start);
        let is_elsewhere = range.nodes.iter().any(|(node, _)| !targets.contains(*node));
        if !is_elsewhere || end - range.start > LONGEST_RANGE {
            continue;
        }
        let mut left: u64 = range.nodes.iter().map(|(_, bytes)| bytes).sum();
        let mut own = Vec::new();
        walk(process, range.start, end, |address, node| {
            add(&mut own, address, node);
            if own.len() > 2 * MAX_PIECES {
                coarsen(&mut own, MAX_PIECES);
            }
            left = left.saturating_sub(page_bytes());
            left > 0
        })?;
        found.append(&mut own);
        if found.len() > 2 * MAX_PIECES {
            coarsen(&mut found, MAX_PIECES);
        }
    }
    coarsen(&mut found, MAX_PIECES);
    found.retain(|piece| piece.has_others(targets));
    Ok(found)
}

/// May the process use memory of these nodes?
fn check(process: i32, targets: &CpuSet) -> Result<(), LedgerError> {
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

/// The end of each range of addresses, by its start.
fn ends(process: i32) -> BTreeMap<u64, u64> {
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

/// Calls back with the node of each present page until the callback returns false.
fn walk(
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
            // Negative: no page.
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

/// Appends a page.
fn add(pieces: &mut Vec<PageRange>, address: u64, node: usize) {
    let end = address + page_bytes();
    // A coarse piece does not grow any more.
    let last = pieces.last_mut().filter(|last| last.nodes.len() == 1);
    let pages = last.and_then(|last| {
        let is_near = address - last.end <= LONGEST_GAP;
        let pages = last.nodes.get_mut(&node).filter(|_| is_near)?;
        last.end = end;
        Some(pages)
    });
    match pages {
        Some(pages) => *pages += 1,
        None => pieces.push(PageRange {
            start: address,
            end,
            nodes: [(node, 1)].into(),
        }),
    }
}

/// Joins neighbours until there are few enough.
fn coarsen(pieces: &mut Vec<PageRange>, most: usize) {
    let mut reach = LONGEST_GAP;
    while pieces.len() > most {
        let mut joined: Vec<PageRange> = Vec::new();
        for piece in pieces.drain(..) {
            match joined.last_mut() {
                Some(last) if piece.end - last.start <= reach => {
                    last.end = piece.end;
                    for (node, pages) in piece.nodes {
                        *last.nodes.entry(node).or_default() += pages;
                    }
                }
                _ => joined.push(piece),
            }
        }
        *pieces = joined;
        reach = reach.saturating_mul(2);
    }
}

/// Moves the pages of a piece for which the closure returns a node.
fn walk_and_move(
    process: i32,
    piece: &PageRange,
    mover: &mut Mover,
    mut to: impl FnMut(u64, usize) -> Option<usize>,
) -> Result<(), LedgerError> {
    let mut failed = None;
    walk(process, piece.start, piece.end, |address, node| {
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

/// Pages being moved.
struct Mover {
    process: i32,
    addresses: Vec<u64>,
    nodes: Vec<i32>,
    /// Pages that should move.
    wanted: u64,
    /// Of these, those on the wrong node.
    left: u64,
}

impl Mover {
    const fn new(process: i32) -> Self {
        Self {
            process,
            addresses: Vec::new(),
            nodes: Vec::new(),
            wanted: 0,
            left: 0,
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

    /// The kernel stops a batch at the first page that it cannot move: the rest is tried one by
    /// one.
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
            // A page that is gone needs no move.
            if status < 0 || status == *node {
                continue;
            }
            sys::move_pages(process, &[*address], &[*node]).map_err(fail)?;
            let mut now = [0];
            sys::query_page_nodes(process, &[*address], &mut now).map_err(fail)?;
            self.left += u64::from(now[0] >= 0 && now[0] != *node);
        }
        Ok(())
    }
}

/// The nodes that pages of a piece return to, each as often as before. Node by node, since a huge
/// page cannot be on two.
struct Shares<'a> {
    nodes: btree_map::Iter<'a, usize, u64>,
    now: (usize, u64),
}

impl<'a> Shares<'a> {
    fn new(nodes: &'a BTreeMap<usize, u64>) -> Self {
        Self {
            nodes: nodes.iter(),
            now: (0, 0),
        }
    }
}

impl Iterator for Shares<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.now.1 == 0 {
            let (&node, &pages) = self.nodes.next()?;
            self.now = (node, pages);
        }
        self.now.1 -= 1;
        Some(self.now.0)
    }
}

fn explain_process_error(error: io::Error, process: i32) -> LedgerError {
    match error.raw_os_error() {
        // An ending process has no memory any more.
        Some(libc::ESRCH | libc::EINVAL) => LedgerError::Gone(process),
        Some(libc::EPERM) => LedgerError::ForeignMemory(process),
        _ => LedgerError::System(format!("memory of process {process}"), error),
    }
}

#[cfg(test)]
mod tests;
