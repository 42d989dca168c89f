//! The first and the latest poll of a thread.

use super::super::Sample;

#[derive(Debug, Clone)]
pub(super) struct Polled {
    pub(super) first: Sample,
    pub(super) last: Sample,
    /// Moves that polls showed but the kernel's count, which is read less often, does not include.
    not_counted_yet: u64,
}

impl Polled {
    pub(super) fn new(first: &Sample) -> Self {
        Self {
            first: first.clone(),
            last: first.clone(),
            not_counted_yet: 0,
        }
    }

    /// The moves that the kernel counted but no poll showed. `counted` is the growth of the
    /// kernel's count since the last poll, `seen` the moves that this poll shows.
    pub(super) const fn count_unseen(&mut self, counted: u64, seen: u64) -> u64 {
        let seen = self.not_counted_yet + seen;
        self.not_counted_yet = seen.saturating_sub(counted);
        counted.saturating_sub(seen)
    }
}
