//! Turns the reports of tracers into [`Event`]s: names once instead of with every switch, processes
//! as soon as they are known, followed threads, and an end for every ended thread.
//!
//! Memory is needed only for threads, and bounded.

use foldhash::{HashMap, HashMapExt};

use super::raw_event::{Comm, NamedThread, RawEvent, RawKind};
use super::{ImportError, Imported, TraceSubject, prefix};
use crate::{Event, EventKind, IDLE, LeaveReason, Tid};

/// Events handed over at once.
const BATCH: usize = 1024;

/// Limits the threads alive at once. The analysis keeps 400 bytes for each; a kernel allows 4
/// million ids.
const MAX_THREADS: usize = 1 << 18;

/// How to read a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) whom: TraceSubject,
    /// Second halves of wake-ups are recorded; the first are left out.
    pub(super) has_wakeups: bool,
    /// A thread that announced its end switches once more.
    pub(super) has_last_switch: bool,
    /// Switches say which one is a thread's last.
    pub(super) has_ends: bool,
    /// The first executed program is the command, whatever the thread's name was.
    pub(super) starts_command: bool,
}

/// The state of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadInfo {
    name: Comm,
    process: Option<Tid>,
    /// It is ending and will switch once more.
    is_ending: bool,
    /// The CPU it was to wake on, while that can be corrected.
    waking: Option<Waking>,
    /// It arrived and has not left, from half switches only.
    is_on_cpu: bool,
    /// Its beginning was announced: is it a thread of its parent's process?
    announced: Option<bool>,
}

/// An announced wake-up: the waking CPU, and the event's place in the batch of that number.
#[derive(Debug, Clone, Copy)]
struct Waking {
    cpu: u32,
    batch: u64,
    index: usize,
}

/// Turns raw events into events.
pub(super) struct EventBuilder<'a> {
    reading: Reading,
    sink: &'a mut dyn FnMut(&[Event]),
    batch: Vec<Event>,
    batches: u64,
    threads: HashMap<Tid, ThreadInfo>,
    has_too_many: bool,
    root: Option<Tid>,
    lost: u64,
    switches: u64,
}

impl<'a> EventBuilder<'a> {
    pub(super) fn new(reading: Reading, sink: &'a mut dyn FnMut(&[Event])) -> Self {
        Self {
            reading,
            sink,
            batch: Vec::with_capacity(BATCH + 8),
            batches: 0,
            threads: HashMap::new(),
            has_too_many: false,
            root: None,
            lost: 0,
            switches: 0,
        }
    }

    pub(super) fn add(&mut self, raw: &RawEvent) {
        if let Some((thread, process)) = raw.current {
            self.belongs(raw, thread, process);
        }
        self.put(raw);
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    /// Can reading continue?
    pub(super) const fn check(&self) -> Result<(), ImportError> {
        match self.has_too_many {
            true => Err(ImportError::TooManyThreads(MAX_THREADS)),
            false => Ok(()),
        }
    }

    /// Emits the rest and reports how the import went. Of the lost records, `unread` are in the
    /// file but unreadable, as `notes` say.
    pub(super) fn finish(
        mut self,
        mut notes: Vec<String>,
        unread: u64,
    ) -> Result<Imported, ImportError> {
        self.check()?;
        self.hand_over();
        match self.lost.saturating_sub(unread) {
            0 => {}
            1 => notes.push("The file reports 1 record lost during recording.".to_owned()),
            lost => notes.push(format!(
                "The file reports {lost} records lost during recording."
            )),
        }
        match self.reading.whom {
            TraceSubject::Process(pid) if self.root.is_none() => Err(ImportError::NoProcess(pid)),
            _ if self.switches == 0 => Err(ImportError::NothingToRead(NO_SWITCHES.to_owned())),
            _ => Ok(Imported {
                root: self.root,
                notes,
            }),
        }
    }

    fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            (self.sink)(&self.batch);
            self.batch.clear();
            self.batches += 1;
        }
    }

    fn push(&mut self, raw: &RawEvent, what: EventKind) {
        self.batch.push(Event {
            time_ns: raw.time_ns,
            cpu: raw.cpu,
            what,
        });
    }

    fn thread_mut(&mut self, thread: Tid) -> &mut ThreadInfo {
        if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&thread) {
            self.threads.clear();
            self.has_too_many = true;
        }
        self.threads.entry(thread).or_default()
    }

    fn put(&mut self, raw: &RawEvent) {
        match raw.what {
            RawKind::Switch { prev, left, next } => self.switch(raw, prev, left, next),
            RawKind::In { thread } => {
                self.switches += 1;
                self.thread_mut(thread).is_on_cpu = true;
                self.push(raw, EventKind::In { thread });
            }
            RawKind::Out { thread, left } => self.out(raw, thread, left),
            RawKind::Wakeup { who, target, .. } => {
                self.meet(raw, who);
                let thread = who.thread;
                self.push(raw, EventKind::Wake { thread, target });
            }
            RawKind::Waking { who, target } => self.waking(raw, who, target),
            RawKind::Moved { who, target } => self.correct_target(raw, who, target),
            RawKind::Fork {
                parent,
                child,
                process,
            } => self.fork(raw, parent, child, process),
            RawKind::New { who, is_thread } => self.announce(raw, who, is_thread),
            RawKind::There { thread, process } => self.belongs(raw, thread, process),
            RawKind::Exit { thread } => self.exit(raw, thread),
            RawKind::Name {
                who,
                process,
                is_exec,
            } => self.name(raw, who, process, is_exec),
            RawKind::Lost { records } => {
                self.lost = self.lost.saturating_add(records);
                self.push(raw, EventKind::Lost { records });
            }
            RawKind::Nothing => {}
        }
    }

    fn switch(&mut self, raw: &RawEvent, prev: NamedThread, left: LeaveReason, next: NamedThread) {
        self.switches += 1;
        self.meet(raw, prev);
        self.meet(raw, next);
        // An ending thread may still be preempted, and comes back.
        let is_last = self.thread_mut(prev.thread).is_ending && left != LeaveReason::Preempted;
        let has_ended = left == LeaveReason::Ended || is_last && !self.reading.has_ends;
        let is_thread = prev.thread != IDLE;
        let left = match has_ended && is_thread {
            true => LeaveReason::Ended,
            false => left,
        };
        self.push(
            raw,
            EventKind::Switch {
                prev: prev.thread,
                left,
                next: next.thread,
            },
        );
        if left == LeaveReason::Ended {
            self.handle_exit(raw, prev.thread);
        }
    }

    fn waking(&mut self, raw: &RawEvent, who: NamedThread, target: u32) {
        if self.reading.has_wakeups {
            return;
        }
        self.meet(raw, who);
        let thread = who.thread;
        self.thread_mut(thread).waking = Some(Waking {
            cpu: raw.cpu,
            batch: self.batches,
            index: self.batch.len(),
        });
        self.push(raw, EventKind::Wake { thread, target });
    }

    /// A waking thread is queued where its waker moves it, at once: this corrects the wake-up.
    fn correct_target(&mut self, raw: &RawEvent, who: NamedThread, target: u32) {
        self.meet(raw, who);
        let batch = self.batches;
        let waking = self.thread_mut(who.thread).waking.take();
        let waking = waking.filter(|w| w.cpu == raw.cpu && w.batch == batch);
        let event = waking.and_then(|w| self.batch.get_mut(w.index));
        if let Some(event) = event {
            let thread = who.thread;
            event.what = EventKind::Wake { thread, target };
        }
    }

    fn out(&mut self, raw: &RawEvent, thread: Tid, left: LeaveReason) {
        self.switches += 1;
        self.thread_mut(thread).is_on_cpu = false;
        self.push(raw, EventKind::Out { thread, left });
    }

    fn fork(&mut self, raw: &RawEvent, parent: Tid, child: NamedThread, process: Option<Tid>) {
        let thread = child.thread;
        let announced = self.thread_mut(thread).announced.take();
        if announced.is_none() {
            self.reuse(raw, thread);
        }
        let origin = *self.thread_mut(parent);
        let process = process.unwrap_or(match announced {
            Some(true) => origin.process.unwrap_or(parent),
            _ => thread,
        });
        self.thread_mut(thread).process = Some(process);
        self.push(
            raw,
            EventKind::Fork {
                parent,
                child: thread,
                process,
            },
        );
        self.follow_if_asked(raw, thread, process);
        // It begins with its parent's name, which perf does not repeat.
        let name = match child.name.is_empty() {
            true => origin.name,
            false => child.name,
        };
        self.meet(raw, NamedThread { thread, name });
    }

    fn announce(&mut self, raw: &RawEvent, who: NamedThread, is_thread: bool) {
        self.reuse(raw, who.thread);
        self.thread_mut(who.thread).announced = Some(is_thread);
    }

    /// An id is reused although its owner was not seen to end.
    fn reuse(&mut self, raw: &RawEvent, thread: Tid) {
        let known = self.threads.get(&thread);
        if known.is_some_and(|info| info.process.is_some() || !info.name.is_empty()) {
            self.handle_exit(raw, thread);
        }
    }

    /// The kernel reports an end before the thread's last switch, and a thread that is gone cannot
    /// switch: if all switches are recorded, the end is emitted after it. If perf watched single
    /// threads, the last switch is missing.
    fn exit(&mut self, raw: &RawEvent, thread: Tid) {
        if self.reading.has_last_switch {
            self.thread_mut(thread).is_ending = true;
            return;
        }
        if self.thread_mut(thread).is_on_cpu {
            self.out(raw, thread, LeaveReason::Ended);
        }
        self.handle_exit(raw, thread);
    }

    fn handle_exit(&mut self, raw: &RawEvent, thread: Tid) {
        self.threads.remove(&thread);
        self.push(raw, EventKind::Exit { thread });
    }

    fn name(&mut self, raw: &RawEvent, who: NamedThread, process: Option<Tid>, is_exec: bool) {
        let was = self.thread_mut(who.thread).name.text();
        if let Some(process) = process {
            self.belongs(raw, who.thread, process);
        }
        self.meet(raw, who);
        let is_command = &*was == prefix::PERF_EXEC || self.reading.starts_command;
        if is_exec
            && is_command
            && self.root.is_none()
            && self.reading.whom == TraceSubject::Default
        {
            self.follow(raw, who.thread);
        }
    }

    /// Emits a thread's name if it changed.
    fn meet(&mut self, raw: &RawEvent, who: NamedThread) {
        let thread = who.thread;
        if thread == IDLE {
            return;
        }
        if self.reading.whom == TraceSubject::Process(thread)
            && self.thread_mut(thread).process.is_none()
        {
            self.belongs(raw, thread, thread);
        }
        let info = self.thread_mut(thread);
        if !who.name.is_empty() && info.name != who.name {
            info.name = who.name;
            let name = who.name.text();
            self.push(raw, EventKind::Name { thread, name });
        }
    }

    /// Emits a thread's process if it is new.
    fn belongs(&mut self, raw: &RawEvent, thread: Tid, process: Tid) {
        if thread == IDLE || process <= 0 {
            return;
        }
        let info = self.thread_mut(thread);
        if info.process != Some(process) {
            info.process = Some(process);
            self.push(raw, EventKind::Known { thread, process });
            self.follow_if_asked(raw, thread, process);
        }
    }

    fn follow_if_asked(&mut self, raw: &RawEvent, thread: Tid, process: Tid) {
        if self.reading.whom == TraceSubject::Process(process) {
            self.follow(raw, thread);
        }
    }

    fn follow(&mut self, raw: &RawEvent, thread: Tid) {
        self.root.get_or_insert(thread);
        if self.thread_mut(thread).process.is_none() {
            self.belongs(raw, thread, thread);
        }
        self.push(raw, EventKind::Follow { thread });
    }
}

/// What to record instead of a file without a switch.
pub(super) const NO_SWITCHES: &str = "it has no switches of threads; record them: perf sched record, perf record --switch-events, or trace-cmd record -e sched";
