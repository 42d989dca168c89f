//! The system's counts of interrupts, softirqs and stolen time, per CPU.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::sys;
use super::usage::{self, RereadFile};
use crate::jitter::SystemCounter;
use pinwise_sched::jitter::{Cause, CounterFile};
use pinwise_topology::interrupts::{self, Line};

/// A snapshot of all counters.
#[derive(Debug, Default)]
pub(super) struct Counts {
    interrupts: Vec<Line>,
    softirqs: Vec<Line>,
    steal: BTreeMap<usize, Duration>,
}

impl Counts {
    /// Reads the counts of interrupts and softirqs.
    pub(super) fn read() -> Self {
        let lines = |path: &str| interrupts::lines(&read_kernel_file(path));
        Self {
            interrupts: lines("/proc/interrupts"),
            softirqs: lines("/proc/softirqs"),
            steal: BTreeMap::new(),
        }
    }

    /// Reads the counts and stolen time.
    pub(super) fn read_with_steal() -> Self {
        Self {
            steal: usage::parse_steal(&read_kernel_file("/proc/stat"), sys::ticks_per_second()),
            ..Self::read()
        }
    }

    /// Interrupts of a CPU since an earlier snapshot.
    pub(super) fn interrupts_since(&self, before: &Self, cpu: usize) -> Vec<SystemCounter> {
        counters_since(&self.interrupts, &before.interrupts, cpu)
    }

    /// Softirqs of a CPU since an earlier snapshot.
    pub(super) fn softirqs_since(&self, before: &Self, cpu: usize) -> Vec<SystemCounter> {
        counters_since(&self.softirqs, &before.softirqs, cpu)
    }

    /// How often a cause of interruption occurred on all CPUs since an earlier snapshot; `None` if
    /// the kernel does not count it.
    pub(super) fn count_since(&self, before: &Self, cause: &Cause) -> Option<u64> {
        let (file, label) = cause.counter()?;
        let total = |counts: &Self| -> Option<u64> {
            let lines = match file {
                CounterFile::Interrupts => &counts.interrupts,
                CounterFile::Softirqs => &counts.softirqs,
            };
            let line = lines.iter().find(|line| line.label == label)?;
            Some(line.counts.values().sum())
        };
        Some(total(self)?.saturating_sub(total(before)?))
    }

    /// Stolen time of a CPU since an earlier snapshot.
    pub(super) fn steal_since(&self, before: &Self, cpu: usize) -> Option<Duration> {
        let now = self.steal.get(&cpu)?;
        Some(now.saturating_sub(*before.steal.get(&cpu)?))
    }
}

/// Reads a file of the kernel; empty if that fails.
fn read_kernel_file(path: &str) -> String {
    let file = RereadFile::open(Path::new(path));
    file.and_then(|mut file| file.read().map(str::to_owned))
        .unwrap_or_default()
}

/// The counters of a CPU that have increased, with their increase.
fn counters_since(now: &[Line], before: &[Line], cpu: usize) -> Vec<SystemCounter> {
    let earlier: BTreeMap<&str, &Line> = before
        .iter()
        .map(|line| (line.label.as_str(), line))
        .collect();
    let count = |line: &Line| line.counts.get(&cpu).copied();
    let counted = now.iter().filter_map(|line| {
        let earlier_count = earlier
            .get(line.label.as_str())
            .and_then(|line| count(line));
        let count = count(line)?.saturating_sub(earlier_count.unwrap_or(0));
        (count > 0).then(|| SystemCounter {
            label: line.label.clone(),
            name: line.name.clone(),
            count,
        })
    });
    counted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_counted_over_all_cpus() {
        let counts = |ticks: u64, packets: u64| Counts {
            interrupts: interrupts::lines(&format!("  CPU0 CPU1\nLOC: {ticks} 9 Timer\n")),
            softirqs: interrupts::lines(&format!("  CPU0 CPU1\nNET_RX: 7 {packets}\n")),
            steal: BTreeMap::new(),
        };
        let (before, now) = (counts(5, 10), counts(8, 30));
        let since = |cause| now.count_since(&before, &cause);
        assert_eq!(since(Cause::Vector("local_timer".into())), Some(3));
        assert_eq!(since(Cause::Softirq("NET_RX".into())), Some(20));
        assert_eq!(since(Cause::Softirq("BLOCK".into())), None);
        assert_eq!(since(Cause::Vector("call_function".into())), None);
    }

    #[test]
    fn events_between_snapshots_are_counted() {
        let look = |text: &str| interrupts::lines(text);
        let before = look("  CPU0 CPU1\n 36: 5 7 msi 1-edge disk\nLOC: 9 9 Timer\n");
        let now = look(
            "  CPU0 CPU1\n 36: 5 9 msi 1-edge disk\nLOC: 10 9 Timer\n 37: 0 3 msi 2-edge card\n",
        );
        let read = |cpu: usize| -> Vec<String> {
            let counted = counters_since(&now, &before, cpu).into_iter();
            counted
                .map(|c| format!("{} {} {}", c.label, c.name, c.count))
                .collect()
        };
        assert_eq!(read(0), ["LOC Timer 1"]);
        assert_eq!(read(1), ["36 disk 2", "37 card 3"]);
        assert_eq!(read(7), [""; 0]);
    }
}
