//! Reads `/proc` for other processes and their threads.

use std::collections::BTreeMap;
use std::path::Path;

use crate::linux::capture::{list_names, read_file};
use crate::linux::process_stat::{self, PF_KTHREAD, ProcessStat};
use pinwise_topology::CpuSet;

/// Deepest process tree that is followed upwards.
const MAX_ANCESTORS: usize = 64;

/// The needed fields of `/proc/PID/stat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) name: String,
    pub(super) state: char,
    pub(super) parent: i32,
    pub(super) is_kernel: bool,
    /// CPU time in user mode and in the kernel, ticks.
    pub(super) user: u64,
    pub(super) system: u64,
    /// Its start time, ticks since boot.
    pub(super) start: u64,
    /// The CPU on which it last ran.
    pub(super) cpu: Option<usize>,
}

/// Reads the fields of a process, or of a thread by its id.
pub(super) fn read_stat(id: i32) -> Option<Stat> {
    let line = process_stat::read_line(id)?;
    let stat = ProcessStat::parse(&line)?;
    let (user, system) = stat.ticks()?;
    Some(Stat {
        name: stat.name.to_owned(),
        state: stat.state()?,
        parent: stat.parent()?,
        is_kernel: stat.has_flag(PF_KTHREAD)?,
        user,
        system,
        start: stat.start()?,
        cpu: stat.cpu().and_then(|cpu| usize::try_from(cpu).ok()),
    })
}

/// Reads how long a thread has run, ns; `None` if it ended or the kernel does not report it.
pub(super) fn read_run_time_ns(thread: i32) -> Option<u64> {
    let text = read_file(Path::new(&format!("/proc/{thread}/schedstat")))?;
    let text = String::from_utf8_lossy(&text);
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Lists the threads of a process in the order of their ids.
pub(super) fn list_threads(process: i32) -> Vec<i32> {
    let found = list_names(Path::new(&format!("/proc/{process}/task")));
    let mut threads: Vec<i32> = found.iter().filter_map(|name| name.parse().ok()).collect();
    threads.sort_unstable();
    threads
}

/// Reads the arguments of a process, up to a limit; its name in brackets if it has none.
pub(super) fn read_command_line(process: i32) -> Vec<String> {
    let bytes = read_file(Path::new(&format!("/proc/{process}/cmdline"))).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<String> = text
        .trim_end_matches('\0')
        .split('\0')
        .map(str::to_owned)
        .collect();
    if words.first().is_none_or(String::is_empty) {
        let name = read_stat(process).map_or_else(|| process.to_string(), |stat| stat.name);
        return vec![format!("[{name}]")];
    }
    words
}

/// Finds the entry of a process in a table, or that of its nearest ancestor.
pub(super) fn find_own_or_inherited(
    table: &BTreeMap<i32, CpuSet>,
    mut process: i32,
) -> Option<CpuSet> {
    for _ in 0..MAX_ANCESTORS {
        if let Some(found) = table.get(&process) {
            return Some(found.clone());
        }
        process = read_stat(process)?.parent;
    }
    None
}

/// Is it pinwise or one of its descendants?
pub(super) fn is_own(mut process: i32) -> bool {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    for _ in 0..MAX_ANCESTORS {
        if process == own {
            return true;
        }
        match read_stat(process) {
            Some(stat) if stat.parent > 0 => process = stat.parent,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_ours_and_process_1_is_not() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(is_own(own) && !is_own(1) && !is_own(-1));
        assert!(list_threads(own).contains(&own));
        assert!(!read_command_line(own)[0].is_empty());
    }
}
