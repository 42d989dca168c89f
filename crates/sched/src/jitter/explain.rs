//! Finds the causes of a CPU's gaps in the kernel's reports.
//!
//! Reports can be missing: an end without a start, or a start without an end, affects the parts of
//! one gap only, because the thread that reads the clock proves between gaps that nothing else has
//! its CPU.

use std::collections::VecDeque;

use super::{Cause, ExplainedGap, Gap, Report, ReportKind};
use crate::analysis::histogram::Histogram;
use crate::{IDLE, Tid};

/// Reports up to this long before and after a gap count for it: both clocks are read about 100 ns
/// before or after what they time.
const SLACK_NS: u64 = 1_000;
/// Limits the reports that are held between gaps.
const MAX_REPORTS: usize = 1 << 16;
/// Entry and exit may take this many times their usual time. That is half a microsecond on most
/// machines; 17 µs were seen on a virtual one whose hypervisor emulates interrupt delivery.
const USUAL_ENTRIES: u64 = 2;
/// Gaps with reports needed to know the usual time.
const MIN_ENTRIES: u64 = 8;
/// Limits the nesting: softirq, interrupt and NMI, and more if ends are missing.
const MAX_NESTING: usize = 16;

/// Whether the kernel reports its activities on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knowledge {
    /// The kernel reports its activities.
    Reported,
    /// Only the gaps are known.
    Nothing,
}

/// Explains the gaps of one CPU.
#[derive(Debug)]
pub struct Explainer {
    /// The thread that reads the clock.
    watcher: Tid,
    knowledge: Knowledge,
    /// Shorter interruptions are not gaps, ns.
    threshold_ns: u64,
    reports: VecDeque<Report>,
    gaps: VecDeque<Gap>,
    /// Reports up to this time were dropped, ns.
    dropped_until_ns: u64,
    /// Unreported time in gaps that have at least one report.
    entries: Histogram,
    /// Gaps whose unreported time has no cause yet.
    split: Vec<SplitGap>,
}

impl Explainer {
    /// Explains the gaps of the CPU on which this thread reads the clock.
    #[must_use]
    pub fn new(watcher: Tid, knowledge: Knowledge, threshold_ns: u64) -> Self {
        Self {
            watcher,
            knowledge,
            threshold_ns,
            reports: VecDeque::new(),
            gaps: VecDeque::new(),
            dropped_until_ns: 0,
            entries: Histogram::new(),
            split: Vec::new(),
        }
    }

    /// The usual time to enter and leave the kernel, ns: the median of the gaps so far; `None` if
    /// too few had reports.
    #[must_use]
    pub fn entry_ns(&self) -> Option<u64> {
        let usual = self.entries.quantile(0.5);
        usual.filter(|_| self.entries.total() >= MIN_ENTRIES)
    }

    /// Adds a report, nearly in time order: if an interrupt comes while the kernel writes a report,
    /// the interrupt's reports come first.
    pub fn add_report(&mut self, report: Report) {
        let is_later = |other: &&Report| other.time_ns > report.time_ns;
        let later = self.reports.iter().rev().take_while(is_later).count();
        self.reports.insert(self.reports.len() - later, report);
        while self.reports.len() > MAX_REPORTS {
            let oldest = self.reports.pop_front();
            self.dropped_until_ns = oldest.map_or(self.dropped_until_ns, |report| report.time_ns);
        }
    }

    /// Adds a gap, in time order.
    pub fn add_gap(&mut self, gap: Gap) {
        self.gaps.push_back(gap);
    }

    /// Explains the gaps that ended by this moment; all reports up to it must have been added.
    pub fn explain_until(&mut self, until_ns: u64, explained: &mut Vec<ExplainedGap>) {
        while let Some(gap) = self.gaps.front().copied() {
            if gap.to_ns.saturating_add(SLACK_NS) > until_ns {
                break;
            }
            self.gaps.pop_front();
            let split = self.split_gap(gap);
            if !split.parts.is_empty() && !split.has_lost_reports {
                self.entries.add(split.rest_ns);
            }
            self.split.push(split);
        }
        let usual_ns = self.entry_ns().unwrap_or(0);
        let max_entry_ns = self
            .threshold_ns
            .max(usual_ns.saturating_mul(USUAL_ENTRIES));
        let split = self.split.drain(..);
        explained.extend(split.map(|gap| gap.explain(max_entry_ns)));
    }

    /// Splits the time of a gap by the reports. Those near its end are kept: they can be of the
    /// next gap, too.
    fn split_gap(&mut self, gap: Gap) -> SplitGap {
        if self.knowledge == Knowledge::Nothing {
            return SplitGap {
                gap,
                parts: Vec::new(),
                rest_ns: gap.length_ns(),
                has_lost_reports: true,
            };
        }
        let first = gap.from_ns.saturating_sub(SLACK_NS);
        let last = gap.to_ns.saturating_add(SLACK_NS);
        let is_early = |report: &Report| report.time_ns < first;
        while self.reports.front().is_some_and(is_early) {
            self.reports.pop_front();
        }
        let mut splitter = GapSplitter::new(gap, self.watcher);
        let mut reports = self.reports.iter().peekable();
        while let Some(report) = reports.next_if(|report| report.time_ns <= last) {
            splitter.add_report(report);
        }
        // Reports that were lost before the next one may have been of this gap.
        let is_loss = |report: &&Report| report.what == ReportKind::Lost;
        let were_dropped = self.dropped_until_ns >= gap.from_ns && self.dropped_until_ns > 0;
        splitter.has_lost_reports |= were_dropped || reports.peek().is_some_and(is_loss);
        splitter.finish()
    }
}

/// What has the CPU outside the kernel's activities.
#[derive(Debug)]
enum Occupant {
    Watcher,
    Other(Cause),
}

/// Splits the time of a gap, report by report.
#[derive(Debug)]
struct GapSplitter {
    gap: Gap,
    watcher: Tid,
    occupant: Occupant,
    /// Nested activities of the kernel, the innermost last.
    activities: Vec<Cause>,
    /// The time before this is split.
    at_ns: u64,
    /// Time by cause, ns.
    parts: Vec<(Cause, u64)>,
    /// Time without any report, ns.
    rest_ns: u64,
    has_lost_reports: bool,
}

impl GapSplitter {
    const fn new(gap: Gap, watcher: Tid) -> Self {
        Self {
            gap,
            watcher,
            occupant: Occupant::Watcher,
            activities: Vec::new(),
            at_ns: gap.from_ns,
            parts: Vec::new(),
            rest_ns: 0,
            has_lost_reports: false,
        }
    }

    fn add_report(&mut self, report: &Report) {
        let until_ns = report.time_ns.clamp(self.at_ns, self.gap.to_ns);
        match &report.what {
            ReportKind::Was(cause, length_ns) => {
                let part_ns = (*length_ns).min(until_ns - self.at_ns);
                self.split_until(until_ns - part_ns);
                self.add_part(cause, part_ns);
                self.at_ns = until_ns;
            }
            ReportKind::Enter(cause) => {
                self.split_until(until_ns);
                if self.activities.len() == MAX_NESTING {
                    self.activities.remove(0);
                }
                self.activities.push(cause.clone());
            }
            ReportKind::Leave(cause) => self.leave(cause, until_ns),
            ReportKind::Run { thread, name } => {
                self.split_until(until_ns);
                self.activities.clear();
                self.occupant = match *thread {
                    thread if thread == self.watcher => Occupant::Watcher,
                    IDLE => Occupant::Other(Cause::Quota),
                    _ => Occupant::Other(Cause::Thread(name.clone())),
                };
            }
            ReportKind::Lost => {
                self.has_lost_reports = true;
                self.split_until(until_ns);
                self.activities.clear();
            }
        }
    }

    fn leave(&mut self, cause: &Cause, until_ns: u64) {
        let mut activities = self.activities.iter();
        let index = activities.rposition(|activity| activity.is_same_activity(cause));
        if let Some(index) = index {
            self.split_until(until_ns);
            // The ends of activities nested in it are missing.
            self.activities.truncate(index);
        } else {
            // Its start is missing: all time since the last report counts for it.
            self.add_part(cause, until_ns - self.at_ns);
            self.at_ns = until_ns;
        }
    }

    /// Counts the time up to this moment for what has the CPU.
    fn split_until(&mut self, until_ns: u64) {
        let part_ns = until_ns.saturating_sub(self.at_ns);
        self.at_ns = self.at_ns.max(until_ns);
        if part_ns == 0 {
            return;
        }
        let cause = match (self.activities.last(), &self.occupant) {
            (Some(activity), _) => activity.clone(),
            (None, Occupant::Other(cause)) => cause.clone(),
            (None, Occupant::Watcher) => {
                self.rest_ns += part_ns;
                return;
            }
        };
        self.add_part(&cause, part_ns);
    }

    fn add_part(&mut self, cause: &Cause, part_ns: u64) {
        let is_known = |(known, _): &&mut (Cause, u64)| known.is_same_activity(cause);
        match self.parts.iter_mut().find(is_known) {
            Some((_, sum)) => *sum += part_ns,
            None => self.parts.push((cause.clone(), part_ns)),
        }
    }

    fn finish(mut self) -> SplitGap {
        self.split_until(self.gap.to_ns);
        self.parts.retain(|(_, part)| *part > 0);
        SplitGap {
            gap: self.gap,
            parts: self.parts,
            rest_ns: self.rest_ns,
            has_lost_reports: self.has_lost_reports,
        }
    }
}

/// A gap, split by the kernel's reports.
#[derive(Debug)]
struct SplitGap {
    gap: Gap,
    /// Time by cause, ns.
    parts: Vec<(Cause, u64)>,
    /// Time without any report, ns.
    rest_ns: u64,
    has_lost_reports: bool,
}

impl SplitGap {
    /// Finds the cause of the unreported time. `max_entry_ns` is the longest time to enter and leave
    /// the kernel.
    fn explain(mut self, max_entry_ns: u64) -> ExplainedGap {
        let largest = self.parts.iter_mut().max_by_key(|(_, part)| *part);
        match largest {
            _ if self.rest_ns == 0 => {}
            Some((_, part)) if self.rest_ns <= max_entry_ns => *part += self.rest_ns,
            _ if self.has_lost_reports => self.parts.push((Cause::Unknown, self.rest_ns)),
            _ => self.parts.push((Cause::HypervisorOrFirmware, self.rest_ns)),
        }
        self.parts
            .sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ExplainedGap {
            gap: self.gap,
            parts: self.parts,
        }
    }
}

#[cfg(test)]
mod tests;
