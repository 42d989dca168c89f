//! Waiting by count: runs of spin-wait hints with a look after each; a hint may be given the length
//! that it has on another processor.
//!
//! A hint that must take longer gets a chain of dependent additions beside it, fenced so that the
//! two do not overlap; one that must be shorter is a chain alone. Everything is executed by count,
//! never until a moment: if the core's clock changes, so does the wait, as on any processor.
//! Interrupts are part of a hint's length, since they are part of every long wait: 0.5 to 1.5 % in
//! a virtual machine with 250 ticks a second. It does not decide what a wait should take.

use super::clock::Clock;
use super::hint::{MAX_ADDITIONS, run_chained, run_plain, run_stretched};

/// Longer hints consist of several parts, so that no part needs more additions than there are, even
/// at 6 GHz.
const LONGEST_PART_NS: f64 = 80.0;
/// The shortest hint: two cycles at 6 GHz. Shorter ones would make bursts of millions of hints.
const SHORTEST_PART_NS: f64 = 0.3;
/// A burst of calibration: long compared with reading the clock twice (20 to 50 ns), short compared
/// with the time between two interrupts (1 to 4 ms).
const BURST_NS: f64 = 40_000.0;
/// The interval at which a wait reads the clock to detect stops.
const WATCH_NS: f64 = 20_000.0;
/// A part of a wait that exceeds its length by this much was stopped. In a busy virtual machine
/// timer interrupts take 15 to 100 µs, time slices of other programs a millisecond and more.
const STOP_NS: f64 = 100_000.0;
/// A hint may take this factor of its calibrated length and count as slow rather than stopped:
/// PAUSE of a Zen 3 was seen to have two levels 12 % apart.
const STATES: f64 = 1.3;
/// Bursts from which a hint's length is measured.
const BURSTS: usize = 9;
/// Bursts that measure the cost of interrupts: 8 ms, two ticks of all kernels except those with 100
/// Hz.
const LONG_BURSTS: usize = 201;
/// Corrections until a hint has the wanted length: the first comes within 2 % of it, the second
/// within 0.1 %.
const CORRECTIONS: usize = 4;

/// The composition of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintKind {
    /// This processor's own hint.
    Own,
    /// The hint plus additions.
    Stretched,
    /// Additions only.
    Shortened,
}

/// Hints of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Hints {
    kind: HintKind,
    /// A hint's parts; more than one if it is long.
    parts: u32,
    /// Additions of a part; the fraction is spread over the parts.
    additions: f64,
    /// The fraction of an addition still to be made.
    owed: f64,
    /// Wanted length of a hint, ns.
    wanted_ns: f64,
    /// Last measured length of a hint without interrupts, ns.
    median_ns: f64,
    /// Ratio of a hint's length with all interrupts to that without.
    overhead: f64,
    /// The number of observations of which the overhead is the mean.
    observations: u32,
    /// A core cycle at calibration, ns.
    cycle_ns: f64,
}

impl Hints {
    /// This processor's own hints, measured.
    #[must_use]
    pub fn own(clock: &Clock) -> Self {
        let mut hints = Self::uncalibrated(HintKind::Own, 50.0);
        hints.wanted_ns = hints.measure_ns(clock);
        hints.median_ns = hints.wanted_ns;
        hints
    }

    /// Hints of one part without additions, before any measurement.
    const fn uncalibrated(kind: HintKind, wanted_ns: f64) -> Self {
        Self {
            kind,
            parts: 1,
            additions: 0.0,
            owed: 0.0,
            wanted_ns,
            median_ns: wanted_ns,
            overhead: 1.0,
            observations: 0,
            cycle_ns: 0.3,
        }
    }

    /// Hints that take this many ns. `None` if no hint can be that short here: a chain takes at
    /// least a few cycles.
    #[must_use]
    pub fn lasting(wanted_ns: f64, clock: &Clock) -> Option<Self> {
        let parts = (wanted_ns / LONGEST_PART_NS).ceil().max(1.0);
        let part_ns = wanted_ns / parts;
        if part_ns < SHORTEST_PART_NS {
            return None;
        }
        let mut shortened = Self::uncalibrated(HintKind::Shortened, part_ns);
        let least_ns = shortened.measure_ns(clock);
        let far = f64::from(MAX_ADDITIONS);
        shortened.additions = far;
        // Not a straight line from 0: every round takes some cycles.
        shortened.cycle_ns = shortened.measure_ns(clock) / far;
        if part_ns < least_ns + 2.0 * shortened.cycle_ns {
            return None;
        }
        let mut stretched = Self::uncalibrated(HintKind::Stretched, part_ns);
        let mut hints = if stretched.measure_ns(clock) <= part_ns {
            stretched.cycle_ns = shortened.cycle_ns;
            stretched
        } else {
            shortened.additions = part_ns / shortened.cycle_ns;
            shortened
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a few parts at least one; a cast of more saturates"
        )]
        let whole = parts as u32;
        hints.parts = whole;
        hints.wanted_ns = wanted_ns;
        for _ in 0..CORRECTIONS {
            hints.correct(clock);
        }
        Some(hints)
    }

    /// Their composition.
    #[must_use]
    pub const fn kind(&self) -> HintKind {
        self.kind
    }

    /// Measures the present length of a hint, ns, without interrupts: the median of some bursts.
    pub fn measure_ns(&mut self, clock: &Clock) -> f64 {
        let mut bursts = [0.0; BURSTS];
        self.time_bursts(clock, &mut bursts);
        take_median(&mut bursts)
    }

    /// Observes for 8 ms what interrupts add to hints, and returns the length of one with that, ns.
    /// Nothing is learnt if `is_undisturbed`, asked afterwards, says that other threads had the CPU
    /// meanwhile.
    pub fn observe_ns(&mut self, clock: &Clock, is_undisturbed: impl FnOnce() -> bool) -> f64 {
        let mut bursts = [0.0; LONG_BURSTS];
        self.time_bursts(clock, &mut bursts);
        self.median_ns = take_median(&mut bursts);
        if is_undisturbed() {
            let hints = count_hints(BURST_NS / self.wanted_ns) as f64;
            let stop_ns = self.median_ns + STOP_NS / hints;
            let kept = bursts.iter().filter(|&&ns| ns < stop_ns);
            let (sum, count) = kept.fold((0.0, 0.0), |(sum, count), ns| (sum + ns, count + 1.0));
            self.learn(sum / count);
        }
        self.median_ns * self.overhead
    }

    /// Learns from the length of a hint in a long wait, ns, including interrupts.
    pub fn learn(&mut self, taken_ns: f64) {
        let found = taken_ns / self.median_ns;
        self.observations += 1;
        self.overhead += (found - self.overhead) / f64::from(self.observations);
    }

    /// Measures the length of a hint and corrects it, interrupts included; this processor's own
    /// hints stay unchanged. Returns the measured length, without interrupts, ns.
    pub fn correct(&mut self, clock: &Clock) -> f64 {
        let found_ns = self.measure_ns(clock);
        self.median_ns = found_ns;
        let missing_ns = self.wanted_ns / self.overhead - found_ns;
        // No clock changes by more than that: other threads had the CPU most of the time.
        let is_credible = self.observations == 0 || missing_ns.abs() < 0.3 * self.wanted_ns;
        if self.kind != HintKind::Own && is_credible {
            let missing = missing_ns / f64::from(self.parts) / self.cycle_ns;
            let most = f64::from(MAX_ADDITIONS);
            self.additions = (self.additions + missing).clamp(0.0, most);
        }
        found_ns
    }

    /// Times bursts of hints, as ns for each.
    fn time_bursts(&mut self, clock: &Clock, bursts: &mut [f64]) {
        let reading = (0..4).map(|_| {
            let from = clock.ticks();
            clock.ticks().wrapping_sub(from)
        });
        let reading = reading.min().unwrap_or(0);
        let hints = count_hints(BURST_NS / self.wanted_ns);
        for burst in bursts {
            let from = clock.ticks();
            self.execute(hints);
            let took = clock.ticks().wrapping_sub(from).saturating_sub(reading);
            *burst = clock.ns(took) / hints as f64;
        }
    }

    /// Executes this many hints.
    #[inline]
    pub fn execute(&mut self, hints: u64) {
        if self.kind == HintKind::Own {
            run_plain(hints);
            return;
        }
        let parts = hints * u64::from(self.parts);
        let whole = self.additions.floor();
        self.owed += (self.additions - whole) * parts as f64;
        let more = self.owed.floor().min(parts as f64);
        self.owed -= more;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to the number of parts, and to the most additions"
        )]
        let (more, few) = (more as u64, whole as u32);
        let lengthened = (few + 1).min(MAX_ADDITIONS);
        if self.kind == HintKind::Stretched {
            run_stretched(parts - more, few);
            run_stretched(more, lengthened);
        } else {
            run_chained(parts - more, few);
            run_chained(more, lengthened);
        }
    }
}

/// The median.
fn take_median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Computes for this many core cycles, up to 512: dependent additions.
#[inline]
pub fn compute(cycles: u32) {
    run_chained(1, cycles);
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at least one, far below 2^53"
)]
fn count_hints(hints: f64) -> u64 {
    hints.max(1.0) as u64
}

/// The result of a wait.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waited {
    /// Whether a look succeeded; otherwise the runs are over, or the wait was cancelled.
    pub is_seen: bool,
    /// Number of executed hints.
    pub hints: u64,
    /// Their duration, ns.
    pub spun_ns: f64,
    /// Time that other threads took from it, ns, as far as visible: parts of about 20 µs that took
    /// up to 100 µs too long.
    pub stopped_ns: f64,
}

/// A wait in progress.
#[derive(Debug)]
struct Progress<'a> {
    hints: &'a mut Hints,
    clock: &'a Clock,
    /// Hints between two readings of the clock.
    watch: u64,
    since: u64,
    last: u64,
    waited: Waited,
}

impl Progress<'_> {
    /// True if a look succeeded.
    #[inline]
    fn execute_runs(
        &mut self,
        runs: &[(u64, u64)],
        is_endless: bool,
        mut look: impl FnMut() -> bool,
        mut is_over: impl FnMut() -> bool,
    ) -> bool {
        if look() {
            return true;
        }
        let last = runs.len().saturating_sub(1);
        for (at, &(times, hints)) in runs.iter().enumerate() {
            let times = if is_endless && at == last && hints > 0 {
                u64::MAX
            } else {
                times
            };
            for _ in 0..times {
                let has_read = self.run(hints);
                if look() {
                    return true;
                }
                if has_read && is_over() {
                    return false;
                }
            }
        }
        false
    }

    /// Executes a run; true if the clock was read.
    #[inline]
    fn run(&mut self, hints: u64) -> bool {
        let mut left = hints;
        let mut has_read = false;
        while left > 0 {
            let now = left.min(self.watch - self.since);
            self.hints.execute(now);
            left -= now;
            self.since += now;
            if self.since >= self.watch {
                self.read();
                has_read = true;
            }
        }
        self.waited.hints += hints;
        has_read
    }

    #[cold]
    fn read(&mut self) {
        let now = self.clock.ticks();
        let took_ns = self.clock.ns(now.wrapping_sub(self.last));
        let should_ns = self.since as f64 * self.hints.wanted_ns;
        if took_ns > STATES * should_ns + STOP_NS {
            self.waited.stopped_ns += took_ns - should_ns;
        }
        self.last = now;
        self.since = 0;
    }
}

/// Looks, then executes runs of `(times, hints)` with a look after each, until one succeeds; if
/// `is_endless`, the last runs repeat for ever. `is_over` is polled and may cancel the wait.
#[inline]
pub fn wait(
    hints: &mut Hints,
    clock: &Clock,
    runs: &[(u64, u64)],
    is_endless: bool,
    look: impl FnMut() -> bool,
    is_over: impl FnMut() -> bool,
) -> Waited {
    let watch = count_hints(WATCH_NS / hints.wanted_ns);
    let begin = clock.ticks();
    let mut progress = Progress {
        hints,
        clock,
        watch,
        since: 0,
        last: begin,
        waited: Waited::default(),
    };
    progress.waited.is_seen = progress.execute_runs(runs, is_endless, look, is_over);
    progress.waited.spun_ns = clock.ns(clock.ticks().wrapping_sub(begin));
    progress.waited
}

#[cfg(test)]
mod tests;
