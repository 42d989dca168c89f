//! How much CPU time of bound threads was used on their CPUs: the time of their processes minus
//! that of threads whose mask differs at their end.
//!
//! A thread that moved itself counts as moved from its first moment, so the share is a lower bound.
//! CPU time is read once per process and once per moved thread: a thread that stays costs one
//! system call.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::super::capture::read_file;
use super::super::sys;
use super::calls;
use crate::{Coverage, Mover};
use pinwise_topology::CpuSet;
use pinwise_workload::knobs::{self, Signs};

/// Most programs that are listed.
const MAX_MOVERS: usize = 8;

/// Totals of bound threads so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    threads: u64,
    moved: u64,
    cpu: Duration,
    elsewhere: Duration,
    movers: BTreeSet<Mover>,
    /// CPU time of the command's process before it executed the program.
    before: Duration,
}

impl Tally {
    /// Notes the CPU time that the command's process has used so far, which does not count.
    pub(super) fn begin(&mut self, process: libc::pid_t) {
        self.before = calls::process_cpu_time(process).unwrap_or_default();
    }

    /// Checks a thread that has ended but was not reaped, or is about to be released.
    pub(super) fn check_thread(
        &mut self,
        thread: libc::pid_t,
        cpu: usize,
        process: Option<libc::pid_t>,
    ) {
        let Ok(mask) = sys::affinity_of(thread) else {
            return;
        };
        self.threads += 1;
        if process == Some(thread) {
            self.cpu += calls::process_cpu_time(thread).unwrap_or_default();
        }
        if mask.len() == 1 && mask.contains(cpu) {
            return;
        }
        self.moved += 1;
        self.elsewhere += read_cpu_time(thread).unwrap_or_default();
        // If the whole process has ended, nothing can be read any more: `note_mover` has read it
        // before.
        if let Some(process) = process {
            self.add_mover(process);
        }
    }

    /// Lists the program of a process that is about to end, if it moved any of its threads.
    pub(super) fn note_mover(
        &mut self,
        process: libc::pid_t,
        mut threads: impl Iterator<Item = (libc::pid_t, usize)>,
    ) {
        let has_moved = |(thread, cpu): (libc::pid_t, usize)| {
            sys::affinity_of(thread).is_ok_and(|mask| mask != CpuSet::single(cpu))
        };
        if threads.any(has_moved) {
            self.add_mover(process);
        }
    }

    fn add_mover(&mut self, process: libc::pid_t) {
        if self.movers.len() < MAX_MOVERS {
            self.movers.extend(read_mover(process));
        }
    }

    pub(super) fn coverage(&self) -> Coverage {
        let cpu = self.cpu.saturating_sub(self.before);
        Coverage {
            threads: self.threads,
            moved: self.moved,
            cpu,
            where_bound: cpu.saturating_sub(self.elsewhere),
            movers: self.movers.iter().cloned().collect(),
        }
    }
}

/// CPU time of a thread so far: the first figure of `schedstat`, in ns.
fn read_cpu_time(thread: libc::pid_t) -> Option<Duration> {
    let text = read_file(Path::new(&format!("/proc/{thread}/schedstat")))?;
    let text = String::from_utf8(text).ok()?;
    let first = text.split_ascii_whitespace().next()?;
    first.parse().ok().map(Duration::from_nanos)
}

/// The setting by which a process's program places its own threads, if pinwise knows it.
#[must_use]
pub fn own_setting(process: i32) -> Option<String> {
    read_mover(process)?.knob
}

/// The program of a process and its placement setting; `None` if it has ended.
fn read_mover(thread: libc::pid_t) -> Option<Mover> {
    let path = std::fs::read_link(format!("/proc/{thread}/exe")).ok()?;
    let program = path.file_name()?.to_string_lossy().into_owned();
    let read = |name: &str| {
        let bytes = read_file(Path::new(&format!("/proc/{thread}/{name}"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let knob = knobs::find(&Signs {
        program: &program,
        command_line: &read("cmdline"),
        environment: &read("environ"),
        mappings: &read("maps"),
    });
    Some(Mover {
        program,
        knob: knob.map(|knob| knob.setting.to_owned()),
    })
}
