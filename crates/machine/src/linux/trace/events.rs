//! The perf events of the scheduler.

use std::io;
use std::os::fd::OwnedFd;

use perf_event_open_sys::bindings as perf;

use super::super::sys;
use pinwise_sched::Tid;
use pinwise_sched::perf::sampled;

/// What an event records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum Recorded {
    /// Nothing: it only holds a buffer for other events.
    Nothing,
    /// Switches and the lives of threads.
    Switches,
    /// The tracepoint of this id, and the lives of threads.
    Tracepoint {
        /// The id in tracefs.
        id: u64,
        /// Beginnings, ends and names of threads, too.
        with_lives: bool,
    },
}

/// Fields in records of switches.
pub(in crate::linux) const SWITCH_FIELDS: u64 = sampled::TID | sampled::TIME;
/// Fields in records of tracepoints.
pub(in crate::linux) const POINT_FIELDS: u64 = sampled::TIME | sampled::RAW;

/// An event to open on one CPU.
#[derive(Debug, Clone, Copy)]
pub(in crate::linux) struct Wish {
    pub(in crate::linux) recorded: Recorded,
    /// The thread: −1 for all, 0 for this one.
    pub(in crate::linux) thread: Tid,
    pub(in crate::linux) cpu: usize,
    /// Do new threads inherit the event?
    pub(in crate::linux) is_inherited: bool,
    /// Begins when the thread executes a program.
    pub(in crate::linux) on_exec: bool,
    /// The kernel notifies after this many bytes.
    pub(in crate::linux) watermark_bytes: usize,
}

/// Opens an event, disabled.
pub(in crate::linux) fn open(wish: &Wish) -> io::Result<OwnedFd> {
    let cpu = libc::c_int::try_from(wish.cpu).unwrap_or(libc::c_int::MAX);
    sys::perf_event(&attributes(wish), wish.thread, cpu)
}

fn attributes(wish: &Wish) -> perf::perf_event_attr {
    let mut attributes = perf::perf_event_attr::default();
    attributes.size = u32::try_from(size_of_val(&attributes)).unwrap_or(0);
    attributes.set_disabled(1);
    attributes.set_inherit(wish.is_inherited.into());
    attributes.set_enable_on_exec(wish.on_exec.into());
    // All sources use the clock of `sys::monotonic`.
    attributes.set_use_clockid(1);
    attributes.clockid = libc::CLOCK_MONOTONIC;
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark =
        u32::try_from(wish.watermark_bytes).unwrap_or(u32::MAX);
    let has_lives = match wish.recorded {
        Recorded::Tracepoint { id, with_lives } => {
            attributes.type_ = perf::PERF_TYPE_TRACEPOINT;
            attributes.config = id;
            attributes.__bindgen_anon_1.sample_period = 1;
            attributes.sample_type = POINT_FIELDS;
            with_lives
        }
        Recorded::Switches | Recorded::Nothing => {
            attributes.type_ = perf::PERF_TYPE_SOFTWARE;
            attributes.config = perf::PERF_COUNT_SW_DUMMY.into();
            // Switch records need no permission to see the kernel.
            attributes.set_exclude_kernel(1);
            attributes.sample_type = SWITCH_FIELDS;
            let has_switches = wish.recorded == Recorded::Switches;
            attributes.set_context_switch(has_switches.into());
            has_switches
        }
    };
    attributes.set_task(has_lives.into());
    attributes.set_comm(has_lives.into());
    attributes.set_comm_exec(has_lives.into());
    attributes.set_sample_id_all(1);
    attributes
}

/// An event of this thread that records nothing: it holds a buffer that other events of its CPU
/// write into.
pub(in crate::linux) fn dummy(cpu: usize, watermark_bytes: usize) -> io::Result<OwnedFd> {
    open(&Wish {
        recorded: Recorded::Nothing,
        thread: 0,
        cpu,
        is_inherited: false,
        on_exec: false,
        watermark_bytes,
    })
}
