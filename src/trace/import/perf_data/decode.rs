//! One record of the kernel: what it tells.

use std::collections::HashMap;

use super::attributes::{Attributes, General};
use super::header::Header;
use crate::trace::import::ImportError;
use crate::trace::import::bytes::Bytes;
use crate::trace::import::format::{Field, Format};
use crate::trace::import::told::{Comm, Named, Told, What};
use crate::trace::{Left, Tid};

/// `enum perf_event_type`.
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;

/// Bits of a record's `misc`.
const COMM_EXEC: u16 = 1 << 13;
const SWITCH_OUT: u16 = 1 << 13;
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// Reads the kernel's records.
#[derive(Debug)]
pub(super) struct Decoder {
    is_big_endian: bool,
    attributes: Attributes,
    tracepoints: HashMap<u64, Tracepoint>,
    has_switch_tracepoint: bool,
    /// Who runs on each CPU, after its last record of a switch.
    running: HashMap<u32, Tid>,
    lost: u64,
    lost_untimed: u64,
}

/// A tracepoint with the places of what is taken from it.
#[derive(Debug, Clone)]
enum Tracepoint {
    Switch {
        format: Box<Format>,
        prev: Person,
        state: Field,
        next: Person,
    },
    Wakeup {
        who: Person,
        target: Field,
        is_new: bool,
    },
    Waking(Person, Field),
    Moved(Person, Field),
    Fork(Field, Person),
    Exit(Field),
}

/// A thread in a tracepoint: its number, and its name where that is there.
#[derive(Debug, Clone)]
struct Person {
    thread: Field,
    name: Option<Field>,
}

impl Person {
    fn of(format: &Format, thread: &str, name: &str) -> Result<Self, String> {
        Ok(Self {
            thread: format.number(thread)?,
            name: format.optional(name),
        })
    }

    fn read(&self, raw: &[u8], is_big_endian: bool) -> Option<Named> {
        let name = self.name.as_ref();
        let name = name.and_then(|name| name.comm(raw, is_big_endian));
        Some(Named {
            thread: self.thread.small(raw, is_big_endian)?,
            name: name.unwrap_or_default(),
        })
    }
}

impl Tracepoint {
    /// `None`: nothing that is needed.
    fn of(format: &Format, has_task_records: bool) -> Result<Option<Self>, String> {
        let person = || Person::of(format, "pid", "comm");
        Ok(Some(match format.name.as_str() {
            "sched_switch" => Self::Switch {
                prev: Person::of(format, "prev_pid", "prev_comm")?,
                state: format.number("prev_state")?,
                next: Person::of(format, "next_pid", "next_comm")?,
                format: Box::new(format.clone()),
            },
            "sched_wakeup" | "sched_wakeup_new" => Self::Wakeup {
                who: person()?,
                target: format.number("target_cpu")?,
                is_new: format.name == "sched_wakeup_new",
            },
            "sched_waking" => Self::Waking(person()?, format.number("target_cpu")?),
            "sched_migrate_task" => Self::Moved(person()?, format.number("dest_cpu")?),
            // perf's own records say more: the process.
            "sched_process_fork" if !has_task_records => Self::Fork(
                format.number("parent_pid")?,
                Person::of(format, "child_pid", "child_comm")?,
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
        let recorded = |format: &&Format| attributes.has_tracepoint(format.id);
        for format in header.features.formats.iter().filter(recorded) {
            let tracepoint = Tracepoint::of(format, attributes.has_task_records());
            let tracepoint = tracepoint.map_err(|what| ImportError::Format {
                event: format!("sched:{}", format.name),
                what,
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
        let untold = self.lost_untimed.saturating_sub(self.lost);
        (untold > 0)
            .then(|| format!("{untold} more records were lost, the file does not say when."))
    }

    /// What a record tells. The error is a clause about it.
    pub(super) fn decode(
        &mut self,
        kind: u32,
        misc: u16,
        mut body: Bytes<'_>,
    ) -> Result<Option<Told>, String> {
        if kind == SAMPLE {
            return self.sample(body);
        }
        let general = self.attributes.trailer(body);
        let short = || format!("a record of type {kind} is too short");
        match kind {
            COMM => comm(&mut body, misc)
                .ok_or_else(short)
                .map(|what| tell(general, what)),
            FORK | EXIT => {
                let (time_ns, what) = task(&mut body, kind == FORK).ok_or_else(short)?;
                let time_ns = Some(time_ns);
                Ok(tell(General { time_ns, ..general }, what))
            }
            LOST => {
                body.skip(8).ok_or_else(short)?;
                Ok(self.lose(general, body.u64().ok_or_else(short)?))
            }
            LOST_SAMPLES => Ok(self.lose(general, body.u64().ok_or_else(short)?)),
            SWITCH | SWITCH_CPU_WIDE if !self.has_switch_tracepoint => {
                let other = (kind == SWITCH_CPU_WIDE).then_some(body);
                self.switch(general, misc, other).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn sample(&self, body: Bytes<'_>) -> Result<Option<Told>, String> {
        let short = || "a sample is shorter than its event's description says".to_owned();
        let (general, raw) = self.attributes.sample(body).ok_or_else(short)?;
        let Some(raw) = raw else {
            return Ok(None);
        };
        // Every tracepoint begins with its number, `common_type`.
        let id = Bytes::new(raw, self.is_big_endian).number(2);
        let Some(tracepoint) = id.and_then(|id| self.tracepoints.get(&id)) else {
            return Ok(None);
        };
        let what = self.tracepoint(tracepoint, raw).ok_or_else(short)?;
        let (Some(time_ns), Some(cpu)) = (general.time_ns, general.cpu) else {
            return Err(format!("samples without {MISSING}"));
        };
        Ok(Some(Told {
            time_ns,
            cpu,
            current: general.thread.zip(general.process),
            what,
        }))
    }

    fn tracepoint(&self, tracepoint: &Tracepoint, raw: &[u8]) -> Option<What> {
        let big = self.is_big_endian;
        let cpu = |field: &Field| u32::try_from(field.small(raw, big)?).ok();
        Some(match tracepoint {
            Tracepoint::Switch {
                format,
                prev,
                state,
                next,
            } => What::Switch {
                prev: prev.read(raw, big)?,
                left: format.left(state.number(raw, big)?),
                next: next.read(raw, big)?,
            },
            Tracepoint::Wakeup {
                who,
                target,
                is_new,
            } => What::Wakeup {
                who: who.read(raw, big)?,
                target: cpu(target)?,
                is_new: *is_new,
            },
            Tracepoint::Waking(who, target) => What::Waking {
                who: who.read(raw, big)?,
                target: cpu(target)?,
            },
            Tracepoint::Moved(who, target) => What::Moved {
                who: who.read(raw, big)?,
                target: cpu(target)?,
            },
            Tracepoint::Fork(parent, child) => What::Fork {
                parent: parent.small(raw, big)?,
                child: child.read(raw, big)?,
                process: None,
            },
            Tracepoint::Exit(thread) => What::Exit {
                thread: thread.small(raw, big)?,
            },
        })
    }

    /// A switch record; `other` is the rest of one that saw the whole CPU.
    fn switch(
        &mut self,
        general: General,
        misc: u16,
        other: Option<Bytes<'_>>,
    ) -> Result<Told, String> {
        let (Some(time_ns), Some(cpu), Some(thread)) =
            (general.time_ns, general.cpu, general.thread)
        else {
            return Err(format!("switch records without {MISSING}"));
        };
        let is_out = misc & SWITCH_OUT != 0;
        let left = match misc & SWITCH_OUT_PREEMPT {
            0 => Left::Blocked,
            _ => Left::Preempted,
        };
        let what = match (other, is_out) {
            (None, true) => What::Out { thread, left },
            (None, false) => What::In { thread },
            (Some(mut other), _) => {
                let other = other.skip(4).and_then(|()| other.i32());
                let other = other.ok_or("a switch record without the other thread")?;
                self.wide_switch(cpu, thread, left, other, is_out)
            }
        };
        Ok(Told {
            time_ns,
            cpu,
            current: general.thread.zip(general.process),
            what,
        })
    }

    /// Each switch of a CPU is told twice, by who leaves and by who comes; the
    /// second counts only where the first was lost. A thread that is dead when
    /// it leaves has no number any more (-1).
    fn wide_switch(&mut self, cpu: u32, thread: Tid, left: Left, other: Tid, is_out: bool) -> What {
        let (prev, left, next) = match is_out {
            true => (thread, left, other),
            false => (other, Left::Untold, thread),
        };
        let before = self.running.insert(cpu, next);
        if !is_out && before == Some(next) {
            return What::Nothing;
        }
        let prev = match (prev, before) {
            (-1, Some(before)) => before,
            (prev, _) => prev,
        };
        let named = |thread| Named {
            thread,
            name: Comm::default(),
        };
        What::Switch {
            prev: named(prev),
            left,
            next: named(next),
        }
    }

    /// Records were lost. perf also sums them up at the end, without a time.
    fn lose(&mut self, general: General, records: u64) -> Option<Told> {
        let has_time = general.time_ns.is_some_and(|time| time > 0);
        if !has_time || general.cpu.is_none() {
            self.lost_untimed = self.lost_untimed.saturating_add(records);
            return None;
        }
        self.lost = self.lost.saturating_add(records);
        if let Some(cpu) = general.cpu {
            self.running.remove(&cpu);
        }
        tell(general, What::Lost { records })
    }
}

/// What samples and records must carry.
const MISSING: &str = "time, thread and CPU; record with perf record --sample-cpu --timestamp";

fn tell(general: General, what: What) -> Option<Told> {
    Some(Told {
        time_ns: general.time_ns.unwrap_or(0),
        cpu: general.cpu.unwrap_or(0),
        current: None,
        what,
    })
}

fn comm(body: &mut Bytes<'_>, misc: u16) -> Option<What> {
    let (process, thread) = (body.i32()?, body.i32()?);
    Some(What::Name {
        who: Named {
            thread,
            name: Comm::new(body.rest()),
        },
        process: Some(process),
        is_exec: misc & COMM_EXEC != 0,
    })
}

/// A fork or an exit. perf says of threads that were there that they were
/// forked at time 0.
fn task(body: &mut Bytes<'_>, is_fork: bool) -> Option<(u64, What)> {
    let (process, _, thread, parent) = (body.i32()?, body.i32()?, body.i32()?, body.i32()?);
    let time_ns = body.u64()?;
    let child = Named {
        thread,
        name: Comm::default(),
    };
    let process_told = Some(process);
    let what = match (is_fork, time_ns) {
        (true, 0) => What::There { thread, process },
        (true, _) => What::Fork {
            parent,
            child,
            process: process_told,
        },
        (false, _) => What::Exit { thread },
    };
    Some((time_ns, what))
}
