//! Events as a trace for <https://ui.perfetto.dev>: Perfetto's own format, a
//! sequence of packets (`protos/perfetto/trace/` in its repository has the
//! numbers of the fields).
//!
//! Switches and wake-ups become the ftrace events from which Perfetto draws CPUs and threads;
//! threads get their processes and names; findings have a track of their own. Half switches of
//! single threads become switches from and to idling, for the others are not known.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use super::Names;
use super::proto::Message;
use pinwise_sched::{Event, EventKind, IDLE, LeaveReason, Tid};

/// `Trace.packet`, and fields of `TracePacket`.
const PACKET: u32 = 1;
const FTRACE_EVENTS: u32 = 1;
const PROCESS_TREE: u32 = 2;
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const TRACK_EVENT: u32 = 11;
const TRACK_DESCRIPTOR: u32 = 60;

/// Fields of `FtraceEvent`.
const SCHED_SWITCH: u32 = 4;
const SCHED_WAKING: u32 = 20;
const TASK_NEWTASK: u32 = 235;
const TASK_RENAME: u32 = 236;
const SCHED_PROCESS_EXIT: u32 = 238;

/// `clone(2)`: the child is a thread of its parent's process.
const CLONE_THREAD: u64 = 0x10000;

/// pinwise's number as a writer; Perfetto wants one per writer.
const WRITER: u64 = 0x70_696e;

/// The priority of ordinary threads; events do not have it.
const ORDINARY: i64 = 120;

/// The track of findings.
const FINDINGS: u64 = 1;

/// Tracks of polled threads, by their numbers, begin here.
const POLLED: u64 = 1 << 32;

/// Writes events for Perfetto.
#[derive(Debug)]
pub struct TracePerfetto<W: Write> {
    writer: W,
    names: Names,
    processes: HashMap<Tid, Tid>,
    running: HashMap<u32, Tid>,
    has_track: HashSet<Tid>,
    /// Events of one CPU that follow each other share a packet.
    bundle: Message,
    bundle_cpu: Option<u32>,
    packet: Message,
    latest_ns: u64,
}

impl<W: Write> TracePerfetto<W> {
    /// Nothing is written yet.
    pub fn new(writer: W) -> Self {
        Self {
            writer,
            names: Names::default(),
            processes: HashMap::new(),
            running: HashMap::new(),
            has_track: HashSet::new(),
            bundle: Message::default(),
            bundle_cpu: None,
            packet: Message::default(),
            latest_ns: 0,
        }
    }

    /// Writes events.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(&mut self, events: &[Event]) -> io::Result<()> {
        for event in events {
            self.latest_ns = self.latest_ns.max(event.time_ns);
            self.write_event(event)?;
        }
        self.flush_bundle()
    }

    /// Writes findings, as sentences, at the end of the trace on a track of their own; then
    /// everything that is held back.
    ///
    /// # Errors
    /// What the writer says.
    pub fn finish<'a>(mut self, findings: impl Iterator<Item = &'a str>) -> io::Result<()> {
        let mut has_track = false;
        for sentence in findings {
            if !has_track {
                self.track(FINDINGS, "pinwise: findings", false)?;
                has_track = true;
            }
            self.write_note(sentence)?;
        }
        self.writer.flush()
    }

    fn write_event(&mut self, event: &Event) -> io::Result<()> {
        let old_name = match &event.what {
            EventKind::Name { thread, .. } => self.names.name(*thread).to_owned(),
            _ => String::new(),
        };
        self.names.take(event);
        match &event.what {
            EventKind::Switch { prev, left, next } => self.switch(event, *prev, *left, *next)?,
            EventKind::In { thread } => {
                let before = self.running.get(&event.cpu).copied().unwrap_or(IDLE);
                self.switch(event, before, LeaveReason::Unreported, *thread)?;
            }
            EventKind::Out { thread, left } => self.switch(event, *thread, *left, IDLE)?,
            EventKind::Wake { thread, target } => self.wake(event, *thread, *target)?,
            EventKind::Fork {
                parent,
                child,
                process,
            } => self.fork(event, *parent, *child, *process)?,
            EventKind::Exit { thread } => self.exit(event, *thread)?,
            EventKind::Known { thread, process } => {
                self.processes.insert(*thread, *process);
                self.write_thread(event.time_ns, *thread)?;
            }
            EventKind::Name { thread, name } => self.rename(event, *thread, &old_name, name)?,
            EventKind::Lost { .. } => self.write_lost(event.cpu)?,
            EventKind::Sample(sample) => self.sample(event.time_ns, sample.thread, sample.cpu)?,
            EventKind::Follow { .. } | EventKind::Mask { .. } | EventKind::Usage { .. } => {}
        }
        Ok(())
    }

    fn switch(&mut self, event: &Event, prev: Tid, left: LeaveReason, next: Tid) -> io::Result<()> {
        let mut switch = Message::default();
        switch.text(1, self.names.name(prev));
        switch.put_signed(2, prev.into());
        switch.put_signed(3, ORDINARY);
        switch.put_signed(4, state(left));
        switch.text(5, self.names.name(next));
        switch.put_signed(6, next.into());
        switch.put_signed(7, ORDINARY);
        self.running.insert(event.cpu, next);
        self.write_ftrace_event(event, prev, SCHED_SWITCH, &switch)
    }

    fn wake(&mut self, event: &Event, thread: Tid, target: u32) -> io::Result<()> {
        let mut waking = Message::default();
        waking.text(1, self.names.name(thread));
        waking.put_signed(2, thread.into());
        waking.put_signed(3, ORDINARY);
        waking.put_signed(4, 1);
        waking.number(5, target.into());
        let waker = self.running.get(&event.cpu).copied().unwrap_or(IDLE);
        self.write_ftrace_event(event, waker, SCHED_WAKING, &waking)
    }

    fn fork(&mut self, event: &Event, parent: Tid, child: Tid, process: Tid) -> io::Result<()> {
        self.processes.insert(child, process);
        let mut task = Message::default();
        task.put_signed(1, child.into());
        task.text(2, self.names.name(child));
        task.number(3, if child == process { 0 } else { CLONE_THREAD });
        self.write_ftrace_event(event, parent, TASK_NEWTASK, &task)?;
        self.write_thread(event.time_ns, child)
    }

    fn exit(&mut self, event: &Event, thread: Tid) -> io::Result<()> {
        let mut exit = Message::default();
        exit.text(1, self.names.name(thread));
        exit.put_signed(2, thread.into());
        if let Some(process) = self.processes.remove(&thread) {
            exit.put_signed(3, process.into());
        }
        exit.put_signed(4, ORDINARY);
        self.write_ftrace_event(event, thread, SCHED_PROCESS_EXIT, &exit)?;
        self.has_track.remove(&thread);
        Ok(())
    }

    fn rename(&mut self, event: &Event, thread: Tid, old: &str, new: &str) -> io::Result<()> {
        let mut rename = Message::default();
        rename.put_signed(1, thread.into());
        rename.text(2, old);
        rename.text(3, new);
        self.write_ftrace_event(event, thread, TASK_RENAME, &rename)?;
        self.write_thread(event.time_ns, thread)
    }

    /// A thread with its process and both their names.
    fn write_thread(&mut self, time_ns: u64, thread: Tid) -> io::Result<()> {
        let Some(&process) = self.processes.get(&thread) else {
            return Ok(());
        };
        let mut tree = Message::default();
        let mut described = Message::default();
        described.put_signed(1, process.into());
        let name = self.names.name(process);
        if !name.is_empty() {
            described.text(3, name);
            // Only this is known of the command line.
            described.number(9, 1);
        }
        tree.put_message(1, &described);
        described.clear();
        described.put_signed(1, thread.into());
        let name = self.names.name(thread);
        if !name.is_empty() {
            described.text(2, name);
        }
        described.put_signed(3, process.into());
        tree.put_message(2, &described);
        self.flush_bundle()?;
        self.packet.number(TIMESTAMP, time_ns);
        self.packet.put_message(PROCESS_TREE, &tree);
        self.flush_packet()
    }

    /// The CPU on which polling saw a thread, as a counter.
    fn sample(&mut self, time_ns: u64, thread: Tid, cpu: u32) -> io::Result<()> {
        let track = POLLED + u64::from(thread.cast_unsigned());
        if self.has_track.insert(thread) {
            let name = format!("CPU of {} ({thread})", self.names.name(thread));
            self.track(track, &name, true)?;
        }
        let mut counter = Message::default();
        counter.number(9, 4);
        counter.number(11, track);
        counter.number(30, cpu.into());
        self.flush_bundle()?;
        self.packet.number(TIMESTAMP, time_ns);
        self.packet.put_message(TRACK_EVENT, &counter);
        self.flush_packet()
    }

    fn track(&mut self, uuid: u64, name: &str, is_counter: bool) -> io::Result<()> {
        let mut track = Message::default();
        track.number(1, uuid);
        track.text(2, name);
        if is_counter {
            track.put_message(8, &Message::default());
        }
        self.flush_bundle()?;
        self.packet.put_message(TRACK_DESCRIPTOR, &track);
        self.flush_packet()
    }

    fn write_note(&mut self, sentence: &str) -> io::Result<()> {
        let mut instant = Message::default();
        instant.number(9, 3);
        instant.number(11, FINDINGS);
        instant.text(22, "pinwise");
        instant.text(23, sentence);
        self.packet.number(TIMESTAMP, self.latest_ns);
        self.packet.put_message(TRACK_EVENT, &instant);
        self.flush_packet()
    }

    fn write_lost(&mut self, cpu: u32) -> io::Result<()> {
        self.open_bundle(cpu)?;
        self.running.remove(&cpu);
        self.bundle.number(3, 1);
        Ok(())
    }

    fn write_ftrace_event(
        &mut self,
        event: &Event,
        current: Tid,
        field: u32,
        inside: &Message,
    ) -> io::Result<()> {
        self.open_bundle(event.cpu)?;
        let mut ftrace = Message::default();
        ftrace.number(1, event.time_ns);
        ftrace.number(2, u64::from(current.cast_unsigned()));
        ftrace.put_message(field, inside);
        self.bundle.put_message(2, &ftrace);
        Ok(())
    }

    fn open_bundle(&mut self, cpu: u32) -> io::Result<()> {
        if self.bundle_cpu != Some(cpu) {
            self.flush_bundle()?;
            self.bundle.number(1, cpu.into());
            self.bundle_cpu = Some(cpu);
        }
        Ok(())
    }

    fn flush_bundle(&mut self) -> io::Result<()> {
        if self.bundle_cpu.take().is_some() {
            self.packet.put_message(FTRACE_EVENTS, &self.bundle);
            self.bundle.clear();
            self.flush_packet()?;
        }
        Ok(())
    }

    fn flush_packet(&mut self) -> io::Result<()> {
        self.packet.number(SEQUENCE, WRITER);
        let mut framed = Message::default();
        framed.put_message(PACKET, &self.packet);
        self.packet.clear();
        self.writer.write_all(framed.bytes())
    }
}

/// The kernel's state of a thread that left. One whose reason is unknown is
/// shown as asleep: most are.
const fn state(left: LeaveReason) -> i64 {
    match left {
        LeaveReason::Preempted => 0,
        LeaveReason::Blocked | LeaveReason::Unreported => 1,
        LeaveReason::Ended => 16,
    }
}
