//! Kernel counters of a whole process tree, if permitted and cheap.
//!
//! Each counter is opened once on pinwise itself, disabled and inheritable: a child's copy switches
//! on when the child executes, its children inherit it, and every ended process adds to the total
//! that pinwise reads. Nothing is opened or attached per counted run; traced and sampled runs close
//! the counters and open them again afterwards.
//!
//! Hardware counters of a task cost up to half a millisecond per context switch in virtual machines
//! (measured: 63, 235 and 518 µs for 1, 2 and 4 counters). They are probed first and used only if
//! cheap or requested. Even the cheapest counter costs 15 to 30 µs per process, for which the
//! kernel makes a copy: if the first run is shorter than [`SHORT_RUN`], later ones are not counted,
//! unless counting was requested.

#![expect(unsafe_code, reason = "perf_event_open and fork have no safe form")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use perf_event_open_sys::bindings as perf;

use super::trace::Target;
use super::trace::permission::{self, Attempt};
use super::{ring, sys};
use pinwise_sched::Refusal;
use pinwise_workload::Counts;

/// The highest cost of hardware counters per context switch at which they are used without a
/// request.
const MAX_SWITCH_COST: Duration = Duration::from_micros(2);
/// Context switches of the probe.
const PROBE_SWITCHES: u32 = 100;

/// Counters would cost more than half a per cent of a command as short as this.
pub(super) const SHORT_RUN: Duration = Duration::from_millis(5);

/// When a machine counts cycles and instructions of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CycleCounting {
    /// Only if it does not slow commands down.
    IfCheap,
    /// Even if it slows commands down.
    Always,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CounterKind {
    Migrations,
    Cycles,
    Instructions,
}

impl CounterKind {
    const ALL: [Self; 3] = [Self::Migrations, Self::Cycles, Self::Instructions];

    /// The kernel's type and number of its event.
    fn event(self) -> (u32, u64) {
        let hardware = perf::PERF_TYPE_HARDWARE;
        match self {
            Self::Migrations => (
                perf::PERF_TYPE_SOFTWARE,
                perf::PERF_COUNT_SW_CPU_MIGRATIONS.into(),
            ),
            Self::Cycles => (hardware, perf::PERF_COUNT_HW_CPU_CYCLES.into()),
            Self::Instructions => (hardware, perf::PERF_COUNT_HW_INSTRUCTIONS.into()),
        }
    }

    fn is_hardware(self) -> bool {
        self.event().0 == perf::PERF_TYPE_HARDWARE
    }
}

/// The open counters.
#[derive(Debug, Default)]
pub(super) struct Counters {
    open: Vec<(CounterKind, OwnedFd)>,
    /// Was counting requested, whatever it costs?
    are_wanted: bool,
}

impl Counters {
    /// Opens the permitted counters.
    pub(super) fn open(counting: CycleCounting) -> Self {
        let mut counters = Self {
            open: Vec::new(),
            are_wanted: counting == CycleCounting::Always,
        };
        counters.open_kinds(&CounterKind::ALL);
        if !counters.are_wanted && !counters.are_cheap() {
            counters.open.retain(|(kind, _)| !kind.is_hardware());
        }
        counters
    }

    /// Stops counting, unless counting was requested.
    pub(super) fn close_unless_requested(&mut self) {
        if !self.are_wanted {
            *self = Self::default();
        }
    }

    /// Closes all counters, so that commands started from now on have none; returns which were
    /// open.
    pub(super) fn close_all(&mut self) -> Vec<CounterKind> {
        self.open.drain(..).map(|(kind, _)| kind).collect()
    }

    /// Opens those of these counters that are permitted.
    pub(super) fn open_kinds(&mut self, kinds: &[CounterKind]) {
        let opened = kinds.iter().map(|&kind| Some((kind, open(kind).ok()?)));
        self.open.extend(opened.flatten());
    }

    /// What the counters have counted so far.
    pub(super) fn totals(&self) -> Counts {
        let total = |wanted| {
            let mut open = self.open.iter();
            open.find_map(|(kind, counter)| (*kind == wanted).then(|| read_counter(counter))?)
        };
        Counts {
            migrations: total(CounterKind::Migrations),
            cycles: total(CounterKind::Cycles),
            instructions: total(CounterKind::Instructions),
        }
    }

    /// Do context switches take about the same time with the hardware counters on?
    fn are_cheap(&self) -> bool {
        let hardware = self.open.iter().filter(|(kind, _)| kind.is_hardware());
        let hardware: Vec<&OwnedFd> = hardware.map(|(_, counter)| counter).collect();
        if hardware.is_empty() {
            return true;
        }
        let Ok(without) = time_switches() else {
            return false;
        };
        set_enabled(&hardware, true);
        let with = time_switches();
        set_enabled(&hardware, false);
        with.is_ok_and(|with| with.saturating_sub(without) / PROBE_SWITCHES <= MAX_SWITCH_COST)
    }
}

/// Why software events cannot be counted; `None` if they can. This opens one to find out, because
/// settings do not reveal seccomp filters.
#[must_use]
pub fn perf_refusal() -> Option<Refusal> {
    let error = open(CounterKind::Migrations).err()?;
    Some(permission::explain_refusal(
        Attempt::Own(Target::Child),
        &error,
    ))
}

/// Opens a counter, without events in the kernel if those are not permitted.
fn open(counted: CounterKind) -> io::Result<OwnedFd> {
    match (open_event(counted, false), counted) {
        (Ok(fd), _) => Ok(fd),
        // Migrations happen in the kernel: without kernel events the counter always reads 0.
        (Err(error), CounterKind::Migrations) => Err(error),
        (Err(_), _) => open_event(counted, true),
    }
}

fn open_event(counted: CounterKind, user_only: bool) -> io::Result<OwnedFd> {
    let mut attributes = perf::perf_event_attr::default();
    attributes.size = u32::try_from(size_of_val(&attributes)).unwrap_or(0);
    let (kind, event) = counted.event();
    attributes.type_ = kind;
    attributes.config = event;
    attributes.set_disabled(1);
    attributes.set_inherit(1);
    attributes.set_enable_on_exec(1);
    attributes.set_exclude_hv(1);
    attributes.set_exclude_kernel(u64::from(user_only));
    sys::open_perf_event(&attributes, 0, -1)
}

fn read_counter(counter: &OwnedFd) -> Option<u64> {
    let mut bytes = [0u8; 8];
    (sys::read_some(counter, &mut bytes) == bytes.len()).then(|| u64::from_ne_bytes(bytes))
}

fn set_enabled(counters: &[&OwnedFd], is_enabled: bool) {
    for counter in counters {
        ring::set_enabled(counter, is_enabled);
    }
}

/// Measures how long [`PROBE_SWITCHES`] context switches take: this process and a forked one on the
/// same CPU pass a byte back and forth, and each byte forces a switch.
fn time_switches() -> io::Result<Duration> {
    let before = sys::affinity()?;
    let (ping_read, ping_write) = sys::pipe(0)?;
    let (pong_read, pong_write) = sys::pipe(0)?;
    let one = before
        .first()
        .map(pinwise_topology::CpuSet::single)
        .unwrap_or_default();
    sys::set_affinity(&one)?;
    // SAFETY: the child only reads, writes and leaves by _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(ping_write);
        while pass_byte(&ping_read, &pong_write) {}
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    if let Err(error) = sys::check(child) {
        sys::set_affinity(&before)?;
        return Err(error);
    }
    drop((ping_read, pong_write));
    let start = sys::monotonic();
    for _ in 0..PROBE_SWITCHES / 2 {
        write_byte(&ping_write);
        read_byte(&pong_read);
    }
    let took = sys::monotonic().saturating_sub(start);
    drop(ping_write);
    let mut status = 0;
    // SAFETY: the pointer is valid; the child ends when its pipe closes.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    sys::set_affinity(&before)?;
    Ok(took)
}

fn pass_byte(from: &OwnedFd, to: &OwnedFd) -> bool {
    read_byte(from) && write_byte(to)
}

fn read_byte(from: &OwnedFd) -> bool {
    sys::read_some(from, &mut [0]) == 1
}

fn write_byte(to: &OwnedFd) -> bool {
    let byte = [1u8];
    // SAFETY: the buffer holds the one byte passed.
    unsafe { libc::write(to.as_raw_fd(), byte.as_ptr().cast(), 1) == 1 }
}
