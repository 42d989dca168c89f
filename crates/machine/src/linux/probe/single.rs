//! Probes of a single CPU: its cycle, its spin-wait hint, its clock.

use super::probe_run::{ProbeRun, repeat};
use crate::Batches;
use pinwise_kernels::loops::clock::{Clock, Source, find_smallest_step, measure_tick_ns};
use pinwise_kernels::loops::laps::Laps;
use pinwise_kernels::loops::spin;

/// Laps of a batch; the middle one counts, so that timer interrupts do not.
const LAPS: usize = 9;

/// One core cycle, ns.
pub(super) fn cycle(run: &ProbeRun, cpu: usize) -> Batches {
    let clock = &run.clock;
    repeat(run, cpu, || {
        let laps = Laps::<LAPS>::time(clock, spin::run_chain);
        (laps, laps.median_ns(clock) / f64::from(spin::CHAIN))
    })
}

/// One hint, ns.
pub(super) fn pause(run: &ProbeRun, cpu: usize) -> Batches {
    let clock = &run.clock;
    repeat(run, cpu, || {
        let laps = Laps::<LAPS>::time(clock, spin::pause);
        (laps, laps.median_ns(clock) / f64::from(spin::PAUSES))
    })
}

/// One hint, core cycles: each lap of hints runs beside one of dependent additions, so that a
/// changing clock does not matter.
pub(super) fn pause_cycles(run: &ProbeRun, cpu: usize) -> Batches {
    let clock = &run.clock;
    repeat(run, cpu, || {
        let (mut pauses, mut chains) = ([0; LAPS], [0; LAPS]);
        for (pause, chain) in pauses.iter_mut().zip(&mut chains) {
            let from = clock.ticks();
            spin::pause();
            let between = clock.ticks();
            spin::run_chain();
            *pause = between.wrapping_sub(from);
            *chain = clock.ticks().wrapping_sub(between);
        }
        let (pauses, chains) = (Laps::from_ticks(pauses), Laps::from_ticks(chains));
        let pause = pauses.median_ns(clock) / f64::from(spin::PAUSES);
        let cycle = chains.median_ns(clock) / f64::from(spin::CHAIN);
        let laps = if chains.was_stopped(clock) {
            chains
        } else {
            pauses
        };
        (laps, pause / cycle)
    })
}

/// YIELD, ns.
pub(super) fn yield_hint(run: &ProbeRun, cpu: usize) -> Batches {
    if !spin::HAS_YIELD {
        return Batches::unavailable("YIELD is an instruction of arm64; this CPU has PAUSE.");
    }
    hint(run, cpu, spin::yield_hint)
}

/// TPAUSE until a moment that has passed, ns.
pub(super) fn timed_pause(run: &ProbeRun, cpu: usize) -> Batches {
    if !spin::has_user_waits() {
        return no_user_waits("TPAUSE");
    }
    hint(run, cpu, spin::run_timed_pauses)
}

/// UMONITOR and UMWAIT until a moment that has passed, ns.
pub(super) fn monitored_wait(run: &ProbeRun, cpu: usize) -> Batches {
    if !spin::has_user_waits() {
        return no_user_waits("UMWAIT");
    }
    hint(run, cpu, spin::run_monitored_waits)
}

fn no_user_waits(name: &str) -> Batches {
    Batches::unavailable(format!(
        "This CPU has no {name}: CPUID does not report WAITPKG."
    ))
}

fn hint(run: &ProbeRun, cpu: usize, work: fn()) -> Batches {
    let clock = &run.clock;
    repeat(run, cpu, || {
        let laps = Laps::<LAPS>::time(clock, work);
        (laps, laps.median_ns(clock) / f64::from(spin::PAUSES))
    })
}

/// One tick of the counter, ns, against the system's clock.
pub(super) fn tick(run: &ProbeRun, cpu: usize) -> Batches {
    /// Reading both clocks errs by about 20 ns at each end.
    const BATCH_NS: u64 = 400_000;
    if run.clock.source() == Source::System {
        return Batches::unavailable(
            "This CPU has no counter of constant rate: probes are timed with the system's clock.",
        );
    }
    let mut batches = repeat(run, cpu, || {
        (Laps::from_ticks([0]), measure_tick_ns(BATCH_NS))
    });
    // A stop shortens no tick: both clocks keep running. Only the rate matters.
    batches.stolen = 0;
    batches
}

/// The smallest step of the clock, ns.
pub(super) fn timer_step(run: &ProbeRun, cpu: usize) -> Batches {
    const READINGS: usize = 1000;
    let clock: &Clock = &run.clock;
    repeat(run, cpu, || {
        let step = find_smallest_step(clock, READINGS);
        (Laps::from_ticks([0]), clock.ns(step))
    })
}
