//! How much of the CPU time of bound threads ran where it should: the time of their processes minus
//! that of threads whose mask differs at their end.
//!
//! A thread that moved itself counts as moved from its first moment, so the share is a lower bound.
//! CPU time is requested once per process and once per moved thread: threads that stay cost one
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

/// Limits the programs that are named.
const MAX_MOVERS: usize = 8;

/// Totals of bound threads so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    threads: u64,
    moved: u64,
    cpu: Duration,
    elsewhere: Duration,
    movers: BTreeSet<Mover>,
    /// CPU time of the command before it executed the program.
    before: Duration,
}

impl Tally {
    /// Records what a process used before it is watched.
    pub(super) fn begin(&mut self, process: libc::pid_t) {
        self.before = calls::process_cpu_time(process).unwrap_or_default();
    }

    /// Checks a thread that has ended but was not reaped, or is about to be released.
    pub(super) fn look(&mut self, thread: libc::pid_t, asked: usize, process: Option<libc::pid_t>) {
        let Ok(mask) = sys::affinity_of(thread) else {
            return;
        };
        self.threads += 1;
        if process == Some(thread) {
            self.cpu += calls::process_cpu_time(thread).unwrap_or_default();
        }
        if mask.len() == 1 && mask.contains(asked) {
            return;
        }
        self.moved += 1;
        self.elsewhere += cpu_time(thread).unwrap_or_default();
        // Nothing can be read of a process that has ended as a whole: it was read before.
        if let Some(process) = process {
            self.add_mover(process);
        }
    }

    /// Records the name of a process that is about to end, if it moved any of its threads.
    pub(super) fn name(
        &mut self,
        process: libc::pid_t,
        mut threads: impl Iterator<Item = (libc::pid_t, usize)>,
    ) {
        let has_moved = |(thread, asked): (libc::pid_t, usize)| {
            sys::affinity_of(thread).is_ok_and(|mask| mask != CpuSet::single(asked))
        };
        if threads.any(has_moved) {
            self.add_mover(process);
        }
    }

    fn add_mover(&mut self, process: libc::pid_t) {
        if self.movers.len() < MAX_MOVERS {
            self.movers.extend(mover(process));
        }
    }

    pub(super) fn coverage(&self) -> Coverage {
        let cpu = self.cpu.saturating_sub(self.before);
        Coverage {
            threads: self.threads,
            moved: self.moved,
            cpu,
            where_asked: cpu.saturating_sub(self.elsewhere),
            movers: self.movers.iter().cloned().collect(),
        }
    }
}

/// CPU time of a thread so far: the first figure of `schedstat`, in ns.
fn cpu_time(thread: libc::pid_t) -> Option<Duration> {
    let text = read_file(Path::new(&format!("/proc/{thread}/schedstat")))?;
    let text = String::from_utf8(text).ok()?;
    let first = text.split_ascii_whitespace().next()?;
    first.parse().ok().map(Duration::from_nanos)
}

/// The setting by which a process's program places its own threads, if it is a known one.
#[must_use]
pub fn own_setting(process: i32) -> Option<String> {
    mover(process)?.knob
}

/// The program of a process and its placement setting; `None` if it has ended.
fn mover(thread: libc::pid_t) -> Option<Mover> {
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
