//! Converts the records of one CPU to events.
//!
//! Each kind of source records a switch in its own way: as two halves (a thread leaves, the next
//! arrives) if either is of the traced program, as two halves of any threads, or as one tracepoint.
//! A lane tracks the thread on its CPU, so that no switch is emitted twice. It does not invent what
//! is missing: a half without its other half is emitted as it is.

use pinwise_sched::perf::{Native, Record};
use pinwise_sched::{
    Event, EventKind, Field, FormatError, IDLE, LeaveReason, States, Tid, TracepointFormat,
};

/// How switches are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SwitchFormat {
    /// `PERF_RECORD_SWITCH`.
    OwnThreads,
    /// `PERF_RECORD_SWITCH_CPU_WIDE`.
    CpuWide,
    /// Tracepoints with these fields.
    Tracepoints(Box<TracepointOffsets>),
}

/// Offsets of the numbers in the scheduler's tracepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TracepointOffsets {
    kind: Field,
    switch: SwitchPoint,
    wakeups: [WakePoint; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SwitchPoint {
    id: u64,
    prev: Field,
    state: Field,
    next: Field,
    states: States,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WakePoint {
    id: u64,
    thread: Field,
    target: Field,
}

impl TracepointOffsets {
    /// Finds the offsets in the formats of `sched_switch`, `sched_wakeup` and `sched_wakeup_new`.
    pub(super) fn new(
        switch: &TracepointFormat,
        wakeups: [&TracepointFormat; 2],
    ) -> Result<Self, FormatError> {
        let wake = |format: &TracepointFormat| -> Result<WakePoint, FormatError> {
            Ok(WakePoint {
                id: format.id,
                thread: format.number("pid")?,
                target: format.number("target_cpu")?,
            })
        };
        Ok(Self {
            kind: switch.number("common_type")?,
            switch: SwitchPoint {
                id: switch.id,
                prev: switch.number("prev_pid")?,
                state: switch.number("prev_state")?,
                next: switch.number("next_pid")?,
                states: switch.states.ok_or(FormatError::NoStates)?,
            },
            wakeups: [wake(wakeups[0])?, wake(wakeups[1])?],
        })
    }

    /// Decodes a tracepoint's record; `None` if it is of another tracepoint or too short.
    fn decode(&self, raw: &[u8]) -> Option<EventKind> {
        let tid = |field: Field| field.small(raw, Native);
        let id = u64::try_from(self.kind.number(raw, Native)?).ok()?;
        if id == self.switch.id {
            let state = self.switch.state.number(raw, Native)?.cast_unsigned();
            return Some(EventKind::Switch {
                prev: tid(self.switch.prev)?,
                left: self.switch.states.find_leave_reason(state),
                next: tid(self.switch.next)?,
            });
        }
        let wake = self.wakeups.iter().find(|wake| wake.id == id)?;
        Some(EventKind::Wake {
            thread: tid(wake.thread)?,
            target: u32::try_from(wake.target.small(raw, Native)?).ok()?,
        })
    }
}

/// The events of one CPU.
#[derive(Debug)]
pub(super) struct Lane {
    cpu: u32,
    format: SwitchFormat,
    /// The thread on the CPU, if known.
    current: Option<Tid>,
    /// The thread of a switch whose second half is still missing.
    awaited: Option<Tid>,
}

impl Lane {
    pub(super) const fn new(cpu: u32, format: SwitchFormat) -> Self {
        Self {
            cpu,
            format,
            current: None,
            awaited: None,
        }
    }

    /// Appends the events of a record.
    pub(super) fn take(
        &mut self,
        time_ns: u64,
        thread: Tid,
        record: Record<'_>,
        events: &mut Vec<Event>,
    ) {
        let cpu = self.cpu;
        let mut emit = |what| events.push(Event { time_ns, cpu, what });
        match record {
            Record::Switch {
                other,
                is_out,
                is_preempted,
            } => match other {
                None => self.take_half_switch(thread, is_out, is_preempted, &mut emit),
                Some(other) => {
                    emit_some(
                        self.take_half_of_any(thread, other, is_out, is_preempted),
                        &mut emit,
                    );
                }
            },
            Record::Sample { raw } => {
                if let SwitchFormat::Tracepoints(offsets) = &self.format {
                    emit_some(offsets.decode(raw), &mut emit);
                }
            }
            Record::Fork(task) => emit(EventKind::Fork {
                parent: task.parent,
                child: task.thread,
                process: task.process,
            }),
            Record::Exit(task) => self.take_exit(task.thread, &mut emit),
            Record::Comm {
                thread,
                is_exec,
                name,
                ..
            } => {
                self.take_exec(thread, is_exec, &mut emit);
                let name = String::from_utf8_lossy(name).into();
                emit(EventKind::Name { thread, name });
            }
            Record::Lost { records } => {
                self.forget();
                emit(EventKind::Lost { records });
            }
            Record::Throttle | Record::Damaged => {
                self.forget();
                emit(EventKind::Lost { records: 1 });
            }
        }
    }

    /// Forgets which thread is on the CPU, because records are missing.
    const fn forget(&mut self) {
        self.current = None;
        self.awaited = None;
    }

    /// Takes half a switch of a traced thread. A thread that was created while its creator was
    /// being attached to may have two events, which report each half twice.
    fn take_half_switch(
        &mut self,
        thread: Tid,
        is_out: bool,
        is_preempted: bool,
        emit: &mut dyn FnMut(EventKind),
    ) {
        if !is_out {
            if self.current != Some(thread) {
                emit(EventKind::In { thread });
            }
            self.current = Some(thread);
            self.awaited = None;
        } else if self.awaited != Some(thread) {
            let left = if is_preempted {
                LeaveReason::Preempted
            } else {
                LeaveReason::Blocked
            };
            emit(EventKind::Out { thread, left });
            self.current = None;
            self.awaited = Some(thread);
        }
    }

    /// Takes half a switch of any thread, which names both threads. The first half gives the whole
    /// event; the second one is used only if the first is missing.
    fn take_half_of_any(
        &mut self,
        thread: Tid,
        other: Tid,
        is_out: bool,
        is_preempted: bool,
    ) -> Option<EventKind> {
        if is_out {
            // A thread that was reaped before its last switch has no id there.
            let was_reaped = thread < IDLE;
            let prev = if was_reaped { self.current? } else { thread };
            // A thread that has ended may block during its exit, and run again.
            let left = if was_reaped {
                LeaveReason::Ended
            } else if is_preempted {
                LeaveReason::Preempted
            } else {
                LeaveReason::Blocked
            };
            self.current = Some(other);
            self.awaited = Some(other);
            return Some(EventKind::Switch {
                prev,
                left,
                next: other,
            });
        }
        let was_reported = self.awaited.take() == Some(thread);
        self.current = Some(thread);
        // The first half is missing: at the very beginning, or lost.
        (!was_reported && other >= IDLE).then_some(EventKind::Switch {
            prev: other,
            left: LeaveReason::Unreported,
            next: thread,
        })
    }

    /// Takes the end of a thread. A program's own thread reports no switch after that, so its last
    /// one is emitted here.
    fn take_exit(&mut self, thread: Tid, emit: &mut dyn FnMut(EventKind)) {
        if self.format == SwitchFormat::OwnThreads && self.current == Some(thread) {
            let left = LeaveReason::Ended;
            emit(EventKind::Out { thread, left });
            self.current = None;
        }
        emit(EventKind::Exit { thread });
    }

    /// Takes the execution of a program. Recording of a command begins with it, so this may be the
    /// first sign that the thread is on the CPU.
    fn take_exec(&mut self, thread: Tid, is_exec: bool, emit: &mut dyn FnMut(EventKind)) {
        if is_exec && self.format == SwitchFormat::OwnThreads && self.current != Some(thread) {
            emit(EventKind::In { thread });
            self.current = Some(thread);
            self.awaited = None;
        }
    }
}

fn emit_some(what: Option<EventKind>, emit: &mut dyn FnMut(EventKind)) {
    if let Some(what) = what {
        emit(what);
    }
}

#[cfg(test)]
mod tests;
