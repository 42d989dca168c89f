//! What looks at a thread have seen.

use super::super::Sample;

#[derive(Debug, Clone)]
pub(super) struct Polled {
    pub(super) first: Sample,
    pub(super) last: Sample,
    /// Moves that were seen and that the kernel's count does not have yet, which is read
    /// more rarely.
    ahead: u64,
}

impl Polled {
    pub(super) fn new(first: &Sample) -> Self {
        Self {
            first: first.clone(),
            last: first.clone(),
            ahead: 0,
        }
    }

    /// Of moves that the kernel has counted since the last look, those that nobody saw;
    /// `seen`: moves that this look shows.
    pub(super) const fn unseen(&mut self, counted: u64, seen: u64) -> u64 {
        let seen = self.ahead + seen;
        self.ahead = seen.saturating_sub(counted);
        counted.saturating_sub(seen)
    }
}
