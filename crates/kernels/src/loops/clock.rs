//! The clock that times probes: the CPU's counter if its rate is constant, otherwise the system's.
//!
//! Readings can only be compared if they are from one CPU: the counters of two CPUs may differ.

#![expect(
    unsafe_code,
    reason = "counters are read by instructions, the system's clock by libc"
)]

use std::mem::MaybeUninit;

/// The source of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// x86's time-stamp counter, arm64's virtual counter.
    Counter,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    System,
}

/// A clock of known rate.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    source: Source,
    ns_per_tick: f64,
}

/// With this length, two readings of the system's clock, about 50 ns each, cause an error of 1 in
/// 20,000.
const CALIBRATION_NS: u64 = 2_000_000;

impl Clock {
    /// The counter if this CPU has one of constant rate, its rate measured
    /// against the system's clock for 2 ms; otherwise the system's clock.
    #[must_use]
    pub fn calibrate() -> Self {
        if !is_counter_constant() {
            return Self::system();
        }
        let ns_per_tick = measure_tick_ns(CALIBRATION_NS);
        if ns_per_tick.is_finite() && ns_per_tick > 0.0 {
            Self {
                source: Source::Counter,
                ns_per_tick,
            }
        } else {
            Self::system()
        }
    }

    /// The system's clock.
    #[must_use]
    pub const fn system() -> Self {
        Self {
            source: Source::System,
            ns_per_tick: 1.0,
        }
    }

    /// The source of this clock.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// Reads the clock, in ticks, after all earlier instructions.
    #[inline(always)]
    #[must_use]
    pub fn ticks(&self) -> u64 {
        match self.source {
            Source::Counter => read_counter(),
            Source::System => system_ns(),
        }
    }

    /// Ticks as nanoseconds.
    #[inline]
    #[must_use]
    pub fn ns(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }

    /// Converts a recent reading to ns of `CLOCK_MONOTONIC`.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a moment ago is positive and far below 2^63 ns"
    )]
    pub fn system_ns_at(&self, ticks: u64) -> u64 {
        match self.source {
            Source::System => ticks,
            Source::Counter => {
                let now = read_both_clocks();
                now.system_ns
                    .saturating_sub(self.ns(now.counter.wrapping_sub(ticks)) as u64)
            }
        }
    }

    /// Nanoseconds as ticks, rounded down.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times of probes are positive and far below 2^63 ticks"
    )]
    pub fn ticks_in(&self, ns: f64) -> u64 {
        (ns / self.ns_per_tick) as u64
    }
}

/// Measures the nanoseconds per tick of this CPU's counter, for this long.
#[must_use]
pub fn measure_tick_ns(duration_ns: u64) -> f64 {
    let from = read_both_clocks();
    let mut to = read_both_clocks();
    while to.system_ns - from.system_ns < duration_ns {
        to = read_both_clocks();
    }
    (to.system_ns - from.system_ns) as f64 / to.counter.wrapping_sub(from.counter) as f64
}

/// Both clocks at one moment.
struct ClockPair {
    system_ns: u64,
    counter: u64,
}

/// Reads both clocks several times and keeps the tightest pair, so that an interrupt between the two
/// readings does not matter.
fn read_both_clocks() -> ClockPair {
    let read = || {
        let before = read_counter();
        let system_ns = system_ns();
        let width = read_counter().wrapping_sub(before);
        let counter = before + width / 2;
        (width, ClockPair { system_ns, counter })
    };
    let mut tightest = read();
    for _ in 1..4 {
        let next = read();
        if next.0 < tightest.0 {
            tightest = next;
        }
    }
    tightest.1
}

/// Finds the smallest step between consecutive readings, ticks, among this many.
#[must_use]
pub fn find_smallest_step(clock: &Clock, readings: usize) -> u64 {
    let mut smallest = u64::MAX;
    let mut last = clock.ticks();
    for _ in 0..readings {
        let now = clock.ticks();
        let step = now.wrapping_sub(last);
        if step > 0 {
            smallest = smallest.min(step);
        }
        last = now;
    }
    smallest
}

/// `CLOCK_MONOTONIC`, nanoseconds since boot.
#[must_use]
pub fn system_ns() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is valid for a timespec, of which all bit patterns
    // are valid.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
        time.assume_init()
    };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn read_counter() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: both instructions are in every x86-64 CPU; Linux forbids neither
    // unless a process asks for it by prctl. LFENCE keeps the reading behind
    // what it times.
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// Leaf 0x80000007, EDX bit 8: the counter runs at one rate in all states.
#[cfg(target_arch = "x86_64")]
fn is_counter_constant() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER: u32 = 0x8000_0007;
    #[allow(
        unused_unsafe,
        reason = "unsafe in the oldest Rust supported, safe in newer ones"
    )]
    // SAFETY: every x86-64 CPU has the instruction; any leaf number may be queried.
    let leaf = |number: u32| unsafe { __cpuid(number) };
    leaf(0x8000_0000).eax >= POWER && leaf(POWER).edx & (1 << 8) != 0
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn read_counter() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets user space read the virtual counter; ISB keeps the
    // reading behind what it times.
    unsafe {
        std::arch::asm!(
            "isb",
            "mrs {ticks}, cntvct_el0",
            ticks = out(reg) ticks,
            options(nomem, nostack, preserves_flags)
        );
    }
    ticks
}

/// The generic timer's rate is constant by its definition.
#[cfg(target_arch = "aarch64")]
fn is_counter_constant() -> bool {
    true
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read_counter() -> u64 {
    system_ns()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn is_counter_constant() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_monotonic_and_ticks_convert_both_ways() {
        for clock in [Clock::calibrate(), Clock::system()] {
            let from = clock.ticks();
            let to = clock.ticks();
            assert!(to >= from, "{clock:?}");
            let there_and_back = clock.ns(clock.ticks_in(1e6));
            assert!((there_and_back - 1e6).abs() < 1e3, "{there_and_back}");
        }
    }

    #[test]
    fn the_counter_agrees_with_the_system_s_clock() {
        let clock = Clock::calibrate();
        let (ns, ticks) = (system_ns(), clock.ticks());
        while system_ns() < ns + 5_000_000 {}
        let (passed, counted) = (system_ns() - ns, clock.ticks() - ticks);
        // A preemption between two readings adds at most its own length: a wide margin, but a wrong
        // unit is a factor of 1000.
        let ratio = clock.ns(counted) / passed as f64;
        assert!((0.2..5.0).contains(&ratio), "{ratio}");
    }
}
