//! Limits on memory of the cgroups that a process is in: how often they were hit during the trace, by
//! files that are read at its start and at its end. A program at its limit waits until the kernel has
//! freed memory, often for pages that it needs again at once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::capture::{read_file, read_text};
use super::super::usage::{find_cgroups, find_number};
use crate::MemoryLimit;

/// The counters of the cgroups of a process at the start of the trace, the innermost first.
#[derive(Debug, Default)]
pub(super) struct MemoryLimits {
    before: Vec<(PathBuf, Counters)>,
}

/// How often limits were hit, and the time that all tasks were stalled, so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counters {
    /// `memory.high`, which slows down who exceeds it.
    high: u64,
    /// `memory.max`.
    max: u64,
    /// `memory.limit_in_bytes` of version 1 of cgroups.
    limit: u64,
    /// Pages that were read again soon after the kernel had freed them.
    refaults: u64,
    stalled: Option<Duration>,
}

impl MemoryLimits {
    /// Reads the counters of a process, or of `self`.
    pub(super) fn watch(process: &str) -> Self {
        let mounts = read_file(Path::new("/proc/mounts")).unwrap_or_default();
        let own = read_file(Path::new(&format!("/proc/{process}/cgroup"))).unwrap_or_default();
        Self::watch_folders(find_cgroups(&mounts, &own, "memory"))
    }

    fn watch_folders(folders: Vec<PathBuf>) -> Self {
        let folders = folders.into_iter();
        let before = folders.map(|folder| {
            let counters = Counters::read(&folder);
            (folder, counters)
        });
        Self {
            before: before.collect(),
        }
    }

    /// The innermost limit that was hit since.
    pub(super) fn find_hit(&self) -> Option<MemoryLimit> {
        let mut all = self.before.iter();
        all.find_map(|(folder, before)| {
            let now = Counters::read(folder);
            let hits = [
                ("memory.high", now.high, before.high),
                ("memory.max", now.max, before.max),
                ("memory.limit_in_bytes", now.limit, before.limit),
            ];
            let hits = hits.map(|(file, now, before)| (file, now.saturating_sub(before)));
            let mut hits = hits.into_iter().filter(|(_, hits)| *hits > 0);
            hits.find_map(|(name, hits)| {
                let file = folder.join(name);
                let stalled = now.stalled.zip(before.stalled);
                Some(MemoryLimit {
                    // Without a limit it is a word.
                    bytes: read_text(&file)?.parse().ok()?,
                    file: file.to_str()?.to_owned(),
                    hits,
                    refaults: now.refaults.saturating_sub(before.refaults),
                    stalled: stalled.map(|(now, before)| now.saturating_sub(before)),
                })
            })
        })
    }
}

impl Counters {
    fn read(folder: &Path) -> Self {
        let read = |name: &str| read_text(&folder.join(name)).unwrap_or_default();
        let events = read("memory.events");
        let pressure = read("memory.pressure");
        let full = pressure.lines().find(|line| line.starts_with("full "));
        let total = full.and_then(|line| line.rsplit_once("total="));
        let total = total.and_then(|(_, micros)| micros.parse().ok());
        Self {
            high: find_number(&events, "high").unwrap_or(0),
            max: find_number(&events, "max").unwrap_or(0),
            limit: read("memory.failcnt").parse().unwrap_or(0),
            refaults: count_refaults(&read("memory.stat")),
            stalled: total.map(Duration::from_micros),
        }
    }
}

/// Counts refaults of the groups below, too, for which version 1 of cgroups has names of their own.
fn count_refaults(stat: &str) -> u64 {
    let count = |name: &str| find_number(stat, name).unwrap_or(0);
    let sum = |start: &str| {
        let [anon, file] = ["anon", "file"].map(|kind| count(&format!("{start}_{kind}")));
        anon + file
    };
    sum("workingset_refault").max(sum("total_workingset_refault"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_limit_that_was_hit_is_found() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let outer = outer.path();
        let write = |folder: &Path, name: &str, text: &str| {
            std::fs::write(folder.join(name), text).unwrap();
        };
        write(outer, "memory.events", "low 0\nhigh 7\nmax 3\noom 0\n");
        write(outer, "memory.high", "max\n");
        write(outer, "memory.max", "268435456\n");
        let watch = || MemoryLimits::watch_folders(vec![inner.clone(), outer.to_owned()]);
        let limits = watch();
        assert_eq!(limits.find_hit(), None);
        // It counts what happens below it.
        write(outer, "memory.events", "low 0\nhigh 9\nmax 5\noom 0\n");
        let hit = limits.find_hit().unwrap();
        assert_eq!(hit.file, outer.join("memory.max").to_str().unwrap());
        assert_eq!((hit.bytes, hit.hits, hit.stalled), (268_435_456, 2, None));
        write(&inner, "memory.high", "134217728\n");
        let pressure = |micros| {
            let some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=900";
            format!("{some}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total={micros}\n")
        };
        write(&inner, "memory.pressure", &pressure(100));
        let limits = watch();
        write(&inner, "memory.events", "low 0\nhigh 4\nmax 0\noom 0\n");
        write(&inner, "memory.pressure", &pressure(350));
        let hit = limits.find_hit().unwrap();
        assert_eq!(hit.file, inner.join("memory.high").to_str().unwrap());
        assert_eq!((hit.bytes, hit.hits), (134_217_728, 4));
        assert_eq!(hit.stalled, Some(Duration::from_micros(250)));
    }

    #[test]
    fn a_limit_of_version_1_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let write = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
        write("memory.failcnt", "12\n");
        write("memory.limit_in_bytes", "67108864\n");
        let limits = MemoryLimits::watch_folders(vec![path.to_owned()]);
        write("memory.failcnt", "20\n");
        let stat = "workingset_refault_file 1\ntotal_workingset_refault_file 30\n\
                    total_workingset_refault_anon 4\n";
        write("memory.stat", stat);
        let hit = limits.find_hit().unwrap();
        assert_eq!((hit.bytes, hit.hits, hit.refaults), (67_108_864, 8, 34));
    }
}
