//! Spin-waits as data, and what they cost: how long a waiter spins before it
//! gives up, and how long it does not look.
//!
//! A waiter's algorithm comes to two numbers: the total of PAUSEs before it
//! parks, and the longest run of them without a look at the lock (the *blind
//! gap*). With the latency of PAUSE both are times. Nothing here executes
//! anything.

pub mod algorithm;
pub mod loops;

use std::time::Duration;

/// An algorithm that repeats rounds of growing length, looking at the lock only
/// between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Name, as `netfx_awarelock`.
    pub id: &'static str,
    /// Times that the rounds are gone through.
    pub repetitions: u64,
    /// PAUSEs of the first round.
    pub first: u64,
    /// Growth from round to round.
    pub factor: u64,
    /// Rounds go on while they are below this many PAUSEs times the number of
    /// CPUs.
    pub limit_per_cpu: u64,
}

/// Monitor of the .NET Framework and of `CoreCLR` before 2.1 (`AwareLock`):
/// rounds of 50 PAUSEs that triple while below 20,000 times the number of CPUs,
/// ten times over (dotnet/coreclr, `eeconfig.cpp` and `syncblk.inl`).
pub const NETFX_AWARELOCK: Backoff = Backoff {
    id: "netfx_awarelock",
    repetitions: 10,
    first: 50,
    factor: 3,
    limit_per_cpu: 20_000,
};

/// What the Monitor of `CoreCLR` 2.1 spins at most before it waits in the
/// kernel, whatever the processor: 196 units of 37 ns, measured at start
/// (dotnet/runtime, `yieldprocessornormalized.h`).
pub const CORECLR_MONITOR_SPIN: Duration = Duration::from_nanos(7_252);

impl Backoff {
    /// Rounds of one repetition on a machine with so many CPUs.
    #[must_use]
    pub fn rounds(&self, cpus: u64) -> Vec<u64> {
        let limit = self.limit_per_cpu.saturating_mul(cpus);
        std::iter::successors(Some(self.first), |round| round.checked_mul(self.factor))
            .take_while(|&round| round < limit)
            .collect()
    }

    /// PAUSEs before it parks.
    #[must_use]
    pub fn total_pauses(&self, cpus: u64) -> u64 {
        self.rounds(cpus).iter().sum::<u64>() * self.repetitions
    }

    /// Most PAUSEs between two looks.
    #[must_use]
    pub fn blind_gap_pauses(&self, cpus: u64) -> u64 {
        self.rounds(cpus).last().copied().unwrap_or(0)
    }

    /// The moments at which it looks, as PAUSEs since it began to wait; the
    /// first look, before any PAUSE, is not among them.
    pub fn looks(&self, cpus: u64) -> impl Iterator<Item = u64> {
        let rounds = self.rounds(cpus);
        let many = usize::try_from(self.repetitions).unwrap_or(usize::MAX);
        let all = std::iter::repeat_n(rounds, many).flatten();
        all.scan(0u64, |sum, round| {
            *sum += round;
            Some(*sum)
        })
    }

    /// When a waiter sees a lock that becomes free `free_after` it began to
    /// wait; `None` where it has parked by then.
    #[must_use]
    pub fn seen_after(&self, cpus: u64, pause_ns: f64, free_after: Duration) -> Option<Duration> {
        if free_after.is_zero() {
            return Some(Duration::ZERO);
        }
        self.looks(cpus)
            .map(|pauses| Duration::from_secs_f64(pauses as f64 * pause_ns * 1e-9))
            .find(|&look| look >= free_after)
    }
}

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
    pub fn spinning(&self, backoff: &Backoff, cpus: u64, pause_ns: f64) -> Duration {
        let free_after = self.hold.saturating_sub(self.delay);
        let seen = backoff.seen_after(cpus, pause_ns, free_after);
        (self.delay + seen.unwrap_or(free_after)) * self.items
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

    #[track_caller]
    fn total_ms(cpus: u64, cycles: f64, ghz: f64, expected: f64) {
        let pauses = NETFX_AWARELOCK.total_pauses(cpus);
        let found = pauses as f64 * cycles / ghz * 1e-6;
        assert!((found - expected).abs() < 0.005, "{found} for {expected}");
    }

    #[test]
    fn totals_are_those_of_the_formula() {
        total_ms(24, 11.0, 2.8, 19.33);
        total_ms(24, 140.0, 2.8, 246.03);
        total_ms(48, 140.0, 2.8, 246.03);
        let totals = [
            (1, 182_000),
            (8, 1_640_000),
            (49, 4_920_500),
            (50, 14_762_000),
        ];
        for (cpus, expected) in totals {
            assert_eq!(NETFX_AWARELOCK.total_pauses(cpus), expected, "{cpus}");
            // k = ceil(log3(400 n)) rounds.
            let k = u32::try_from(NETFX_AWARELOCK.rounds(cpus).len()).unwrap();
            assert!(3u64.pow(k) >= 400 * cpus && 3u64.pow(k - 1) < 400 * cpus);
            assert_eq!(NETFX_AWARELOCK.blind_gap_pauses(cpus), 50 * 3u64.pow(k - 1));
            assert_eq!(NETFX_AWARELOCK.looks(cpus).last(), Some(expected));
        }
    }

    #[test]
    fn items_wait_for_the_first_look_after_the_release() {
        let taking = |delay| {
            let run = ProducerConsumer {
                items: 100,
                hold: Duration::from_millis(10),
                delay: Duration::from_millis(delay),
            };
            run.spinning(&NETFX_AWARELOCK, 24, 43.0).as_secs_f64()
        };
        let expected = [2.22, 2.32, 1.01, 1.11, 1.21, 1.31, 1.41, 1.03, 1.13];
        for (delay, expected) in (1..=9).zip(expected) {
            assert!(
                (taking(delay) - expected).abs() < 0.006,
                "{delay}: {}",
                taking(delay)
            );
        }
    }

    #[test]
    fn a_waiter_that_parks_is_late_by_a_wake_up() {
        let run = ProducerConsumer {
            items: 100,
            hold: Duration::from_millis(10),
            delay: Duration::from_millis(4),
        };
        let time = run.parking(CORECLR_MONITOR_SPIN, Duration::from_micros(50));
        assert_eq!(time, Duration::from_micros(100 * 10_050));
        assert_eq!(
            NETFX_AWARELOCK.seen_after(1, 1.0, Duration::from_secs(1)),
            None
        );
    }
}
