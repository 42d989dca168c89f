//! Writes events as a trace for <https://ui.perfetto.dev>, in Perfetto's own format: a sequence of
//! packets, whose field numbers are in `protos/perfetto/trace/` of its repository.
//!
//! Switches and wake-ups become the ftrace events from which Perfetto draws CPUs and threads.
//! Threads have their processes and names, findings a track of their own. An event that names only
//! the thread that comes or leaves becomes a switch from or to the idle thread: the other thread is
//! unknown.

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

/// The sequence id of pinwise's packets; Perfetto needs one per writer.
const SEQUENCE_ID: u64 = 0x70_696e;

/// The priority of ordinary threads; events do not have priorities.
const ORDINARY_PRIORITY: i64 = 120;

/// The id of the track of findings.
const FINDINGS_TRACK: u64 = 1;

/// The id of a polled thread's track is this plus the thread's id.
const FIRST_POLLED_TRACK: u64 = 1 << 32;

/// Writes events for Perfetto.
#[derive(Debug)]
pub struct TracePerfetto<W: Write> {
    writer: W,
    names: Names,
    processes: HashMap<Tid, Tid>,
    running: HashMap<u32, Tid>,
    has_track: HashSet<Tid>,
    /// Consecutive events of one CPU, which share a packet.
    bundle: Message,
    bundle_cpu: Option<u32>,
    packet: Message,
    latest_ns: u64,
}

impl<W: Write> TracePerfetto<W> {
    /// Makes a writer; nothing is written yet.
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
    /// Errors of the writer.
    pub fn write(&mut self, events: &[Event]) -> io::Result<()> {
        for event in events {
            self.latest_ns = self.latest_ns.max(event.time_ns);
            self.write_event(event)?;
        }
        self.flush_bundle()
    }

    /// Writes findings, as sentences, at the end of the trace on a track of their own; then flushes
    /// the writer.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn finish<'a>(mut self, findings: impl Iterator<Item = &'a str>) -> io::Result<()> {
        let mut has_track = false;
        for sentence in findings {
            if !has_track {
                self.write_track(FINDINGS_TRACK, "pinwise: findings", false)?;
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
        self.names.remember(event);
        match &event.what {
            EventKind::Switch { prev, left, next } => {
                self.write_switch(event, *prev, *left, *next)?
            }
            EventKind::In { thread } => {
                let before = self.running.get(&event.cpu).copied().unwrap_or(IDLE);
                self.write_switch(event, before, LeaveReason::Unreported, *thread)?;
            }
            EventKind::Out { thread, left } => self.write_switch(event, *thread, *left, IDLE)?,
            EventKind::Wake { thread, target } => self.write_wake(event, *thread, *target)?,
            EventKind::Fork {
                parent,
                child,
                process,
            } => self.write_fork(event, *parent, *child, *process)?,
            EventKind::Exit { thread } => self.write_exit(event, *thread)?,
            EventKind::Known { thread, process } => {
                self.processes.insert(*thread, *process);
                self.write_thread(event.time_ns, *thread)?;
            }
            EventKind::Name { thread, name } => self.write_name(event, *thread, &old_name, name)?,
            EventKind::Lost { .. } => self.write_lost(event.cpu)?,
            EventKind::Sample(sample) => {
                self.write_sample(event.time_ns, sample.thread, sample.cpu)?
            }
            EventKind::Follow { .. } | EventKind::Mask { .. } | EventKind::Usage { .. } => {}
        }
        Ok(())
    }

    fn write_switch(
        &mut self,
        event: &Event,
        prev: Tid,
        left: LeaveReason,
        next: Tid,
    ) -> io::Result<()> {
        let mut switch = Message::default();
        switch.put_text(1, self.names.name(prev));
        switch.put_signed(2, prev.into());
        switch.put_signed(3, ORDINARY_PRIORITY);
        switch.put_signed(4, to_kernel_state(left));
        switch.put_text(5, self.names.name(next));
        switch.put_signed(6, next.into());
        switch.put_signed(7, ORDINARY_PRIORITY);
        self.running.insert(event.cpu, next);
        self.write_ftrace_event(event, prev, SCHED_SWITCH, &switch)
    }

    fn write_wake(&mut self, event: &Event, thread: Tid, target: u32) -> io::Result<()> {
        let mut waking = Message::default();
        waking.put_text(1, self.names.name(thread));
        waking.put_signed(2, thread.into());
        waking.put_signed(3, ORDINARY_PRIORITY);
        waking.put_signed(4, 1);
        waking.put_number(5, target.into());
        let waker = self.running.get(&event.cpu).copied().unwrap_or(IDLE);
        self.write_ftrace_event(event, waker, SCHED_WAKING, &waking)
    }

    fn write_fork(
        &mut self,
        event: &Event,
        parent: Tid,
        child: Tid,
        process: Tid,
    ) -> io::Result<()> {
        self.processes.insert(child, process);
        let mut task = Message::default();
        task.put_signed(1, child.into());
        task.put_text(2, self.names.name(child));
        task.put_number(3, if child == process { 0 } else { CLONE_THREAD });
        self.write_ftrace_event(event, parent, TASK_NEWTASK, &task)?;
        self.write_thread(event.time_ns, child)
    }

    fn write_exit(&mut self, event: &Event, thread: Tid) -> io::Result<()> {
        let mut exit = Message::default();
        exit.put_text(1, self.names.name(thread));
        exit.put_signed(2, thread.into());
        if let Some(process) = self.processes.remove(&thread) {
            exit.put_signed(3, process.into());
        }
        exit.put_signed(4, ORDINARY_PRIORITY);
        self.write_ftrace_event(event, thread, SCHED_PROCESS_EXIT, &exit)?;
        self.has_track.remove(&thread);
        Ok(())
    }

    fn write_name(&mut self, event: &Event, thread: Tid, old: &str, new: &str) -> io::Result<()> {
        let mut rename = Message::default();
        rename.put_signed(1, thread.into());
        rename.put_text(2, old);
        rename.put_text(3, new);
        self.write_ftrace_event(event, thread, TASK_RENAME, &rename)?;
        self.write_thread(event.time_ns, thread)
    }

    /// Writes a thread and its process, with their names.
    fn write_thread(&mut self, time_ns: u64, thread: Tid) -> io::Result<()> {
        let Some(&process) = self.processes.get(&thread) else {
            return Ok(());
        };
        let mut tree = Message::default();
        let mut described = Message::default();
        described.put_signed(1, process.into());
        let name = self.names.name(process);
        if !name.is_empty() {
            described.put_text(3, name);
            // Of the command line only the name is known.
            described.put_number(9, 1);
        }
        tree.put_message(1, &described);
        described.clear();
        described.put_signed(1, thread.into());
        let name = self.names.name(thread);
        if !name.is_empty() {
            described.put_text(2, name);
        }
        described.put_signed(3, process.into());
        tree.put_message(2, &described);
        self.flush_bundle()?;
        self.packet.put_number(TIMESTAMP, time_ns);
        self.packet.put_message(PROCESS_TREE, &tree);
        self.flush_packet()
    }

    /// Writes the CPU on which polling saw a thread, as a counter.
    fn write_sample(&mut self, time_ns: u64, thread: Tid, cpu: u32) -> io::Result<()> {
        let track = FIRST_POLLED_TRACK + u64::from(thread.cast_unsigned());
        if self.has_track.insert(thread) {
            let name = format!("CPU of {} ({thread})", self.names.name(thread));
            self.write_track(track, &name, true)?;
        }
        let mut counter = Message::default();
        counter.put_number(9, 4);
        counter.put_number(11, track);
        counter.put_number(30, cpu.into());
        self.flush_bundle()?;
        self.packet.put_number(TIMESTAMP, time_ns);
        self.packet.put_message(TRACK_EVENT, &counter);
        self.flush_packet()
    }

    fn write_track(&mut self, uuid: u64, name: &str, is_counter: bool) -> io::Result<()> {
        let mut track = Message::default();
        track.put_number(1, uuid);
        track.put_text(2, name);
        if is_counter {
            track.put_message(8, &Message::default());
        }
        self.flush_bundle()?;
        self.packet.put_message(TRACK_DESCRIPTOR, &track);
        self.flush_packet()
    }

    fn write_note(&mut self, sentence: &str) -> io::Result<()> {
        let mut instant = Message::default();
        instant.put_number(9, 3);
        instant.put_number(11, FINDINGS_TRACK);
        instant.put_text(22, "pinwise");
        instant.put_text(23, sentence);
        self.packet.put_number(TIMESTAMP, self.latest_ns);
        self.packet.put_message(TRACK_EVENT, &instant);
        self.flush_packet()
    }

    fn write_lost(&mut self, cpu: u32) -> io::Result<()> {
        self.open_bundle(cpu)?;
        self.running.remove(&cpu);
        self.bundle.put_number(3, 1);
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
        ftrace.put_number(1, event.time_ns);
        ftrace.put_number(2, u64::from(current.cast_unsigned()));
        ftrace.put_message(field, inside);
        self.bundle.put_message(2, &ftrace);
        Ok(())
    }

    fn open_bundle(&mut self, cpu: u32) -> io::Result<()> {
        if self.bundle_cpu != Some(cpu) {
            self.flush_bundle()?;
            self.bundle.put_number(1, cpu.into());
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
        self.packet.put_number(SEQUENCE, SEQUENCE_ID);
        let mut framed = Message::default();
        framed.put_message(PACKET, &self.packet);
        self.packet.clear();
        self.writer.write_all(framed.bytes())
    }
}

/// The kernel's state of a thread that left the CPU. If the reason is unknown, the thread is
/// shown as asleep: most are.
const fn to_kernel_state(left: LeaveReason) -> i64 {
    match left {
        LeaveReason::Preempted => 0,
        LeaveReason::Blocked | LeaveReason::Unreported => 1,
        LeaveReason::Ended => 16,
    }
}
