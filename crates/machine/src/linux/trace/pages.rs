//! The NUMA nodes of traced processes' pages: `/proc/PID/numa_maps`, sampled.
//!
//! To print it the kernel walks the page tables, which takes longer with more memory: after the
//! first few samples, pauses are so long that sampling takes a hundredth of the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::time::Duration;

use super::{nanoseconds, threads};
use crate::PagesSeen;
use crate::linux::numa_maps::{open, ranges};
use crate::linux::sys;
use pinwise_sched::Tid;

/// The first sample comes this long after the beginning, …
const FIRST: Duration = Duration::from_millis(50);
/// … and the pauses double up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Samples may take one part in this many of the time, …
const SHARE: u32 = 100;
/// … plus this much, so that short commands get some, too.
const ALLOWANCE: Duration = Duration::from_millis(10);
/// Limits the samples; beyond, every second one is dropped.
const MAX_LOOKS: usize = 256;

/// Samples of the pages of a process and its descendants.
pub(super) struct Pages {
    /// `None`: nothing is sampled.
    root: Option<Tid>,
    begin: Duration,
    /// Time that samples took.
    spent: Duration,
    next: Duration,
    pause: Duration,
    seen: Vec<PagesSeen>,
}

impl Pages {
    /// Nobody's.
    pub(super) const fn none() -> Self {
        Self {
            root: None,
            begin: Duration::ZERO,
            spent: Duration::ZERO,
            next: Duration::MAX,
            pause: FIRST,
            seen: Vec::new(),
        }
    }

    pub(super) fn follow(&mut self, root: Tid, now: Duration) {
        self.root = Some(root);
        self.begin = now;
        self.next = now + self.pause;
    }

    /// When the next sample is due.
    pub(super) const fn next(&self) -> Duration {
        self.next
    }

    pub(super) fn look(&mut self, now: Duration) {
        let Some(root) = self.root.filter(|_| now >= self.next) else {
            return;
        };
        let mut nodes = BTreeMap::new();
        let mut huge = 0;
        let found = threads::list_threads_below(root).into_iter();
        let processes: BTreeSet<Tid> = found.map(|found| found.process).collect();
        for process in processes {
            if let Some(ranges) = ranges(process) {
                for range in ranges {
                    for (node, bytes) in range.nodes {
                        *nodes.entry(node).or_default() += bytes;
                        huge += if range.is_huge { bytes } else { 0 };
                    }
                }
                huge += open(process, "smaps_rollup").map_or(0, transparent);
            }
        }
        if !nodes.is_empty() {
            self.keep(PagesSeen {
                time_ns: nanoseconds(now),
                nodes,
                huge,
            });
        }
        self.spent += sys::monotonic().saturating_sub(now);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE.max(self.pause));
        let affordable = self.begin + SHARE * self.spent.saturating_sub(ALLOWANCE);
        self.next = affordable.max(now + self.pause);
    }

    fn keep(&mut self, seen: PagesSeen) {
        self.seen.push(seen);
        if self.seen.len() > MAX_LOOKS {
            let mut at = 0;
            self.seen.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.pause *= 2;
        }
    }

    pub(super) fn take(&mut self) -> Vec<PagesSeen> {
        std::mem::take(&mut self.seen)
    }
}

/// Bytes in transparent huge pages, by the totals of `smaps_rollup`.
fn transparent(mut file: File) -> u64 {
    let mut text = String::new();
    // Always short.
    let _ = file.by_ref().take(64 << 10).read_to_string(&mut text);
    let kb = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let is_huge = ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"].contains(&name);
        let value = value.trim().strip_suffix(" kB")?;
        is_huge.then(|| value.parse::<u64>().ok())?
    };
    text.lines().filter_map(kb).sum::<u64>() << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_pages_are_found_and_looks_thin_out() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut pages = Pages::none();
        pages.look(Duration::MAX);
        assert!(pages.take().is_empty());
        pages.follow(own, Duration::ZERO);
        assert_eq!(pages.next(), FIRST);
        if open(own, "numa_maps").is_none() {
            eprintln!("SKIPPED own_pages_are_found: no /proc/self/numa_maps");
            return;
        }
        let now = sys::monotonic();
        pages.look(now);
        assert!(pages.next() > now + FIRST);
        let seen = pages.take();
        let bytes: u64 = seen[0].nodes.values().sum();
        assert!(bytes > 1 << 20, "{seen:?}");
        for time_ns in 0..=MAX_LOOKS as u64 {
            pages.keep(PagesSeen {
                time_ns,
                ..seen[0].clone()
            });
        }
        let kept = pages.take();
        assert_eq!(kept.len(), MAX_LOOKS / 2 + 1);
        assert_eq!(kept.last().unwrap().time_ns, MAX_LOOKS as u64);
    }
}
