//! Measures PAUSE in core cycles by the CPU's own counter, through `perf_event_open`.
//!
//! If the counter is not available, the result says why instead of a guess.

use std::io;
use std::os::fd::OwnedFd;

use perf_event_open_sys::bindings as perf;

use super::probe_run::{ProbeRun, repeat};
use crate::Batches;
use crate::linux::sys;
use pinwise_kernels::loops::laps::Laps;
use pinwise_kernels::loops::spin;

/// Laps of a batch; the median counts.
const LAPS: usize = 9;
/// Calls of [`spin::pause`] in a lap: so many that reading the counter, a system call whose cost is
/// subtracted, is a small part.
const CALLS: u32 = 4;

/// Measures one hint, core cycles.
pub(super) fn measure_pause_cycles(run: &ProbeRun, cpu: usize) -> Batches {
    let counter = match open_counter() {
        Ok(counter) => counter,
        Err(error) => return Batches::unavailable(explain_refusal(&error)),
    };
    let clock = &run.clock;
    repeat(run, cpu, || {
        let (mut times, mut cycles) = ([0; LAPS], [0; LAPS]);
        for (time, count) in times.iter_mut().zip(&mut cycles) {
            let from = clock.ticks();
            let before = read_counter(&counter);
            let between = read_counter(&counter);
            for _ in 0..CALLS {
                spin::pause();
            }
            let after = read_counter(&counter);
            *time = clock.ticks().wrapping_sub(from);
            // The difference of two consecutive readings is the cost of reading.
            let reading = between.wrapping_sub(before);
            *count = after.wrapping_sub(between).saturating_sub(reading);
        }
        cycles.sort_unstable();
        let each = cycles[LAPS / 2] as f64 / f64::from(CALLS * spin::PAUSES);
        // A counter that does not advance has counted nothing.
        let each = if each > 0.0 { each } else { f64::NAN };
        (Laps::from_ticks(times), each)
    })
}

/// Opens a counter of the calling thread's cycles in user mode.
fn open_counter() -> io::Result<OwnedFd> {
    let mut attributes = perf::perf_event_attr::default();
    attributes.size = u32::try_from(size_of_val(&attributes)).unwrap_or(0);
    attributes.type_ = perf::PERF_TYPE_HARDWARE;
    attributes.config = perf::PERF_COUNT_HW_CPU_CYCLES.into();
    attributes.set_pinned(1);
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    sys::open_perf_event(&attributes, 0, -1)
}

/// Reads the count; 0 if that fails, which invalidates the lap.
fn read_counter(counter: &OwnedFd) -> u64 {
    let mut bytes = [0u8; 8];
    if sys::read_some(counter, &mut bytes) == bytes.len() {
        u64::from_ne_bytes(bytes)
    } else {
        0
    }
}

/// Explains why there is no counter, and how to get one.
fn explain_refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "No cycle counter available (virtual machines without a virtual PMU have none).".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "Counting cycles is not permitted: kernel.perf_event_paranoid of 2 or less permits it, or CAP_PERFMON.".to_owned()
        }
        _ => format!("Cycles cannot be counted: {error}."),
    }
}
