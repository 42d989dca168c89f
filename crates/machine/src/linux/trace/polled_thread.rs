//! Polls one thread: reads its files in `/proc`, which it keeps open, again and again.
//!
//! An open file stays bound to its thread: after the thread's end it cannot be read any more, even
//! if another thread gets the same id.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::super::process_stat::ProcessStat;
use super::super::sys;
use super::blocked::{PlaceFinder, classify_wait, find_wait_place, is_blocked};
use super::exits::LastFigures;
use super::threads::{self, Counts, ExistingThread};
use pinwise_sched::{EventKind, Sample, SchedulingClass, Tid};
use pinwise_topology::CpuSet;

/// Most bytes that are read of a file; `sched`, the longest, has about 1,500.
const MAX_FILE_BYTES: usize = 16 * 1024;

/// A thread and what was last read of it.
#[derive(Debug)]
pub(super) struct PolledThread {
    pub(super) found: ExistingThread,
    stat: Option<File>,
    schedstat: Option<File>,
    counts: Option<File>,
    syscall: Option<File>,
    /// Is what it waits for read as well?
    reads_wait: bool,
    last_counts: Counts,
    mask: Option<CpuSet>,
    /// Its last name, which changes when it executes another program.
    name: Box<str>,
    /// Its last CPU.
    cpu: u32,
}

/// What polls of all threads of a trace share.
pub(super) struct PollState {
    buffer: Vec<u8>,
    places: PlaceFinder,
}

impl PollState {
    pub(super) fn new() -> Self {
        Self {
            buffer: Vec::new(),
            places: PlaceFinder::new(),
        }
    }
}

/// How much a poll reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollDetail {
    /// The mask, state and times.
    Times,
    /// These and the counts, which take longest.
    Counts,
}

impl PolledThread {
    /// Opens nothing yet. `reads_wait`: polls also read what the thread waits for while it is blocked.
    pub(super) fn new(found: ExistingThread, reads_wait: bool) -> Self {
        Self {
            found,
            stat: None,
            schedstat: None,
            counts: None,
            syscall: None,
            reads_wait,
            last_counts: Counts {
                migrations: None,
                voluntary: None,
                involuntary: None,
            },
            mask: None,
            name: Box::default(),
            cpu: 0,
        }
    }

    /// Polls the thread; false if it no longer exists. `is_last`: the trace ends.
    pub(super) fn poll(
        &mut self,
        detail: PollDetail,
        is_last: bool,
        state: &mut PollState,
        emit: &mut dyn FnMut(EventKind),
    ) -> bool {
        let thread = self.found.tid;
        let Ok(mask) = sys::affinity_of(thread) else {
            return false;
        };
        let Some(mut sample) = self.read_sample(detail, state, emit) else {
            return false;
        };
        sample.is_last |= is_last;
        self.cpu = sample.cpu;
        emit(EventKind::Sample(Box::new(sample)));
        if self.mask.as_ref() != Some(&mask) {
            emit(EventKind::Mask {
                thread,
                cpus: Box::new(mask.clone()),
            });
            self.mask = Some(mask);
        }
        true
    }

    /// Has it never been polled?
    pub(super) const fn is_new(&self) -> bool {
        self.mask.is_none()
    }

    /// Closes the files; the next poll opens them again.
    pub(super) fn close(&mut self) {
        self.stat = None;
        self.schedstat = None;
        self.counts = None;
        self.syscall = None;
    }

    fn read_sample(
        &mut self,
        detail: PollDetail,
        PollState { buffer, places }: &mut PollState,
        emit: &mut dyn FnMut(EventKind),
    ) -> Option<Sample> {
        let thread = self.found.tid;
        let text = read_file(&mut self.stat, self.found, &["stat"], buffer)?;
        let stat = ProcessStat::parse(&text)?;
        if *self.name != *stat.name {
            self.name = stat.name.into();
            let name = self.name.clone();
            emit(EventKind::Name { thread, name });
        }
        let (cpu, state) = (stat.cpu()?, stat.state()?);
        let is_last = stat.has_ended();
        let nice = stat.nice().unwrap_or(0);
        let class = stat.policy().map(|policy| scheduling_class(policy, nice));
        let (user, system) = stat.ticks()?;
        let times = read_file(&mut self.schedstat, self.found, &["schedstat"], buffer)
            .and_then(|text| threads::parse_schedstat(&text));
        if detail == PollDetail::Counts
            && let Some(text) =
                read_file(&mut self.counts, self.found, &["sched", "status"], buffer)
        {
            self.last_counts = threads::parse_counts(&text);
        }
        let (mut blocked_in, mut blocked_at) = (None, None);
        if self.reads_wait && is_blocked(state) {
            let text = read_file(&mut self.syscall, self.found, &["syscall"], buffer);
            if let Some(what) = classify_wait(self.found, state, text.as_deref()) {
                let (place, what) = find_wait_place(self.found, what, text.as_deref(), places);
                (blocked_in, blocked_at) = (Some(what), place);
            }
        }
        let tick_ns = 1_000_000_000 / sys::ticks_per_second();
        Some(Sample {
            thread,
            cpu,
            is_runnable: state == 'R',
            blocked_in,
            blocked_at,
            class,
            run_ns: times.map_or_else(
                || user.saturating_add(system).saturating_mul(tick_ns),
                |(run_ns, _)| run_ns,
            ),
            wait_ns: times.map(|(_, wait_ns)| wait_ns),
            migrations: self.last_counts.migrations,
            voluntary: self.last_counts.voluntary,
            involuntary: self.last_counts.involuntary,
            life_ns: None,
            // A thread that waits to be reaped does not run any more.
            is_last,
        })
    }

    /// Makes the last sample of the ended thread from the kernel's report.
    pub(super) fn make_last_sample(&self, last: LastFigures) -> EventKind {
        EventKind::Sample(Box::new(Sample {
            thread: self.found.tid,
            cpu: self.cpu,
            is_runnable: false,
            blocked_in: None,
            blocked_at: None,
            class: None,
            run_ns: last.run_ns,
            wait_ns: Some(last.wait_ns),
            migrations: self.last_counts.migrations,
            voluntary: last.voluntary,
            involuntary: last.involuntary,
            life_ns: last.life_ns,
            is_last: true,
        }))
    }
}

fn scheduling_class(policy: libc::c_int, nice: i32) -> SchedulingClass {
    match policy {
        libc::SCHED_FIFO | libc::SCHED_RR => SchedulingClass::RealTime,
        libc::SCHED_IDLE => SchedulingClass::Idle,
        libc::SCHED_DEADLINE => SchedulingClass::Deadline,
        _ => match u8::try_from(nice) {
            Ok(nice @ 1..) => SchedulingClass::Nice(nice),
            _ => SchedulingClass::Normal,
        },
    }
}

/// Reads a file of a thread from its start. If it is not open, opens the first of `names` that
/// exists.
fn read_file<'a>(
    file: &mut Option<File>,
    found: ExistingThread,
    names: &[&str],
    buffer: &'a mut Vec<u8>,
) -> Option<Cow<'a, str>> {
    if file.is_none() {
        *file = names.iter().find_map(|name| open(found, name));
    }
    buffer.resize(MAX_FILE_BYTES, 0);
    let length = file.as_ref()?.read_at(buffer, 0).ok()?;
    Some(String::from_utf8_lossy(buffer.get(..length)?))
}

fn open(found: ExistingThread, name: &str) -> Option<File> {
    #[expect(clippy::disallowed_methods, reason = "the Edge reads /proc")]
    File::open(format!("/proc/{}/task/{}/{name}", found.process, found.tid)).ok()
}

/// Emits that a thread exists, and its name.
pub(super) fn introduce(found: ExistingThread, is_followed: bool, emit: &mut dyn FnMut(EventKind)) {
    let thread: Tid = found.tid;
    emit(EventKind::Known {
        thread,
        process: found.process,
    });
    if let Some(name) = threads::read_name(thread) {
        emit(EventKind::Name { thread, name });
    }
    if is_followed {
        emit(EventKind::Follow { thread });
    }
}
