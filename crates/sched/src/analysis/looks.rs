//! What polling has seen of a thread.

use super::super::Sample;

#[derive(Debug, Clone)]
pub(super) struct Polled {
    pub(super) first: Sample,
    pub(super) last: Sample,
    /// Moves seen but not yet in the kernel's count, which is read more rarely.
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

    /// Of moves that the kernel has counted since the last poll, those that no event showed;
    /// `seen`: moves that this poll shows.
    pub(super) const fn count_unseen(&mut self, counted: u64, seen: u64) -> u64 {
        let seen = self.ahead + seen;
        self.ahead = seen.saturating_sub(counted);
        counted.saturating_sub(seen)
    }
}
