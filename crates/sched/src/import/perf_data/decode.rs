//! Decodes the content of a kernel record.

use foldhash::{HashMap, HashMapExt};

use super::attributes::Attributes;
use super::header::Header;
use crate::import::ImportError;
use crate::import::raw_event::{Comm, NamedThread, RawEvent, RawKind};
use crate::perf::{Bytes, CommonFields, Decoded, Record, Task, kind};
use crate::{Field, FormatError, LeaveReason, States, Tid, TracepointFormat};

#[derive(Debug)]
pub(super) struct Decoder {
    is_big_endian: bool,
    attributes: Attributes,
    tracepoints: HashMap<u64, Tracepoint>,
    has_switch_tracepoint: bool,
    /// The thread on each CPU after its last switch record.
    running: HashMap<u32, Tid>,
    /// Lost records, reported with a time and without.
    lost: u64,
    lost_untimed: u64,
}

/// A tracepoint, with the positions of the fields that are used.
#[derive(Debug, Clone)]
enum Tracepoint {
    Switch {
        prev: TaskFields,
        state: Field,
        states: States,
        next: TaskFields,
    },
    Wakeup {
        who: TaskFields,
        target: Field,
        is_new: bool,
    },
    Waking(TaskFields, Field),
    Moved(TaskFields, Field),
    Fork(Field, TaskFields),
    Exit(Field),
}

/// The fields of a thread in a tracepoint: its id, and its name if any.
#[derive(Debug, Clone, Copy)]
struct TaskFields {
    thread: Field,
    name: Option<Field>,
}

impl TaskFields {
    fn from_format(
        format: &TracepointFormat,
        thread: &str,
        name: &str,
    ) -> Result<Self, FormatError> {
        Ok(Self {
            thread: format.number(thread)?,
            name: format.field(name).ok(),
        })
    }

    fn decode(&self, raw: &[u8], is_big_endian: bool) -> Option<NamedThread> {
        let name = self.name.and_then(|name| name.text(raw, is_big_endian));
        Some(NamedThread {
            thread: self.thread.small(raw, is_big_endian)?,
            name: name.map(Comm::new).unwrap_or_default(),
        })
    }
}

impl Tracepoint {
    /// `None` for a tracepoint that is not used.
    fn from_format(
        format: &TracepointFormat,
        has_task_records: bool,
    ) -> Result<Option<Self>, FormatError> {
        let task = || TaskFields::from_format(format, "pid", "comm");
        Ok(Some(match format.name.as_str() {
            "sched_switch" => Self::Switch {
                prev: TaskFields::from_format(format, "prev_pid", "prev_comm")?,
                state: format.number("prev_state")?,
                next: TaskFields::from_format(format, "next_pid", "next_comm")?,
                // The states of the recording kernel, if known.
                states: format.states.unwrap_or(States::USUAL),
            },
            "sched_wakeup" | "sched_wakeup_new" => Self::Wakeup {
                who: task()?,
                target: format.number("target_cpu")?,
                is_new: format.name == "sched_wakeup_new",
            },
            "sched_waking" => Self::Waking(task()?, format.number("target_cpu")?),
            "sched_migrate_task" => Self::Moved(task()?, format.number("dest_cpu")?),
            // perf's own records of forks and exits are better: they contain the process.
            "sched_process_fork" if !has_task_records => Self::Fork(
                format.number("parent_pid")?,
                TaskFields::from_format(format, "child_pid", "child_comm")?,
            ),
            "sched_process_exit" if !has_task_records => Self::Exit(format.number("pid")?),
            _ => return Ok(None),
        }))
    }
}

impl Decoder {
    pub(super) fn new(header: &Header) -> Result<Self, ImportError> {
        let attributes = header.attributes.clone();
        let mut tracepoints = HashMap::new();
        let mut has_switch_tracepoint = false;
        let recorded = |format: &&TracepointFormat| attributes.has_tracepoint(format.id);
        for format in header.features.formats.iter().filter(recorded) {
            let tracepoint = Tracepoint::from_format(format, attributes.has_task_records());
            let tracepoint = tracepoint.map_err(|error| ImportError::Format {
                event: format!("sched:{}", format.name),
                what: error.to_string(),
            })?;
            if let Some(tracepoint) = tracepoint {
                has_switch_tracepoint |= matches!(tracepoint, Tracepoint::Switch { .. });
                tracepoints.insert(format.id, tracepoint);
            }
        }
        let decoder = Self {
            is_big_endian: header.is_big_endian,
            attributes,
            tracepoints,
            has_switch_tracepoint,
            running: HashMap::new(),
            lost: 0,
            lost_untimed: 0,
        };
        if !decoder.can_see_switches() && header.is_cut {
            let what = "the file ends before the descriptions of its tracepoints, which perf writes last; without them nothing in it can be read";
            return Err(ImportError::damaged(header.data.end, what));
        }
        Ok(decoder)
    }

    pub(super) fn can_see_switches(&self) -> bool {
        self.has_switch_tracepoint || self.attributes.has_switch_records()
    }

    pub(super) const fn has_switch_tracepoint(&self) -> bool {
        self.has_switch_tracepoint
    }

    pub(super) fn notes(&self) -> Option<String> {
        let unreported = self.lost_untimed.saturating_sub(self.lost);
        (unreported > 0).then(|| format!("{unreported} more records were lost at unknown times."))
    }

    /// Decodes a record. The error is a clause about it.
    pub(super) fn decode(
        &mut self,
        kind: u32,
        misc: u16,
        body: Bytes<'_>,
    ) -> Result<Option<RawEvent>, String> {
        if kind == kind::SAMPLE {
            return self.decode_sample(body);
        }
        let short = || format!("a record of type {kind} is too short");
        let Decoded::Used(record) = Record::decode(kind, misc, body).ok_or_else(short)? else {
            return Ok(None);
        };
        let common = self.attributes.parse_trailer(body).unwrap_or_default();
        let at = |task: Task| CommonFields {
            time_ns: Some(task.time_ns),
            ..common
        };
        match record {
            Record::Comm {
                process,
                thread,
                is_exec,
                name,
            } => {
                let name = Comm::new(name);
                let what = RawKind::Name {
                    who: NamedThread { thread, name },
                    process: Some(process),
                    is_exec,
                };
                Ok(raw_event(common, what))
            }
            Record::Fork(task) => Ok(raw_event(at(task), fork_event(task))),
            Record::Exit(task) => {
                let thread = task.thread;
                Ok(raw_event(at(task), RawKind::Exit { thread }))
            }
            Record::Lost { records } => Ok(self.count_lost(common, records)),
            Record::Switch {
                other,
                is_out,
                is_preempted,
            } if !self.has_switch_tracepoint => {
                let left = if is_preempted {
                    LeaveReason::Preempted
                } else {
                    LeaveReason::Blocked
                };
                self.decode_switch(common, other, is_out, left).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn decode_sample(&self, body: Bytes<'_>) -> Result<Option<RawEvent>, String> {
        let short = || "a sample is shorter than its event's description says".to_owned();
        let (common, raw) = self.attributes.parse_sample(body).ok_or_else(short)?;
        let Some(raw) = raw else { return Ok(None) };
        // Every tracepoint begins with its number, `common_type`.
        let id = Bytes::new(raw, self.is_big_endian).number(2);
        let Some(tracepoint) = id.and_then(|id| self.tracepoints.get(&id)) else {
            return Ok(None);
        };
        let what = self.decode_tracepoint(tracepoint, raw).ok_or_else(short)?;
        let (Some(time_ns), Some(cpu)) = (common.time_ns, common.cpu) else {
            return Err(format!("samples without {MISSING}"));
        };
        Ok(Some(RawEvent {
            time_ns,
            cpu,
            current: common.thread.zip(common.process),
            what,
        }))
    }

    fn decode_tracepoint(&self, tracepoint: &Tracepoint, raw: &[u8]) -> Option<RawKind> {
        let big = self.is_big_endian;
        let cpu = |field: &Field| u32::try_from(field.small(raw, big)?).ok();
        Some(match tracepoint {
            Tracepoint::Switch {
                prev,
                state,
                states,
                next,
            } => RawKind::Switch {
                prev: prev.decode(raw, big)?,
                left: states.find_leave_reason(state.number(raw, big)?.cast_unsigned()),
                next: next.decode(raw, big)?,
            },
            Tracepoint::Wakeup {
                who,
                target,
                is_new,
            } => RawKind::Wakeup {
                who: who.decode(raw, big)?,
                target: cpu(target)?,
                is_new: *is_new,
            },
            Tracepoint::Waking(who, target) => RawKind::Waking {
                who: who.decode(raw, big)?,
                target: cpu(target)?,
            },
            Tracepoint::Moved(who, target) => RawKind::Moved {
                who: who.decode(raw, big)?,
                target: cpu(target)?,
            },
            Tracepoint::Fork(parent, child) => RawKind::Fork {
                parent: parent.small(raw, big)?,
                child: child.decode(raw, big)?,
                process: None,
            },
            Tracepoint::Exit(thread) => RawKind::Exit {
                thread: thread.small(raw, big)?,
            },
        })
    }

    /// Decodes a switch record; `other` is the other thread in a record of a whole CPU.
    fn decode_switch(
        &mut self,
        common: CommonFields,
        other: Option<Tid>,
        is_out: bool,
        left: LeaveReason,
    ) -> Result<RawEvent, String> {
        let (Some(time_ns), Some(cpu), Some(thread)) = (common.time_ns, common.cpu, common.thread)
        else {
            return Err(format!("switch records without {MISSING}"));
        };
        let what = match (other, is_out) {
            (None, true) => RawKind::Out { thread, left },
            (None, false) => RawKind::In { thread },
            (Some(other), _) => self.decode_cpu_wide_switch(cpu, thread, left, other, is_out),
        };
        Ok(RawEvent {
            time_ns,
            cpu,
            current: common.thread.zip(common.process),
            what,
        })
    }

    /// Each switch of a CPU is recorded twice, for the leaving and for the arriving thread; the
    /// second record counts only if the first was lost. A thread that has ended when it leaves has
    /// the id −1.
    fn decode_cpu_wide_switch(
        &mut self,
        cpu: u32,
        thread: Tid,
        left: LeaveReason,
        other: Tid,
        is_out: bool,
    ) -> RawKind {
        let (prev, left, next) = match is_out {
            true => (thread, left, other),
            false => (other, LeaveReason::Unreported, thread),
        };
        let before = self.running.insert(cpu, next);
        if !is_out && before == Some(next) {
            return RawKind::Other;
        }
        let prev = match (prev, before) {
            (-1, Some(before)) => before,
            (prev, _) => prev,
        };
        RawKind::Switch {
            prev: without_name(prev),
            left,
            next: without_name(next),
        }
    }

    /// Counts lost records. perf also reports their sum at the end, without a time.
    fn count_lost(&mut self, common: CommonFields, records: u64) -> Option<RawEvent> {
        let has_time = common.time_ns.is_some_and(|time| time > 0);
        if !has_time || common.cpu.is_none() {
            self.lost_untimed = self.lost_untimed.saturating_add(records);
            return None;
        }
        self.lost = self.lost.saturating_add(records);
        if let Some(cpu) = common.cpu {
            self.running.remove(&cpu);
        }
        raw_event(common, RawKind::Lost { records })
    }
}

/// Fields required in samples and records.
const MISSING: &str = "time, thread and CPU; record with perf record --sample-cpu --timestamp";

fn raw_event(common: CommonFields, what: RawKind) -> Option<RawEvent> {
    Some(RawEvent {
        time_ns: common.time_ns.unwrap_or(0),
        cpu: common.cpu.unwrap_or(0),
        current: None,
        what,
    })
}

/// The event of a fork record. perf reports existing threads as forked at time 0.
fn fork_event(task: Task) -> RawKind {
    match task.time_ns {
        0 => RawKind::Existing {
            thread: task.thread,
            process: task.process,
        },
        _ => RawKind::Fork {
            parent: task.parent,
            child: without_name(task.thread),
            process: Some(task.process),
        },
    }
}

fn without_name(thread: Tid) -> NamedThread {
    NamedThread {
        thread,
        name: Comm::default(),
    }
}
