//! Lists threads from `/proc`, and parses their files.
//!
//! Lists are snapshots of limited length; a thread that has ended meanwhile is left out.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::capture::{list_names, read_file};
use super::super::{sys, tree};
use pinwise_sched::Tid;
use pinwise_topology::CpuSet;

/// Most threads in a list.
pub(in crate::linux) const MAX_THREADS: usize = 16_384;

/// A thread that existed when it was listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::linux) struct ExistingThread {
    pub(in crate::linux) tid: Tid,
    pub(in crate::linux) process: Tid,
}

const CPU_FOLDER: &str = "/sys/devices/system/cpu";

/// Reads which CPUs are online.
pub(in crate::linux) fn online_cpus() -> CpuSet {
    let text = read_file(&Path::new(CPU_FOLDER).join("online")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let listed = CpuSet::parse_list(text.trim()).unwrap_or_default();
    let own = sys::affinity().unwrap_or_default();
    pinwise_topology::online_cpus(listed, &own, list_described_cpus)
}

/// Lists the CPUs with a topology folder; offline ones have none.
fn list_described_cpus() -> CpuSet {
    let folder = Path::new(CPU_FOLDER);
    let described = list_names(folder).into_iter().filter_map(|name| {
        let number: usize = name.strip_prefix("cpu")?.parse().ok()?;
        let is_described = number <= CpuSet::MAX_CPU && folder.join(name).join("topology").is_dir();
        is_described.then_some(number)
    });
    described.collect()
}

/// Lists all threads of a process and its descendants, in the order of their ids.
pub(in crate::linux) fn list_threads_below(pid: Tid) -> Vec<ExistingThread> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::from([pid]);
    let mut waiting = vec![pid];
    while let Some(process) = waiting.pop() {
        if found.len() >= MAX_THREADS {
            break;
        }
        let threads = list_threads_of(process);
        for child in tree::children_of_threads(process, &threads) {
            if seen.insert(child) {
                waiting.push(child);
            }
        }
        found.extend(
            threads
                .into_iter()
                .map(|tid| ExistingThread { tid, process }),
        );
    }
    found.truncate(MAX_THREADS);
    found.sort_unstable();
    found
}

/// Lists all visible threads of the machine.
pub(in crate::linux) fn list_all() -> Vec<ExistingThread> {
    let mut found = Vec::new();
    for process in parse_numbers(&list_names(Path::new("/proc"))) {
        if found.len() >= MAX_THREADS {
            break;
        }
        let threads = list_threads_of(process);
        found.extend(
            threads
                .into_iter()
                .map(|tid| ExistingThread { tid, process }),
        );
    }
    found.truncate(MAX_THREADS);
    found.sort_unstable();
    found
}

/// Lists the threads of one process; empty if it does not exist.
pub(in crate::linux) fn list_threads_of(process: Tid) -> Vec<Tid> {
    parse_numbers(&list_names(Path::new(&format!("/proc/{process}/task"))))
}

/// Reads a thread's name, which the kernel has cut to 15 bytes.
pub(in crate::linux) fn read_name(thread: Tid) -> Option<Box<str>> {
    let bytes = read_file(Path::new(&format!("/proc/{thread}/comm")))?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_end_matches('\n').into())
}

/// Reads which process a thread belongs to.
pub(in crate::linux) fn read_process_of(thread: Tid) -> Option<Tid> {
    if thread <= 0 {
        return None;
    }
    let status = read_file(Path::new(&format!("/proc/{thread}/status")))?;
    // A name cannot contain a line feed: the kernel writes it as \n.
    let status = String::from_utf8_lossy(&status);
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    process.trim().parse().ok()
}

/// Checks that a process exists and has not ended; otherwise says what is wrong.
pub(in crate::linux) fn check_process(pid: Tid) -> Result<(), String> {
    let none = || "no such process".to_owned();
    if pid <= 0 {
        return Err(none());
    }
    let status = read_file(Path::new(&format!("/proc/{pid}/status"))).ok_or_else(none)?;
    let status = String::from_utf8_lossy(&status);
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
    };
    if let Some(leader) = field("Tgid:").filter(|leader| *leader != pid.to_string()) {
        return Err(format!("it is a thread of process {leader}: name that one"));
    }
    if field("State:").is_some_and(|state| state.starts_with(['Z', 'X'])) {
        return Err("it has ended already".to_owned());
    }
    Ok(())
}

fn parse_numbers(names: &[String]) -> Vec<Tid> {
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Parses `schedstat`: the time on CPUs and in run queues, ns; `None` if the kernel does not keep
/// these times and writes zeros.
pub(in crate::linux) fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let run_ns = fields.next()?.ok()?;
    let wait_ns = fields.next()?.ok()?;
    let slices = fields.next()?.ok()?;
    (run_ns > 0 || slices > 0).then_some((run_ns, wait_ns))
}

/// Counts from a thread's file `sched` (or `status`, which lacks migrations).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::linux) struct Counts {
    pub(in crate::linux) migrations: Option<u64>,
    pub(in crate::linux) voluntary: Option<u64>,
    pub(in crate::linux) involuntary: Option<u64>,
}

/// Parses `name : number` lines.
pub(in crate::linux) fn parse_counts(text: &str) -> Counts {
    let mut counts = Counts::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let place = match name.trim() {
            "se.nr_migrations" => &mut counts.migrations,
            "nr_voluntary_switches" | "voluntary_ctxt_switches" => &mut counts.voluntary,
            "nr_involuntary_switches" | "nonvoluntary_ctxt_switches" => &mut counts.involuntary,
            _ => continue,
        };
        *place = value.trim().parse().ok();
    }
    counts
}

#[cfg(test)]
mod tests;
