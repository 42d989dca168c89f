//! Samples the NUMA nodes of traced processes' pages from `/proc/PID/numa_maps`.
//!
//! To print this file the kernel walks the page tables, which takes longer with more memory. After
//! the first few samples, pauses are so long that sampling takes a hundredth of the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::time::Duration;

use super::{nanoseconds, threads};
use crate::PagesSeen;
use crate::linux::numa_maps::{open, read_ranges};
use crate::linux::sys;
use pinwise_sched::Tid;

/// Time from the beginning to the first sample; pauses double from there.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// Pauses double up to this.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// The time since the beginning is at least this many times the time spent on samples.
const TIME_FACTOR: u32 = 100;
/// Time spent on samples that does not count for this, so that short commands get some samples,
/// too.
const ALLOWANCE: Duration = Duration::from_millis(10);
/// Most samples; when there are more, every second one is dropped.
const MAX_SAMPLES: usize = 256;

/// Samples of the pages of a process and its descendants.
pub(super) struct Pages {
    /// `None`: nothing is sampled.
    root: Option<Tid>,
    begin: Duration,
    /// Time that samples took.
    spent: Duration,
    next: Duration,
    pause: Duration,
    samples: Vec<PagesSeen>,
}

impl Pages {
    /// Samples nothing yet.
    pub(super) const fn none() -> Self {
        Self {
            root: None,
            begin: Duration::ZERO,
            spent: Duration::ZERO,
            next: Duration::MAX,
            pause: FIRST_PAUSE,
            samples: Vec::new(),
        }
    }

    /// Samples this process and its descendants from now on.
    pub(super) fn follow(&mut self, root: Tid, now: Duration) {
        self.root = Some(root);
        self.begin = now;
        self.next = now + self.pause;
    }

    /// When the next sample is due.
    pub(super) const fn next_sample(&self) -> Duration {
        self.next
    }

    pub(super) fn sample_if_due(&mut self, now: Duration) {
        let Some(root) = self.root.filter(|_| now >= self.next) else {
            return;
        };
        let mut nodes = BTreeMap::new();
        let mut huge = 0;
        let found = threads::list_threads_below(root).into_iter();
        let processes: BTreeSet<Tid> = found.map(|found| found.process).collect();
        for process in processes {
            if let Some(ranges) = read_ranges(process) {
                for range in ranges {
                    for (node, bytes) in range.nodes {
                        *nodes.entry(node).or_default() += bytes;
                        huge += if range.is_huge { bytes } else { 0 };
                    }
                }
                huge += open(process, "smaps_rollup").map_or(0, read_transparent_bytes);
            }
        }
        if !nodes.is_empty() {
            self.add_sample(PagesSeen {
                time_ns: nanoseconds(now),
                nodes,
                huge,
            });
        }
        self.spent += sys::monotonic().saturating_sub(now);
        self.pause = (2 * self.pause).min(MAX_PAUSE.max(self.pause));
        let affordable = self.begin + TIME_FACTOR * self.spent.saturating_sub(ALLOWANCE);
        self.next = affordable.max(now + self.pause);
    }

    fn add_sample(&mut self, sample: PagesSeen) {
        self.samples.push(sample);
        if self.samples.len() > MAX_SAMPLES {
            let mut count = 0;
            self.samples.retain(|_| {
                count += 1;
                count % 2 == 1
            });
            self.pause *= 2;
        }
    }

    pub(super) fn take_samples(&mut self) -> Vec<PagesSeen> {
        std::mem::take(&mut self.samples)
    }
}

/// Reads the bytes in transparent huge pages from the totals of `smaps_rollup`.
fn read_transparent_bytes(mut file: File) -> u64 {
    let mut text = String::new();
    // The limit is never reached: the file is short.
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
    fn own_pages_are_found_and_polls_become_rarer() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut pages = Pages::none();
        pages.sample_if_due(Duration::MAX);
        assert!(pages.take_samples().is_empty());
        pages.follow(own, Duration::ZERO);
        assert_eq!(pages.next_sample(), FIRST_PAUSE);
        if open(own, "numa_maps").is_none() {
            eprintln!("SKIPPED own_pages_are_found: no /proc/self/numa_maps");
            return;
        }
        let now = sys::monotonic();
        pages.sample_if_due(now);
        assert!(pages.next_sample() > now + FIRST_PAUSE);
        let seen = pages.take_samples();
        let bytes: u64 = seen[0].nodes.values().sum();
        assert!(bytes > 1 << 20, "{seen:?}");
        for time_ns in 0..=MAX_SAMPLES as u64 {
            pages.add_sample(PagesSeen {
                time_ns,
                ..seen[0].clone()
            });
        }
        let kept = pages.take_samples();
        assert_eq!(kept.len(), MAX_SAMPLES / 2 + 1);
        assert_eq!(kept.last().unwrap().time_ns, MAX_SAMPLES as u64);
    }
}
