//! Sums the time that interrupts and softirqs took from CPUs and threads.
//!
//! Each moment counts for the innermost activity of the kernel: the time of an interrupt during a
//! softirq is subtracted from the softirq. Memory does not grow with their number. An activity
//! whose start or end is missing, or during which records were lost, is not counted: all figures
//! are then lower bounds.

use std::collections::BTreeMap;

use super::Tid;
use super::jitter::{Cause, Report, ReportKind};

/// Limits the nesting: a softirq, an interrupt and an NMI can nest; more only if ends are missing.
const MAX_NESTING: usize = 8;

/// A cause's time on a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptShare {
    /// The cause.
    pub cause: Cause,
    /// The CPU.
    pub cpu: usize,
    /// How often it came, and its time.
    pub took: InterruptTime,
}

/// How often an interrupt came, and its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterruptTime {
    /// How often it came.
    pub count: u64,
    /// The time it took, ns.
    pub time_ns: u64,
    /// Of that, while a traced thread had the CPU, ns.
    pub own_ns: u64,
}

/// The interrupts of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterruptSummary {
    /// Each cause on each CPU, in order.
    pub shares: Vec<InterruptShare>,
    /// Number of the kernel's reports.
    pub reports: u64,
    /// How often reports were lost.
    pub gaps: u64,
    /// Starts without an end and ends without a start.
    pub unmatched: u64,
    /// By how much the kernel's own counters grew on these CPUs, for causes that have one.
    pub counted: BTreeMap<Cause, u64>,
}

/// Sums the kernel's reports.
#[derive(Debug, Default)]
pub struct InterruptAccount {
    causes: Vec<Cause>,
    cause_indices: BTreeMap<Cause, usize>,
    cpus: BTreeMap<usize, CpuState>,
    /// By cause and CPU.
    totals: BTreeMap<(usize, usize), InterruptTime>,
    /// Time since the last call of [`assign_threads`](Self::assign_threads): whether a thread is
    /// traced is known a little later.
    new_times: TimesByThread,
    /// The same for the time between the last two calls.
    recent_times: TimesByThread,
    summary: InterruptSummary,
}

/// Time by cause, CPU and interrupted thread, ns.
type TimesByThread = BTreeMap<(usize, usize, Tid), u64>;

#[derive(Debug, Default)]
struct CpuState {
    /// The time before this is counted.
    at_ns: u64,
    /// Nested activities, the innermost last.
    activities: Vec<Activity>,
}

/// An activity that has started.
#[derive(Debug, Clone, Copy)]
struct Activity {
    /// Index in `causes`.
    cause: usize,
    /// The interrupted thread.
    thread: Tid,
    /// Its time without nested activities, ns.
    own_ns: u64,
}

impl CpuState {
    /// Counts the time up to this moment for the innermost activity.
    fn count_until(&mut self, until_ns: u64) {
        if let Some(activity) = self.activities.last_mut() {
            activity.own_ns += until_ns.saturating_sub(self.at_ns);
        }
        self.at_ns = self.at_ns.max(until_ns);
    }
}

impl InterruptAccount {
    /// Adds a report about a CPU, in the kernel's order; `thread` had the CPU then.
    pub fn add_report(&mut self, cpu: usize, thread: Tid, report: &Report) {
        self.summary.reports += 1;
        match &report.what {
            ReportKind::Enter(cause) => {
                let cause = self.cause_index(cause);
                self.enter(cpu, cause, thread, report.time_ns);
            }
            ReportKind::Leave(cause) => self.leave(cpu, cause, thread, report.time_ns),
            ReportKind::Was(cause, length_ns) => {
                let cause = self.cause_index(cause);
                let state = self.cpus.entry(cpu).or_default();
                // Its time counts for none of the activities around it.
                let from_ns = report.time_ns.saturating_sub(*length_ns);
                state.count_until(from_ns);
                state.at_ns = state.at_ns.max(report.time_ns);
                self.add_time(cpu, cause, thread, *length_ns);
            }
            ReportKind::Lost => {
                self.summary.gaps += 1;
                self.cpus.entry(cpu).or_default().activities.clear();
            }
            ReportKind::Run { .. } => {}
        }
    }

    fn enter(&mut self, cpu: usize, cause: usize, thread: Tid, time_ns: u64) {
        let state = self.cpus.entry(cpu).or_default();
        state.count_until(time_ns);
        // An activity nests neither in itself nor in one that interrupts another thread: the end of
        // that one is missing.
        let is_stale = |activity: &Activity| activity.cause == cause || activity.thread != thread;
        let is_full = state.activities.len() >= MAX_NESTING;
        let first_stale = match state.activities.iter().position(is_stale) {
            Some(at) => at,
            None if is_full => 0,
            None => state.activities.len(),
        };
        self.summary.unmatched += (state.activities.len() - first_stale) as u64;
        state.activities.truncate(first_stale);
        state.activities.push(Activity {
            cause,
            thread,
            own_ns: 0,
        });
    }

    fn leave(&mut self, cpu: usize, cause: &Cause, thread: Tid, time_ns: u64) {
        let state = self.cpus.entry(cpu).or_default();
        state.count_until(time_ns);
        let causes = &self.causes;
        let is_it = |activity: &Activity| {
            activity.thread == thread && causes[activity.cause].is_same_activity(cause)
        };
        let Some(at) = state.activities.iter().rposition(is_it) else {
            self.summary.unmatched += 1;
            return;
        };
        let activity = state.activities[at];
        // The ends of the activities nested in it are missing.
        self.summary.unmatched += (state.activities.len() - at - 1) as u64;
        state.activities.truncate(at);
        self.add_time(cpu, activity.cause, thread, activity.own_ns);
    }

    fn add_time(&mut self, cpu: usize, cause: usize, thread: Tid, time_ns: u64) {
        let total = self.totals.entry((cause, cpu)).or_default();
        total.count += 1;
        total.time_ns += time_ns;
        *self.new_times.entry((cause, cpu, thread)).or_default() += time_ns;
    }

    /// The index of a cause; there are at most as many as the kernel has interrupts.
    fn cause_index(&mut self, cause: &Cause) -> usize {
        if let Some(&index) = self.cause_indices.get(cause) {
            return index;
        }
        let index = self.causes.len();
        self.causes.push(cause.clone());
        self.cause_indices.insert(cause.clone(), index);
        index
    }

    /// Counts the time before the last call for traced threads. `is_own` must know the threads that
    /// started before that call, including those that ended since.
    pub fn assign_threads(&mut self, is_own: &dyn Fn(Tid) -> bool) {
        let new_times = std::mem::take(&mut self.new_times);
        let recent_times = std::mem::replace(&mut self.recent_times, new_times);
        for ((cause, cpu, thread), time_ns) in recent_times {
            if let Some(total) = self.totals.get_mut(&(cause, cpu))
                && is_own(thread)
            {
                total.own_ns += time_ns;
            }
        }
    }

    /// The sums of the trace.
    #[must_use]
    pub fn finish(mut self, is_own: &dyn Fn(Tid) -> bool) -> InterruptSummary {
        self.assign_threads(is_own);
        self.assign_threads(is_own);
        let shares = self
            .totals
            .iter()
            .map(|(&(cause, cpu), &took)| InterruptShare {
                cause: self.causes[cause].clone(),
                cpu,
                took,
            });
        let shares = shares.collect();
        InterruptSummary {
            shares,
            ..self.summary
        }
    }
}

#[cfg(test)]
mod tests;
