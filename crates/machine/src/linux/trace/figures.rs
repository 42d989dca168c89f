//! The files of a thread in `/proc`, kept open and reread.
//!
//! An open file belongs to its thread: once that has ended it cannot be read, even if the id is
//! reused.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::super::process_stat::ProcessStat;
use super::super::stack::wait_places::WaitPlaces;
use super::super::sys;
use super::blocked::{find_place, is_blocked, read_call};
use super::exits::LastFigures;
use super::threads::{self, Counts, ExistingThread};
use pinwise_sched::{EventKind, Sample, SchedulingClass, Tid};
use pinwise_topology::CpuSet;

/// Longest file of these, bytes; `sched` has about 1,500.
const MAX_FILE_BYTES: usize = 16 * 1024;

/// The state of a thread.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) found: ExistingThread,
    stat: Option<File>,
    schedstat: Option<File>,
    counts: Option<File>,
    syscall: Option<File>,
    /// Also read what it waits for?
    asks_why: bool,
    last_counts: Counts,
    mask: Option<CpuSet>,
    /// Its last name: a new program has another.
    name: Box<str>,
    /// Its last CPU.
    cpu: u32,
}

/// What the looks at all threads of a trace share.
pub(super) struct LookState {
    buffer: Vec<u8>,
    places: WaitPlaces,
}

impl LookState {
    pub(super) fn new() -> Self {
        Self {
            buffer: Vec::new(),
            places: WaitPlaces::new(),
        }
    }
}

/// How much to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The mask, state and times.
    Times,
    /// All of that and the counts, which take longest.
    Counts,
}

impl Figures {
    /// Opens nothing yet. `asks_why`: read what it waits for while blocked.
    pub(super) fn new(found: ExistingThread, asks_why: bool) -> Self {
        Self {
            found,
            stat: None,
            schedstat: None,
            counts: None,
            syscall: None,
            asks_why,
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

    /// Polls the thread; false if it is gone. `is_last`: the trace ends.
    pub(super) fn look(
        &mut self,
        look: Look,
        is_last: bool,
        state: &mut LookState,
        emit: &mut dyn FnMut(EventKind),
    ) -> bool {
        let thread = self.found.tid;
        let Ok(mask) = sys::affinity_of(thread) else {
            return false;
        };
        let Some(mut sample) = self.sample(look, state, emit) else {
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

    /// Closes the descriptors; they are reopened when needed.
    pub(super) fn close(&mut self) {
        self.stat = None;
        self.schedstat = None;
        self.counts = None;
        self.syscall = None;
    }

    fn sample(
        &mut self,
        look: Look,
        LookState { buffer, places }: &mut LookState,
        emit: &mut dyn FnMut(EventKind),
    ) -> Option<Sample> {
        let thread = self.found.tid;
        let text = read(&mut self.stat, self.found, &["stat"], buffer)?;
        let stat = ProcessStat::parse(&text)?;
        if *self.name != *stat.name {
            self.name = stat.name.into();
            let name = self.name.clone();
            emit(EventKind::Name { thread, name });
        }
        let (cpu, state) = (stat.cpu()?, stat.state()?);
        let is_last = stat.has_ended();
        let class = stat.policy().map(class_of);
        let (user, system) = stat.ticks()?;
        let times = read(&mut self.schedstat, self.found, &["schedstat"], buffer)
            .and_then(|text| threads::parse_schedstat(&text));
        if look == Look::Counts
            && let Some(text) = read(&mut self.counts, self.found, &["sched", "status"], buffer)
        {
            self.last_counts = threads::parse_counts(&text);
        }
        let (blocked_in, blocked_at) = match self.asks_why && is_blocked(state) {
            true => {
                let text = read(&mut self.syscall, self.found, &["syscall"], buffer);
                let what = read_call(self.found, state, text.as_deref());
                match what {
                    Some(what) => {
                        let found = find_place(self.found, what, text.as_deref(), places);
                        (Some(found.1), found.0)
                    }
                    None => (None, None),
                }
            }
            false => (None, None),
        };
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
            // A thread waiting to be reaped does not run any longer.
            is_last,
        })
    }

    /// The kernel's report of the ended thread.
    pub(super) fn report_of_end(&self, last: LastFigures) -> EventKind {
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

const fn class_of(policy: libc::c_int) -> SchedulingClass {
    match policy {
        libc::SCHED_FIFO | libc::SCHED_RR => SchedulingClass::RealTime,
        libc::SCHED_IDLE => SchedulingClass::Idle,
        libc::SCHED_DEADLINE => SchedulingClass::Deadline,
        _ => SchedulingClass::Normal,
    }
}

/// Reads a file of a thread from its start; if none is open, opens the first of these that exists.
fn read<'a>(
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

/// Emits a thread that appears for the first time.
pub(super) fn introduce(found: ExistingThread, is_followed: bool, emit: &mut dyn FnMut(EventKind)) {
    let thread: Tid = found.tid;
    emit(EventKind::Known {
        thread,
        process: found.process,
    });
    if let Some(name) = threads::name(thread) {
        emit(EventKind::Name { thread, name });
    }
    if is_followed {
        emit(EventKind::Follow { thread });
    }
}
