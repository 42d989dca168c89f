//! A thread's state, and its activity since the last frame.

use super::{Sample, Tid};
use pinwise_topology::CpuSet;

/// The known state of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    /// No event yet, or its state was lost.
    Unreported,
    Running {
        cpu: u32,
    },
    Queued {
        since_ns: u64,
    },
    /// Running or queued: polling does not show which.
    Runnable,
    Waiting,
    Ended,
}

/// A thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) process: Option<Tid>,
    pub(super) name: Option<Box<str>>,
    pub(super) is_followed: bool,
    pub(super) state: State,
    /// Its present or last CPU.
    pub(super) cpu: Option<u32>,
    pub(super) allowed: Option<CpuSet>,
    /// Its latest poll, after its time in ns.
    pub(super) last: Option<(u64, Sample)>,
    pub(super) tally: Tally,
}

/// Sums since the last frame.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) run_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) switches: u64,
    pub(super) migrations: u64,
    /// CPUs and the time on them, ns.
    pub(super) used: Vec<(u32, u64)>,
    /// Time between the polls whose differences are summed.
    pub(super) polled_ns: u64,
    /// Polls could not read these figures.
    pub(super) is_wait_unknown: bool,
    pub(super) is_switching_unknown: bool,
}

impl Tally {
    pub(super) fn add_run_time(&mut self, cpu: u32, ran_ns: u64) {
        if ran_ns == 0 {
            return;
        }
        self.run_ns = self.run_ns.saturating_add(ran_ns);
        match self.used.iter_mut().find(|(used, _)| *used == cpu) {
            Some((_, time)) => *time = time.saturating_add(ran_ns),
            None => self.used.push((cpu, ran_ns)),
        }
    }

    /// Adds the time up to now if the thread was queued.
    pub(super) const fn add_queued_time(&mut self, state: State, at: u64) {
        if let State::Queued { since_ns } = state {
            self.wait_ns = self.wait_ns.saturating_add(at.saturating_sub(since_ns));
        }
    }
}

impl Thread {
    /// Counts the time queued so far.
    pub(super) fn count_queued_time(&mut self, now_ns: u64) {
        self.tally.add_queued_time(self.state, now_ns);
        if let State::Queued { since_ns } = &mut self.state {
            *since_ns = now_ns.max(*since_ns);
        }
    }

    /// Counts the changes since the thread's last poll; returns its number of moves between CPUs,
    /// as far as known.
    pub(super) fn count_since_poll(&mut self, at: u64, sample: &Sample) -> u64 {
        let before = self.last.replace((at, sample.clone()));
        let Some((before_ns, before)) = before else {
            return 0;
        };
        let tally = &mut self.tally;
        tally.polled_ns = tally.polled_ns.saturating_add(at.saturating_sub(before_ns));
        tally.add_run_time(sample.cpu, sample.run_ns.saturating_sub(before.run_ns));
        match growth(before.wait_ns, sample.wait_ns) {
            Some(wait) => tally.wait_ns = tally.wait_ns.saturating_add(wait),
            None => tally.is_wait_unknown = true,
        }
        let voluntary = growth(before.voluntary, sample.voluntary);
        match (voluntary, growth(before.involuntary, sample.involuntary)) {
            (Some(a), Some(b)) => {
                tally.switches = tally.switches.saturating_add(a).saturating_add(b);
            }
            _ => tally.is_switching_unknown = true,
        }
        let seen = u64::from(before.cpu != sample.cpu);
        // The kernel's count is read less often, and then includes all moves.
        let moved = growth(before.migrations, sample.migrations).unwrap_or(seen);
        tally.migrations = tally.migrations.saturating_add(moved);
        moved
    }

    /// Resets the sums; returns whether the thread is to be kept. If there are too many threads,
    /// only those are kept that ran, or are on a CPU and will have another event.
    pub(super) fn start_interval(&mut self, is_full: bool) -> bool {
        let tally = std::mem::take(&mut self.tally);
        let did_nothing = tally.run_ns == 0 && !matches!(self.state, State::Running { .. });
        self.state != State::Ended && !(is_full && did_nothing)
    }
}

fn growth(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(before?))
}
