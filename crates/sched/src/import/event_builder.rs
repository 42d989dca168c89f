//! Turns the reports of tracers into [`Event`]s: a name once instead of with every switch, a
//! thread's process as soon as it is known, the followed threads, and an end for every ended
//! thread.
//!
//! Memory grows with threads only, up to a limit.

use foldhash::{HashMap, HashMapExt};

use super::raw_event::{Comm, NamedThread, RawEvent, RawKind};
use super::{ImportError, Imported, TraceSubject, prefix};
use crate::{Event, EventKind, IDLE, LeaveReason, Tid};

/// Events passed to the sink at once.
const BATCH: usize = 1024;

/// Limits the threads that live at the same time. The analysis keeps 400 bytes for each; a kernel
/// allows 4 million ids.
const MAX_THREADS: usize = 1 << 18;

/// What the events of a file mean, and whose trace it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadOptions {
    pub(super) subject: TraceSubject,
    /// `sched_wakeup` is recorded; `sched_waking` before it is then skipped.
    pub(super) has_wakeups: bool,
    /// A thread that announced its end switches once more.
    pub(super) has_last_switch: bool,
    /// Switches say which one is a thread's last.
    pub(super) has_ends: bool,
    /// The first executed program is the command, whatever name its thread had.
    pub(super) starts_command: bool,
}

/// The state of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadInfo {
    name: Comm,
    process: Option<Tid>,
    /// It announced its end and will switch once more.
    is_ending: bool,
    /// The last `sched_waking` of the thread; a move can still correct its CPU.
    waking: Option<Waking>,
    /// It arrived on a CPU and has not left it; known from half switches only.
    is_on_cpu: bool,
    /// Set if its start was announced: whether it is a thread of its parent's process.
    announced: Option<bool>,
}

/// Where the event of a wake-up is: the waking CPU, and the index in the batch with this number.
#[derive(Debug, Clone, Copy)]
struct Waking {
    cpu: u32,
    batch: u64,
    index: usize,
}

/// Turns raw events into events.
pub(super) struct EventBuilder<'a> {
    options: ReadOptions,
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
    pub(super) fn new(options: ReadOptions, sink: &'a mut dyn FnMut(&[Event])) -> Self {
        Self {
            options,
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
            self.set_process(raw, thread, process);
        }
        self.handle(raw);
        if self.batch.len() >= BATCH {
            self.emit_batch();
        }
    }

    /// Refuses a file with too many threads.
    pub(super) const fn check_limits(&self) -> Result<(), ImportError> {
        match self.has_too_many {
            true => Err(ImportError::TooManyThreads(MAX_THREADS)),
            false => Ok(()),
        }
    }

    /// Emits the last batch. Of the lost records, `unread` are in the file but unreadable, which
    /// `notes` say already.
    pub(super) fn finish(
        mut self,
        mut notes: Vec<String>,
        unread: u64,
    ) -> Result<Imported, ImportError> {
        self.check_limits()?;
        self.emit_batch();
        match self.lost.saturating_sub(unread) {
            0 => {}
            1 => notes.push("The file reports 1 record lost during recording.".to_owned()),
            lost => notes.push(format!(
                "The file reports {lost} records lost during recording."
            )),
        }
        match self.options.subject {
            TraceSubject::Process(pid) if self.root.is_none() => Err(ImportError::NoProcess(pid)),
            _ if self.switches == 0 => Err(ImportError::NothingToRead(NO_SWITCHES.to_owned())),
            _ => Ok(Imported {
                root: self.root,
                notes,
            }),
        }
    }

    fn emit_batch(&mut self) {
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

    fn handle(&mut self, raw: &RawEvent) {
        match raw.what {
            RawKind::Switch { prev, left, next } => self.handle_switch(raw, prev, left, next),
            RawKind::In { thread } => {
                self.switches += 1;
                self.thread_mut(thread).is_on_cpu = true;
                self.push(raw, EventKind::In { thread });
            }
            RawKind::Out { thread, left } => self.handle_departure(raw, thread, left),
            RawKind::Wakeup { who, target, .. } => {
                self.set_name(raw, who);
                let thread = who.thread;
                self.push(raw, EventKind::Wake { thread, target });
            }
            RawKind::Waking { who, target } => self.handle_waking(raw, who, target),
            RawKind::Moved { who, target } => self.correct_target(raw, who, target),
            RawKind::Fork {
                parent,
                child,
                process,
            } => self.handle_fork(raw, parent, child, process),
            RawKind::New { who, is_thread } => self.handle_new_task(raw, who, is_thread),
            RawKind::Existing { thread, process } => self.set_process(raw, thread, process),
            RawKind::Exit { thread } => self.handle_exit(raw, thread),
            RawKind::Name {
                who,
                process,
                is_exec,
            } => self.handle_name(raw, who, process, is_exec),
            RawKind::Lost { records } => {
                self.lost = self.lost.saturating_add(records);
                self.push(raw, EventKind::Lost { records });
            }
            RawKind::Other => {}
        }
    }

    fn handle_switch(
        &mut self,
        raw: &RawEvent,
        prev: NamedThread,
        left: LeaveReason,
        next: NamedThread,
    ) {
        self.switches += 1;
        self.set_name(raw, prev);
        self.set_name(raw, next);
        // An ending thread can still be preempted, and then runs again.
        let is_last = self.thread_mut(prev.thread).is_ending && left != LeaveReason::Preempted;
        let has_ended = left == LeaveReason::Ended || is_last && !self.options.has_ends;
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
            self.emit_exit(raw, prev.thread);
        }
    }

    fn handle_waking(&mut self, raw: &RawEvent, who: NamedThread, target: u32) {
        if self.options.has_wakeups {
            return;
        }
        self.set_name(raw, who);
        let thread = who.thread;
        self.thread_mut(thread).waking = Some(Waking {
            cpu: raw.cpu,
            batch: self.batches,
            index: self.batch.len(),
        });
        self.push(raw, EventKind::Wake { thread, target });
    }

    /// Corrects the CPU of a wake-up: a waking thread can be moved before it is queued.
    fn correct_target(&mut self, raw: &RawEvent, who: NamedThread, target: u32) {
        self.set_name(raw, who);
        let batch = self.batches;
        let waking = self.thread_mut(who.thread).waking.take();
        let waking = waking.filter(|w| w.cpu == raw.cpu && w.batch == batch);
        let event = waking.and_then(|w| self.batch.get_mut(w.index));
        if let Some(event) = event {
            let thread = who.thread;
            event.what = EventKind::Wake { thread, target };
        }
    }

    fn handle_departure(&mut self, raw: &RawEvent, thread: Tid, left: LeaveReason) {
        self.switches += 1;
        self.thread_mut(thread).is_on_cpu = false;
        self.push(raw, EventKind::Out { thread, left });
    }

    fn handle_fork(
        &mut self,
        raw: &RawEvent,
        parent: Tid,
        child: NamedThread,
        process: Option<Tid>,
    ) {
        let thread = child.thread;
        let announced = self.thread_mut(thread).announced.take();
        if announced.is_none() {
            self.end_earlier_thread(raw, thread);
        }
        let parent_info = *self.thread_mut(parent);
        let process = process.unwrap_or(match announced {
            Some(true) => parent_info.process.unwrap_or(parent),
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
        self.follow_if_requested(raw, thread, process);
        // It starts with its parent's name, which perf does not repeat.
        let name = match child.name.is_empty() {
            true => parent_info.name,
            false => child.name,
        };
        self.set_name(raw, NamedThread { thread, name });
    }

    fn handle_new_task(&mut self, raw: &RawEvent, who: NamedThread, is_thread: bool) {
        self.end_earlier_thread(raw, who.thread);
        self.thread_mut(who.thread).announced = Some(is_thread);
    }

    /// Emits the end of an earlier thread with this id, whose own end was not recorded.
    fn end_earlier_thread(&mut self, raw: &RawEvent, thread: Tid) {
        let known = self.threads.get(&thread);
        if known.is_some_and(|info| info.process.is_some() || !info.name.is_empty()) {
            self.emit_exit(raw, thread);
        }
    }

    /// The kernel reports an end before the thread's last switch, but a thread that has
    /// ended cannot switch: if all switches are recorded, the end is emitted after the last
    /// one. If perf watched single threads, the last switch is missing.
    fn handle_exit(&mut self, raw: &RawEvent, thread: Tid) {
        if self.options.has_last_switch {
            self.thread_mut(thread).is_ending = true;
            return;
        }
        if self.thread_mut(thread).is_on_cpu {
            self.handle_departure(raw, thread, LeaveReason::Ended);
        }
        self.emit_exit(raw, thread);
    }

    fn emit_exit(&mut self, raw: &RawEvent, thread: Tid) {
        self.threads.remove(&thread);
        self.push(raw, EventKind::Exit { thread });
    }

    fn handle_name(
        &mut self,
        raw: &RawEvent,
        who: NamedThread,
        process: Option<Tid>,
        is_exec: bool,
    ) {
        let old_name = self.thread_mut(who.thread).name.text();
        if let Some(process) = process {
            self.set_process(raw, who.thread, process);
        }
        self.set_name(raw, who);
        let is_command = &*old_name == prefix::PERF_EXEC || self.options.starts_command;
        if is_exec
            && is_command
            && self.root.is_none()
            && self.options.subject == TraceSubject::Default
        {
            self.follow(raw, who.thread);
        }
    }

    /// Emits a thread's name if it is known and new.
    fn set_name(&mut self, raw: &RawEvent, who: NamedThread) {
        let thread = who.thread;
        if thread == IDLE {
            return;
        }
        if self.options.subject == TraceSubject::Process(thread)
            && self.thread_mut(thread).process.is_none()
        {
            self.set_process(raw, thread, thread);
        }
        let info = self.thread_mut(thread);
        if !who.name.is_empty() && info.name != who.name {
            info.name = who.name;
            let name = who.name.text();
            self.push(raw, EventKind::Name { thread, name });
        }
    }

    /// Emits a thread's process if it is new.
    fn set_process(&mut self, raw: &RawEvent, thread: Tid, process: Tid) {
        if thread == IDLE || process <= 0 {
            return;
        }
        let info = self.thread_mut(thread);
        if info.process != Some(process) {
            info.process = Some(process);
            self.push(raw, EventKind::Known { thread, process });
            self.follow_if_requested(raw, thread, process);
        }
    }

    fn follow_if_requested(&mut self, raw: &RawEvent, thread: Tid, process: Tid) {
        if self.options.subject == TraceSubject::Process(process) {
            self.follow(raw, thread);
        }
    }

    fn follow(&mut self, raw: &RawEvent, thread: Tid) {
        self.root.get_or_insert(thread);
        if self.thread_mut(thread).process.is_none() {
            self.set_process(raw, thread, thread);
        }
        self.push(raw, EventKind::Follow { thread });
    }
}

/// Error clause for a file without switches.
pub(super) const NO_SWITCHES: &str = "it has no switches of threads; record them: perf sched record, perf record --switch-events, or trace-cmd record -e sched";
