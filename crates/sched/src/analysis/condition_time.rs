//! Measures how long a condition holds.

/// How long a condition has held, with interruptions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ConditionTime {
    /// `None` while the condition does not hold.
    holds_since: Option<u64>,
    /// Time before that, ns.
    sum_ns: u64,
}

impl ConditionTime {
    pub(super) fn set(&mut self, holds: bool, time_ns: u64) {
        match (self.holds_since, holds) {
            (None, true) => self.holds_since = Some(time_ns),
            (Some(since), false) => {
                self.sum_ns += time_ns.saturating_sub(since);
                self.holds_since = None;
            }
            _ => {}
        }
    }

    /// The time up to this moment, ns.
    pub(super) const fn total_ns(&self, time_ns: u64) -> u64 {
        match self.holds_since {
            Some(since) => self.sum_ns + time_ns.saturating_sub(since),
            None => self.sum_ns,
        }
    }

    /// Clears the sum, but keeps whether the condition holds.
    pub(super) fn restart(&mut self, time_ns: u64) {
        self.holds_since = self.holds_since.map(|_| time_ns);
        self.sum_ns = 0;
    }
}
