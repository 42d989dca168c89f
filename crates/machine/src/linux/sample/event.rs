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

/// Limits the frames of a call chain, as far as this system permits.
pub(super) static DEEPEST: LazyLock<u16> = LazyLock::new(|| {
    const MAX_DEPTH: u16 = 127;
    let permitted = read_file(Path::new("/proc/sys/kernel/perf_event_max_stack"));
    let permitted = permitted.and_then(|text| str::from_utf8(&text).ok()?.trim().parse().ok());
    permitted.map_or(MAX_DEPTH, |most: u16| most.min(MAX_DEPTH))
});
/// Bytes of each stack that are copied for unwinding.
pub(super) const STACK_BYTES: u32 = 16 << 10;
/// Bytes copied if frame pointers are followed: the stack of frameless functions, and of libraries
/// built without frame pointers.
const TOP_BYTES: u32 = 1 << 10;

/// What is sampled, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) event: Event,
    /// Samples per second of CPU time.
    pub(super) hz: u32,
    /// Include what the kernel does for the program.
    pub(super) has_kernel: bool,
    /// How callers are found; never [`Stacks::Auto`].
    pub(super) stacks: Stacks,
}

/// The sampled thread and CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    /// 0: this thread.
    pub(super) thread: i32,
    pub(super) cpu: usize,
    /// Begins when the thread executes a program.
    pub(super) on_exec: bool,
    /// The kernel notifies after this many bytes.
    pub(super) watermark_bytes: usize,
}

/// Opens an event, disabled. Threads created by the thread inherit it.
pub(super) fn open(kind: Kind, wish: &Wish) -> io::Result<OwnedFd> {
    let mut attributes = perf::perf_event_attr::default();
    attributes.size = u32::try_from(size_of_val(&attributes)).unwrap_or(0);
    attributes.set_disabled(1);
    attributes.set_inherit(1);
    attributes.set_enable_on_exec(wish.on_exec.into());
    attributes.set_use_clockid(1);
    attributes.clockid = libc::CLOCK_MONOTONIC;
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark =
        u32::try_from(wish.watermark_bytes).unwrap_or(u32::MAX);
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
    attributes.sample_max_stack = *DEEPEST;
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
    let cpu = libc::c_int::try_from(wish.cpu).unwrap_or(libc::c_int::MAX);
    sys::open_perf_event(&attributes, wish.thread, cpu)
}

/// CPU time between samples, ns.
pub(super) const fn period_ns(hz: u32) -> u64 {
    let hz = if hz == 0 { 1 } else { hz };
    1_000_000_000 / hz as u64
}
