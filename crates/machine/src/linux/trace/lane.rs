//! Turns the records of one CPU into events.
//!
//! Each kind of source writes a switch in its own way: as two halves of the program's own threads,
//! as two halves of any thread, or as one tracepoint. A lane tracks the thread on its CPU, so that
//! no switch is emitted twice. It does not repair what is missing: a half without its other half is
//! emitted as it is.

use pinwise_sched::perf::{Native, Record};
use pinwise_sched::{
    Event, EventKind, Field, FormatError, IDLE, LeaveReason, States, Tid, TracepointFormat,
};

/// How switches are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Writing {
    /// `PERF_RECORD_SWITCH`.
    Own,
    /// `PERF_RECORD_SWITCH_CPU_WIDE`.
    Wide,
    /// Tracepoints with these fields.
    Points(Box<Points>),
}

/// Offsets of the numbers in the scheduler's tracepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Points {
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

impl Points {
    /// From the formats of `sched_switch`, `sched_wakeup` and
    /// `sched_wakeup_new`.
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

    /// The event of a tracepoint; `None` if it is another one or too short.
    fn read(&self, raw: &[u8]) -> Option<EventKind> {
        let tid = |field: Field| field.small(raw, Native);
        let id = u64::try_from(self.kind.number(raw, Native)?).ok()?;
        if id == self.switch.id {
            let state = self.switch.state.number(raw, Native)?.cast_unsigned();
            return Some(EventKind::Switch {
                prev: tid(self.switch.prev)?,
                left: self.switch.states.left(state),
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
    writing: Writing,
    /// The thread on the CPU, if known.
    current: Option<Tid>,
    /// The second half of this switch is still missing.
    awaited: Option<Tid>,
}

impl Lane {
    pub(super) const fn new(cpu: u32, writing: Writing) -> Self {
        Self {
            cpu,
            writing,
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
                if let Writing::Points(points) = &self.writing {
                    emit_some(points.read(raw), &mut emit);
                }
            }
            Record::Fork(task) => emit(EventKind::Fork {
                parent: task.parent,
                child: task.thread,
                process: task.process,
            }),
            Record::Exit(task) => self.exit(task.thread, &mut emit),
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

    /// Records are missing: the thread on the CPU is no longer known.
    const fn forget(&mut self) {
        self.current = None;
        self.awaited = None;
    }

    /// Half a switch of a traced thread. A thread whose events were opened twice, because it was
    /// made while its maker was being attached to, reports each half twice.
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

    /// Half a switch of any thread: the first half is complete.
    fn take_half_of_any(
        &mut self,
        thread: Tid,
        other: Tid,
        is_out: bool,
        is_preempted: bool,
    ) -> Option<EventKind> {
        if is_out {
            // A thread that was already reaped has no id when it leaves for the last time.
            let is_gone = thread < IDLE;
            let prev = if is_gone { self.current? } else { thread };
            // A thread that has ended may block during its exit, and run again.
            let left = if is_gone {
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

    /// A traced thread reports nothing after it has ended.
    fn exit(&mut self, thread: Tid, emit: &mut dyn FnMut(EventKind)) {
        match self.writing {
            Writing::Own => {
                if self.current == Some(thread) {
                    let left = LeaveReason::Ended;
                    emit(EventKind::Out { thread, left });
                    self.current = None;
                }
            }
            Writing::Wide | Writing::Points(_) => {}
        }
        emit(EventKind::Exit { thread });
    }

    /// A traced thread may first appear when it executes a program: it is on the CPU then.
    fn take_exec(&mut self, thread: Tid, is_exec: bool, emit: &mut dyn FnMut(EventKind)) {
        if is_exec && self.writing == Writing::Own && self.current != Some(thread) {
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
