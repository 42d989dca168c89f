//! Turns gaps and the kernel's reports of a CPU into gaps with their causes.
//!
//! The order of reports is not trusted: an end without a beginning, or a beginning without an end,
//! affects the parts of one gap only, since a thread that reads the clock proves that nothing else
//! is on its CPU.

use std::collections::VecDeque;

use super::{Cause, ExplainedGap, Gap, Step, StepKind};
use crate::analysis::histogram::Histogram;
use crate::{IDLE, Tid};

/// Both clocks are read about 100 ns apart from what they time.
const SLACK_NS: u64 = 1_000;
/// Limits the reports of a CPU without gaps.
const MAX_STEPS: usize = 1 << 16;
/// Entry and exit may take this many times their usual length: half a microsecond on most machines;
/// 17 µs were seen on a virtual one whose hypervisor emulates interrupt delivery.
const USUAL_ENTRIES: u64 = 2;
/// Fewer gaps do not show what is usual.
const MIN_ENTRIES: u64 = 8;
/// Limits the nesting: softirq, interrupt and NMI, and more if ends are missing.
const MAX_NESTING: usize = 16;

/// What is known of a CPU besides its gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knowledge {
    /// The kernel's activities are reported.
    Reported,
    /// Nothing is.
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
    steps: VecDeque<Step>,
    gaps: VecDeque<Gap>,
    /// Reports before this moment were dropped, ns.
    given_up_ns: u64,
    /// Unreported time in gaps that have at least one report.
    entries: Histogram,
    swept: Vec<Swept>,
}

impl Explainer {
    /// For the CPU on which this thread reads the clock.
    #[must_use]
    pub fn new(watcher: Tid, knowledge: Knowledge, threshold_ns: u64) -> Self {
        Self {
            watcher,
            knowledge,
            threshold_ns,
            steps: VecDeque::new(),
            gaps: VecDeque::new(),
            given_up_ns: 0,
            entries: Histogram::new(),
            swept: Vec::new(),
        }
    }

    /// The usual time to enter and leave the kernel, ns: the median of the gaps so far; `None` if
    /// too few had reports.
    #[must_use]
    pub fn entry_ns(&self) -> Option<u64> {
        let usual = self.entries.quantile(0.5);
        usual.filter(|_| self.entries.total() >= MIN_ENTRIES)
    }

    /// Takes a report. Those of a CPU are nearly in order: an interrupt during the writing of one
    /// is written first.
    pub fn step(&mut self, step: Step) {
        let later = |other: &&Step| other.time_ns > step.time_ns;
        let behind = self.steps.iter().rev().take_while(later).count();
        self.steps.insert(self.steps.len() - behind, step);
        while self.steps.len() > MAX_STEPS {
            let oldest = self.steps.pop_front();
            self.given_up_ns = oldest.map_or(self.given_up_ns, |step| step.time_ns);
        }
    }

    /// Takes a gap; they come in order.
    pub fn take_gap(&mut self, gap: Gap) {
        self.gaps.push_back(gap);
    }

    /// Explains the gaps that ended by this moment; all reports up to it must have come.
    pub fn settle(&mut self, until_ns: u64, explained: &mut Vec<ExplainedGap>) {
        while let Some(gap) = self.gaps.front().copied() {
            if gap.to_ns.saturating_add(SLACK_NS) > until_ns {
                break;
            }
            self.gaps.pop_front();
            let swept = self.sweep(gap);
            if !swept.parts.is_empty() && !swept.is_blind {
                self.entries.add(swept.rest_ns);
            }
            self.swept.push(swept);
        }
        let usual_ns = self.entry_ns().unwrap_or(0);
        let entry_ns = self
            .threshold_ns
            .max(usual_ns.saturating_mul(USUAL_ENTRIES));
        explained.extend(self.swept.drain(..).map(|swept| swept.explain(entry_ns)));
    }

    /// Reports near the end are kept: they may belong to the next gap.
    fn sweep(&mut self, gap: Gap) -> Swept {
        if self.knowledge == Knowledge::Nothing {
            return Swept {
                gap,
                parts: Vec::new(),
                rest_ns: gap.length_ns(),
                is_blind: true,
            };
        }
        let first = gap.from_ns.saturating_sub(SLACK_NS);
        let last = gap.to_ns.saturating_add(SLACK_NS);
        while self.steps.front().is_some_and(|step| step.time_ns < first) {
            self.steps.pop_front();
        }
        let mut sweep = Sweep::new(gap, self.watcher);
        let mut steps = self.steps.iter().peekable();
        while let Some(step) = steps.next_if(|step| step.time_ns <= last) {
            sweep.step(step);
        }
        // Reports lost before the next one may have been of this gap.
        let is_lost = |step: &&Step| step.what == StepKind::Lost;
        let was_given_up = self.given_up_ns >= gap.from_ns && self.given_up_ns > 0;
        sweep.is_blind |= was_given_up || steps.peek().is_some_and(is_lost);
        sweep.finish()
    }
}

/// What has the CPU if the kernel does nothing else.
#[derive(Debug)]
enum Holder {
    Watcher,
    Other(Cause),
}

/// Processes a gap, report by report.
#[derive(Debug)]
struct Sweep {
    gap: Gap,
    watcher: Tid,
    holder: Holder,
    inside: Vec<Cause>,
    /// The time up to here has been distributed.
    at_ns: u64,
    parts: Vec<(Cause, u64)>,
    /// Time without any report.
    rest_ns: u64,
    /// Something was lost.
    is_blind: bool,
}

impl Sweep {
    const fn new(gap: Gap, watcher: Tid) -> Self {
        Self {
            gap,
            watcher,
            holder: Holder::Watcher,
            inside: Vec::new(),
            at_ns: gap.from_ns,
            parts: Vec::new(),
            rest_ns: 0,
            is_blind: false,
        }
    }

    fn step(&mut self, step: &Step) {
        let until_ns = step.time_ns.clamp(self.at_ns, self.gap.to_ns);
        match &step.what {
            StepKind::Was(cause, length_ns) => {
                let part_ns = (*length_ns).min(until_ns - self.at_ns);
                self.pass(until_ns - part_ns);
                self.charge(cause, part_ns);
                self.at_ns = until_ns;
            }
            StepKind::Enter(cause) => {
                self.pass(until_ns);
                if self.inside.len() == MAX_NESTING {
                    self.inside.remove(0);
                }
                self.inside.push(cause.clone());
            }
            StepKind::Leave(cause) => self.leave(cause, until_ns),
            StepKind::Run { thread, name } => {
                self.pass(until_ns);
                self.inside.clear();
                self.holder = match *thread {
                    thread if thread == self.watcher => Holder::Watcher,
                    IDLE => Holder::Other(Cause::Quota),
                    _ => Holder::Other(Cause::Thread(name.clone())),
                };
            }
            StepKind::Lost => {
                self.is_blind = true;
                self.pass(until_ns);
                self.inside.clear();
            }
        }
    }

    fn leave(&mut self, cause: &Cause, until_ns: u64) {
        let index = self.inside.iter().rposition(|inside| inside.is(cause));
        if let Some(index) = index {
            self.pass(until_ns);
            // Activities above it ended unreported.
            self.inside.truncate(index);
        } else {
            // Its beginning is missing: it is the last thing that happened.
            self.charge(cause, until_ns - self.at_ns);
            self.at_ns = until_ns;
        }
    }

    /// Distributes the time up to here.
    fn pass(&mut self, until_ns: u64) {
        let part_ns = until_ns.saturating_sub(self.at_ns);
        self.at_ns = self.at_ns.max(until_ns);
        if part_ns == 0 {
            return;
        }
        let cause = match (self.inside.last(), &self.holder) {
            (Some(inside), _) => inside.clone(),
            (None, Holder::Other(cause)) => cause.clone(),
            (None, Holder::Watcher) => {
                self.rest_ns += part_ns;
                return;
            }
        };
        self.charge(&cause, part_ns);
    }

    fn charge(&mut self, cause: &Cause, part_ns: u64) {
        match self.parts.iter_mut().find(|(known, _)| known.is(cause)) {
            Some((_, sum)) => *sum += part_ns,
            None => self.parts.push((cause.clone(), part_ns)),
        }
    }

    fn finish(mut self) -> Swept {
        self.pass(self.gap.to_ns);
        self.parts.retain(|(_, part)| *part > 0);
        Swept {
            gap: self.gap,
            parts: self.parts,
            rest_ns: self.rest_ns,
            is_blind: self.is_blind,
        }
    }
}

/// A gap with the kernel's reports of it.
#[derive(Debug)]
struct Swept {
    gap: Gap,
    parts: Vec<(Cause, u64)>,
    /// Time without any report.
    rest_ns: u64,
    /// Something was lost.
    is_blind: bool,
}

impl Swept {
    /// `entry_ns`: the longest time to enter and leave the kernel.
    fn explain(mut self, entry_ns: u64) -> ExplainedGap {
        let largest = self.parts.iter_mut().max_by_key(|(_, part)| *part);
        match largest {
            _ if self.rest_ns == 0 => {}
            Some((_, part)) if self.rest_ns <= entry_ns => *part += self.rest_ns,
            _ if self.is_blind => self.parts.push((Cause::Unknown, self.rest_ns)),
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
