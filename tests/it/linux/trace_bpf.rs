//! Tier `bpf` through the command: what it reports, and that nothing of it stays
//! in the kernel.

use std::collections::BTreeSet;
use std::path::Path;

use aya::programs::{loaded_links, loaded_programs};

use super::trial::{Trial, signal};
use crate::support::skipped;

/// Is the tier available? If not, the reason is printed.
fn is_there(trial: &Trial) -> bool {
    let output = trial
        .pinwise(&["trace", "--tier", "bpf", "--", "true"])
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return true;
    }
    assert!(
        words.contains("tier 'bpf' is not available here"),
        "{words}"
    );
    skipped(words.trim());
    false
}

/// Ids of what a process holds, as its descriptors show.
fn held_ids(pid: u32, key: &str) -> BTreeSet<u32> {
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

fn loaded_ids() -> (BTreeSet<u32>, BTreeSet<u32>) {
    let programs = loaded_programs().filter_map(Result::ok);
    let links = loaded_links().filter_map(Result::ok);
    (
        programs.map(|program| program.id()).collect(),
        links.map(|link| link.id()).collect(),
    )
}

#[test]
fn nothing_stays_loaded_when_it_is_killed() {
    let trial = Trial::new();
    if !is_there(&trial) {
        return;
    }
    let mut child = trial
        .pinwise(&["trace", "--tier", "bpf", "--", "sh", "-c"])
        .arg("echo >> started; exec sleep 1000")
        .spawn()
        .unwrap();
    trial.wait_for_lines("started", 1, &mut child);
    let programs = held_ids(child.id(), "prog_id:");
    let links = held_ids(child.id(), "link_id:");
    assert!(
        programs.len() >= 5 && links.len() >= 5,
        "{programs:?} {links:?}"
    );
    let before = loaded_ids();
    assert!(before.0.is_superset(&programs) && before.1.is_superset(&links));
    signal(&child, "KILL");
    child.wait().unwrap();
    // The kernel lets go of them a moment after the process is gone.
    loop {
        let now = loaded_ids();
        if now.0.is_disjoint(&programs) && now.1.is_disjoint(&links) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    trial.leaves_no_process();
}
