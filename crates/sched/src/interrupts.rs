//! Time that interrupts and softirqs took of CPUs and threads.
//!
//! Each moment belongs to the innermost activity of the kernel: an interrupt during a softirq is
//! subtracted from it. Memory does not grow with their number. It refuses to guess: an activity
//! without beginning or end, or with a gap in its records, is not counted, so that all figures are
//! then lower bounds.

use std::collections::BTreeMap;

use super::Tid;
use super::jitter::{Cause, Step, StepKind};

/// A softirq, an interrupt and an NMI can nest; more only if ends are missing.
const MAX_NESTING: usize = 8;

/// A cause's time on a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptShare {
    /// The cause.
    pub cause: Cause,
    /// The CPU.
    pub cpu: usize,
    /// How much.
    pub took: InterruptTime,
}

/// Count and time of something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InterruptTime {
    /// How often it came.
    pub count: u64,
    /// The time it took, ns.
    pub time_ns: u64,
    /// Of that, while a traced thread had the CPU, ns.
    pub own_ns: u64,
}

/// The whole trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterruptSummary {
    /// Each cause on each CPU, in order.
    pub shares: Vec<InterruptShare>,
    /// Number of the kernel's reports.
    pub reports: u64,
    /// Number of losses of reports.
    pub gaps: u64,
    /// Beginnings without an end and ends without a beginning.
    pub unmatched: u64,
    /// Increase of the kernel's own counters on these CPUs, of causes that have one.
    pub counted: BTreeMap<Cause, u64>,
}

/// Sums the kernel's reports.
#[derive(Debug, Default)]
pub struct InterruptAccount {
    causes: Vec<Cause>,
    places: BTreeMap<Cause, usize>,
    cpus: BTreeMap<usize, CpuState>,
    totals: BTreeMap<(usize, usize), InterruptTime>,
    /// Time by thread since the last call of [`settle`](Self::settle), ns: its owner is known a
    /// little later.
    fresh: Shared,
    /// The same for the time before that.
    recent: Shared,
    summary: InterruptSummary,
}

/// By cause, CPU and interrupted thread.
type Shared = BTreeMap<(usize, usize, Tid), u64>;

#[derive(Debug, Default)]
struct CpuState {
    at_ns: u64,
    inside: Vec<Inside>,
}

/// An activity that has begun.
#[derive(Debug, Clone, Copy)]
struct Inside {
    cause: usize,
    thread: Tid,
    /// Without nested activities, ns.
    own_ns: u64,
}

impl CpuState {
    /// Adds the time up to here to the innermost activity.
    fn pass(&mut self, until_ns: u64) {
        if let Some(inside) = self.inside.last_mut() {
            inside.own_ns += until_ns.saturating_sub(self.at_ns);
        }
        self.at_ns = self.at_ns.max(until_ns);
    }
}

impl InterruptAccount {
    /// Takes a report of a CPU, in the kernel's order; `thread` had the CPU then.
    pub fn take(&mut self, cpu: usize, thread: Tid, step: &Step) {
        self.summary.reports += 1;
        match &step.what {
            StepKind::Enter(cause) => {
                let cause = self.place(cause);
                self.enter(cpu, cause, thread, step.time_ns);
            }
            StepKind::Leave(cause) => self.leave(cpu, cause, thread, step.time_ns),
            StepKind::Was(cause, length_ns) => {
                let cause = self.place(cause);
                let state = self.cpus.entry(cpu).or_default();
                // Its time belongs to none of the activities around it.
                let from_ns = step.time_ns.saturating_sub(*length_ns);
                state.pass(from_ns);
                state.at_ns = state.at_ns.max(step.time_ns);
                self.charge(cpu, cause, thread, *length_ns);
            }
            StepKind::Lost => {
                self.summary.gaps += 1;
                self.cpus.entry(cpu).or_default().inside.clear();
            }
            StepKind::Run { .. } => {}
        }
    }

    fn enter(&mut self, cpu: usize, cause: usize, thread: Tid, time_ns: u64) {
        let state = self.cpus.entry(cpu).or_default();
        state.pass(time_ns);
        // Nothing nests in itself, nor in an interruption of another thread.
        let stale = |inside: &Inside| inside.cause == cause || inside.thread != thread;
        let is_full = state.inside.len() >= MAX_NESTING;
        let ended = match state.inside.iter().position(stale) {
            Some(at) => at,
            None if is_full => 0,
            None => state.inside.len(),
        };
        self.summary.unmatched += (state.inside.len() - ended) as u64;
        state.inside.truncate(ended);
        state.inside.push(Inside {
            cause,
            thread,
            own_ns: 0,
        });
    }

    fn leave(&mut self, cpu: usize, cause: &Cause, thread: Tid, time_ns: u64) {
        let state = self.cpus.entry(cpu).or_default();
        state.pass(time_ns);
        let causes = &self.causes;
        let is_it = |inside: &Inside| inside.thread == thread && causes[inside.cause].is(cause);
        let Some(at) = state.inside.iter().rposition(is_it) else {
            self.summary.unmatched += 1;
            return;
        };
        let inside = state.inside[at];
        // The activities above it ended unreported.
        self.summary.unmatched += (state.inside.len() - at - 1) as u64;
        state.inside.truncate(at);
        self.charge(cpu, inside.cause, thread, inside.own_ns);
    }

    fn charge(&mut self, cpu: usize, cause: usize, thread: Tid, time_ns: u64) {
        let total = self.totals.entry((cause, cpu)).or_default();
        total.count += 1;
        total.time_ns += time_ns;
        *self.fresh.entry((cause, cpu, thread)).or_default() += time_ns;
    }

    /// The number of a cause; there are as many as the kernel has interrupts.
    fn place(&mut self, cause: &Cause) -> usize {
        if let Some(&place) = self.places.get(cause) {
            return place;
        }
        let place = self.causes.len();
        self.causes.push(cause.clone());
        self.places.insert(cause.clone(), place);
        place
    }

    /// Attributes the reports before the last call to threads: `is_own` must know those that began
    /// by that call, and those that ended since.
    pub fn settle(&mut self, is_own: &dyn Fn(Tid) -> bool) {
        let fresh = std::mem::take(&mut self.fresh);
        for ((cause, cpu, thread), time_ns) in std::mem::replace(&mut self.recent, fresh) {
            if let Some(total) = self.totals.get_mut(&(cause, cpu))
                && is_own(thread)
            {
                total.own_ns += time_ns;
            }
        }
    }

    /// Ends the account.
    #[must_use]
    pub fn finish(mut self, is_own: &dyn Fn(Tid) -> bool) -> InterruptSummary {
        self.settle(is_own);
        self.settle(is_own);
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
