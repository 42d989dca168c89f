//! Probes of a single CPU: its cycle, its spin-wait hints, its clock.

use super::probe_run::{ProbeRun, repeat};
use crate::Batches;
use pinwise_kernels::loops::clock::{Clock, Source, find_smallest_step, measure_tick_ns};
use pinwise_kernels::loops::laps::Laps;
use pinwise_kernels::loops::spin;

/// Laps of a batch; the median counts, so that timer interrupts do not matter.
const LAPS: usize = 9;

/// Measures one core cycle, ns.
pub(super) fn measure_cycle(run: &ProbeRun, cpu: usize) -> Batches {
    let clock = &run.clock;
    repeat(run, cpu, || {
        let laps = Laps::<LAPS>::time(clock, spin::run_chain);
        (laps, laps.median_ns(clock) / f64::from(spin::CHAIN))
    })
}

/// Measures one PAUSE, ns.
pub(super) fn measure_pause(run: &ProbeRun, cpu: usize) -> Batches {
    measure_hint(run, cpu, spin::pause)
}

/// Measures one PAUSE, core cycles: each lap of hints is followed by one of dependent additions, so
/// that a change of the clock's speed does not matter.
pub(super) fn measure_pause_cycles(run: &ProbeRun, cpu: usize) -> Batches {
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

/// Measures one YIELD, ns.
pub(super) fn measure_yield(run: &ProbeRun, cpu: usize) -> Batches {
    if !spin::HAS_YIELD {
        return Batches::unavailable("YIELD is an instruction of arm64; this CPU has PAUSE.");
    }
    measure_hint(run, cpu, spin::yield_hint)
}

/// Measures one TPAUSE until a moment that has passed, ns.
pub(super) fn measure_timed_pause(run: &ProbeRun, cpu: usize) -> Batches {
    if !spin::has_user_waits() {
        return without_waitpkg("TPAUSE");
    }
    measure_hint(run, cpu, spin::run_timed_pauses)
}

/// Measures one UMONITOR with UMWAIT until a moment that has passed, ns.
pub(super) fn measure_monitored_wait(run: &ProbeRun, cpu: usize) -> Batches {
    if !spin::has_user_waits() {
        return without_waitpkg("UMWAIT");
    }
    measure_hint(run, cpu, spin::run_monitored_waits)
}

fn without_waitpkg(name: &str) -> Batches {
    Batches::unavailable(format!(
        "This CPU has no {name}: CPUID does not report WAITPKG."
    ))
}

fn measure_hint(run: &ProbeRun, cpu: usize, work: fn()) -> Batches {
    let clock = &run.clock;
    repeat(run, cpu, || {
        let laps = Laps::<LAPS>::time(clock, work);
        (laps, laps.median_ns(clock) / f64::from(spin::PAUSES))
    })
}

/// Measures one tick of the CPU's counter, ns, by the system's clock.
pub(super) fn measure_tick(run: &ProbeRun, cpu: usize) -> Batches {
    /// Length of a batch: reading both clocks errs by about 20 ns at each end.
    const BATCH_NS: u64 = 400_000;
    if run.clock.source() == Source::System {
        return Batches::unavailable(
            "This CPU has no counter of constant rate: probes are timed with the system's clock.",
        );
    }
    let mut batches = repeat(run, cpu, || {
        (Laps::from_ticks([0]), measure_tick_ns(BATCH_NS))
    });
    // A stopped thread does not matter: both clocks keep running.
    batches.stolen = 0;
    batches
}

/// Measures the smallest step of the clock, ns.
pub(super) fn measure_timer_step(run: &ProbeRun, cpu: usize) -> Batches {
    const READINGS: usize = 1000;
    let clock: &Clock = &run.clock;
    repeat(run, cpu, || {
        let step = find_smallest_step(clock, READINGS);
        (Laps::from_ticks([0]), clock.ns(step))
    })
}
