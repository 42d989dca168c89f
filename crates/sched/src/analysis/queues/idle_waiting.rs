//! Sums of waits beside idle CPUs.

use super::super::super::summary::{EPISODE_NS, IdleWaiting};
use super::FreeCpuCause;

impl IdleWaiting {
    pub(super) fn add(&mut self, other: Self) {
        self.scheduler += other.scheduler;
        self.mask += other.mask;
        self.episodes += other.episodes;
        self.longest = self.longest.max(other.longest);
    }

    /// Adds a matched part if it is long enough for an episode.
    pub(super) fn add_part(&mut self, length_ns: u64, cause: FreeCpuCause) {
        if length_ns < EPISODE_NS {
            return;
        }
        self.episodes += 1;
        self.longest = self.longest.max(length_ns);
        match cause {
            FreeCpuCause::Scheduler => self.scheduler += length_ns,
            FreeCpuCause::Mask => self.mask += length_ns,
        }
    }
}
