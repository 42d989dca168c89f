//! Opens perf events of the scheduler.

use std::io;
use std::os::fd::OwnedFd;

use perf_event_open_sys::bindings as perf;

use super::super::sys;
use pinwise_sched::Tid;
use pinwise_sched::perf::sampled;

/// What an event records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::linux) enum Recorded {
    /// Nothing: the event only owns a buffer for other events.
    Nothing,
    /// Switches, and starts, ends and names of threads.
    Switches,
    /// A tracepoint.
    Tracepoint {
        /// The id in tracefs.
        id: u64,
        /// Are starts, ends and names of threads recorded as well?
        with_lives: bool,
    },
}

/// Fields in records of switches.
pub(in crate::linux) const SWITCH_FIELDS: u64 = sampled::TID | sampled::TIME;
/// Fields in records of tracepoints.
pub(in crate::linux) const POINT_FIELDS: u64 = sampled::TIME | sampled::RAW;

/// The request for an event on one CPU.
#[derive(Debug, Clone, Copy)]
pub(in crate::linux) struct EventRequest {
    pub(in crate::linux) recorded: Recorded,
    /// The thread: −1 for all, 0 for this one.
    pub(in crate::linux) thread: Tid,
    pub(in crate::linux) cpu: usize,
    /// Do new threads inherit the event?
    pub(in crate::linux) is_inherited: bool,
    /// Is the event enabled when the thread executes a program?
    pub(in crate::linux) on_exec: bool,
    /// The descriptor becomes readable when the buffer has this many bytes.
    pub(in crate::linux) watermark_bytes: usize,
}

impl EventRequest {
    /// An event that is neither inherited nor enabled on execution, and never wakes the reader.
    pub(in crate::linux) const fn new(recorded: Recorded, thread: Tid, cpu: usize) -> Self {
        Self {
            recorded,
            thread,
            cpu,
            is_inherited: false,
            on_exec: false,
            watermark_bytes: 0,
        }
    }
}

/// Opens an event, disabled.
pub(in crate::linux) fn open(request: &EventRequest) -> io::Result<OwnedFd> {
    let cpu = libc::c_int::try_from(request.cpu).unwrap_or(libc::c_int::MAX);
    sys::open_perf_event(&make_attributes(request), request.thread, cpu)
}

fn make_attributes(request: &EventRequest) -> perf::perf_event_attr {
    let mut attributes = perf::perf_event_attr::default();
    attributes.size = u32::try_from(size_of_val(&attributes)).unwrap_or(0);
    attributes.set_disabled(1);
    attributes.set_inherit(request.is_inherited.into());
    attributes.set_enable_on_exec(request.on_exec.into());
    // All sources use the clock of `sys::monotonic`.
    attributes.set_use_clockid(1);
    attributes.clockid = libc::CLOCK_MONOTONIC;
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark =
        u32::try_from(request.watermark_bytes).unwrap_or(u32::MAX);
    let has_lives = match request.recorded {
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
            let has_switches = request.recorded == Recorded::Switches;
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

/// Opens an event of this thread that records nothing: it owns a buffer that other events of its
/// CPU write into.
pub(in crate::linux) fn open_dummy(cpu: usize, watermark_bytes: usize) -> io::Result<OwnedFd> {
    open(&EventRequest {
        watermark_bytes,
        ..EventRequest::new(Recorded::Nothing, 0, cpu)
    })
}
