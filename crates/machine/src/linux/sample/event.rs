//! The perf events that sample threads.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::LazyLock;

use perf_event_open_sys::bindings as perf;

use super::super::capture::read_file;
use super::super::sys;
use super::records::{REGISTER_MASK, SAMPLE_STACK, SAMPLE_TYPE};
use pinwise_profile::{Event, Stacks};

/// Most frames of a call chain: 127, or fewer if the system permits no more.
pub(super) static MAX_STACK_DEPTH: LazyLock<u16> = LazyLock::new(|| {
    const WANTED: u16 = 127;
    let permitted = read_file(Path::new("/proc/sys/kernel/perf_event_max_stack"));
    let permitted = permitted.and_then(|text| str::from_utf8(&text).ok()?.trim().parse().ok());
    permitted.map_or(WANTED, |most: u16| most.min(WANTED))
});
/// Bytes of each stack that are copied for unwinding.
pub(super) const STACK_BYTES: u32 = 16 << 10;
/// Bytes copied if frame pointers are followed: enough to unwind functions without a frame pointer
/// that were just executed.
const TOP_BYTES: u32 = 1 << 10;

/// What is sampled, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SamplingKind {
    pub(super) event: Event,
    /// Samples per second of CPU time.
    pub(super) hz: u32,
    /// Include what the kernel does for the program.
    pub(super) has_kernel: bool,
    /// How callers are found; never [`Stacks::Auto`].
    pub(super) stacks: Stacks,
}

/// The thread and CPU that an event samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventTarget {
    /// 0: this thread.
    pub(super) thread: i32,
    pub(super) cpu: usize,
    /// Sampling begins when the thread executes a program.
    pub(super) on_exec: bool,
    /// The kernel notifies after this many bytes.
    pub(super) watermark_bytes: usize,
}

/// Opens an event, disabled. Threads created by the thread inherit it.
pub(super) fn open(kind: SamplingKind, target: &EventTarget) -> io::Result<OwnedFd> {
    let mut attributes = perf::perf_event_attr::default();
    attributes.size = u32::try_from(size_of_val(&attributes)).unwrap_or(0);
    attributes.set_disabled(1);
    attributes.set_inherit(1);
    attributes.set_enable_on_exec(target.on_exec.into());
    attributes.set_use_clockid(1);
    attributes.clockid = libc::CLOCK_MONOTONIC;
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark =
        u32::try_from(target.watermark_bytes).unwrap_or(u32::MAX);
    if kind.event == Event::Cycles {
        attributes.type_ = perf::PERF_TYPE_HARDWARE;
        attributes.config = perf::PERF_COUNT_HW_CPU_CYCLES.into();
        attributes.set_freq(1);
        attributes.__bindgen_anon_1.sample_freq = kind.hz.into();
    } else {
        attributes.type_ = perf::PERF_TYPE_SOFTWARE;
        attributes.config = perf::PERF_COUNT_SW_CPU_CLOCK.into();
        attributes.__bindgen_anon_1.sample_period = period_ns(kind.hz);
    }
    attributes.sample_type = SAMPLE_TYPE;
    attributes.sample_max_stack = *MAX_STACK_DEPTH;
    attributes.sample_regs_user = REGISTER_MASK;
    attributes.sample_stack_user = match kind.stacks {
        Stacks::Dwarf => STACK_BYTES,
        Stacks::FramePointers | Stacks::Auto => TOP_BYTES,
        Stacks::None => 0,
    };
    if attributes.sample_stack_user > 0 {
        attributes.sample_type |= SAMPLE_STACK;
    }
    if kind.stacks == Stacks::None {
        attributes.set_exclude_callchain_user(1);
        attributes.set_exclude_callchain_kernel(1);
    }
    attributes.set_exclude_kernel((!kind.has_kernel).into());
    attributes.set_exclude_hv(1);
    attributes.set_mmap(1);
    attributes.set_task(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_sample_id_all(1);
    let cpu = libc::c_int::try_from(target.cpu).unwrap_or(libc::c_int::MAX);
    sys::open_perf_event(&attributes, target.thread, cpu)
}

/// CPU time between samples, ns.
pub(super) const fn period_ns(hz: u32) -> u64 {
    let hz = if hz == 0 { 1 } else { hz };
    1_000_000_000 / hz as u64
}
