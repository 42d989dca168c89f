//! Tier `bpf` leaves no program in the kernel.

use std::collections::BTreeSet;
use std::path::Path;

use aya::programs::{loaded_links, loaded_programs};

use super::trial::Trial;
use crate::support::{report_skip, send_signal, wait_until};

/// Whether the tier is available; if not, the reason is printed.
fn is_available(trial: &Trial) -> bool {
    let ended = trial.run(&["trace", "--tier", "bpf", "--", "true"]);
    let is_available = ended.status.success();
    if !is_available {
        ended.check_failure(&["tier 'bpf' is not available here"]);
        report_skip(ended.err.trim());
    }
    is_available
}

/// Ids of the BPF objects that a process holds, from this line of its descriptors.
fn read_held_ids(pid: u32, key: &str) -> BTreeSet<u32> {
    let Ok(descriptors) = Path::new(&format!("/proc/{pid}/fdinfo")).read_dir() else {
        return BTreeSet::new();
    };
    descriptors
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok())
        .filter_map(|text| {
            let id = text.lines().find_map(|line| line.strip_prefix(key))?;
            id.trim().parse().ok()
        })
        .collect()
}

/// Ids of all programs in the kernel, and of all links.
fn list_loaded_ids() -> (BTreeSet<u32>, BTreeSet<u32>) {
    let programs = loaded_programs().filter_map(Result::ok);
    let links = loaded_links().filter_map(Result::ok);
    (
        programs.map(|program| program.id()).collect(),
        links.map(|link| link.id()).collect(),
    )
}

#[test]
fn a_killed_trace_leaves_no_program_loaded() {
    let trial = Trial::new();
    if !is_available(&trial) {
        return;
    }
    let mut child = trial
        .pinwise(&["trace", "--tier", "bpf", "--", "sh", "-c"])
        .arg("echo >> started; exec sleep 1000")
        .spawn()
        .unwrap();
    trial.wait_for_lines("started", 1, &mut child);
    let programs = read_held_ids(child.id(), "prog_id:");
    let links = read_held_ids(child.id(), "link_id:");
    assert!(
        programs.len() >= 5 && links.len() >= 5,
        "{programs:?} {links:?}"
    );
    let before = list_loaded_ids();
    assert!(before.0.is_superset(&programs) && before.1.is_superset(&links));
    send_signal(child.id(), "KILL");
    child.wait().unwrap();
    // The kernel unloads them a moment after the process is gone.
    wait_until("unloading", || {
        let now = list_loaded_ids();
        now.0.is_disjoint(&programs) && now.1.is_disjoint(&links)
    });
    trial.check_no_process_left();
}
