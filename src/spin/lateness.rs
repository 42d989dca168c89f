//! How late a waiter is that looks only now and then: the producer/consumer
//! experiment of the third field report.
//!
//! It predicts and runs nothing.

use std::time::Duration;

use super::algorithm::Wait;

/// A worker that holds a lock for `hold` per item, and a sender that wants it
/// `delay` after the worker took it, item after item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerConsumer {
    /// Items.
    pub items: u32,
    /// How long the lock is held for each.
    pub hold: Duration,
    /// How long after that began the sender comes.
    pub delay: Duration,
}

impl ProducerConsumer {
    /// How long all items take with a waiter that spins so: each costs the
    /// delay, and then what passes until the first look at or after the
    /// release.
    #[must_use]
    pub fn spinning(&self, wait: &Wait, hint_ns: f64) -> Duration {
        let free_after = self.hold.saturating_sub(self.delay);
        let seen = wait.seen_after(hint_ns, free_after);
        let each = self.delay.saturating_add(seen.unwrap_or(free_after));
        each.saturating_mul(self.items)
    }

    /// The same with a waiter that spins for so long at most and is then woken
    /// by the release, `wake` later.
    #[must_use]
    pub fn parking(&self, spin: Duration, wake: Duration) -> Duration {
        let free_after = self.hold.saturating_sub(self.delay);
        let late = if free_after > spin { wake } else { spin };
        (self.delay + free_after + late) * self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spin::algorithm::{Case, Setting};
    use crate::spin::table::{CORECLR_MONITOR, NETFX_AWARELOCK};

    fn run(delay_ms: u64) -> ProducerConsumer {
        ProducerConsumer {
            items: 100,
            hold: Duration::from_millis(10),
            delay: Duration::from_millis(delay_ms),
        }
    }

    #[test]
    fn items_wait_for_the_first_look_after_the_release() {
        let setting = Setting {
            cpus: 24,
            hint_ns: 43.0,
        };
        let wait = NETFX_AWARELOCK.wait(&setting, Case::Typical).unwrap();
        let expected = [2.22, 2.32, 1.01, 1.11, 1.21, 1.31, 1.41, 1.03, 1.13];
        for (delay, expected) in (1..=9).zip(expected) {
            let taking = run(delay).spinning(&wait, 43.0).as_secs_f64();
            assert!((taking - expected).abs() < 0.006, "{delay}: {taking}");
        }
    }

    #[test]
    fn a_waiter_that_parks_is_late_by_a_wake_up() {
        let setting = Setting {
            cpus: 24,
            hint_ns: 37.0,
        };
        let wait = CORECLR_MONITOR.wait(&setting, Case::Typical).unwrap();
        let spin = wait.total(37.0).unwrap();
        let time = run(4).parking(spin, Duration::from_micros(50));
        assert_eq!(time, Duration::from_micros(100 * 10_050));
    }
}
