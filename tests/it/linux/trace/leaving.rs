//! Processes that a traced or sampled command leaves running go on, and are named.

use std::path::Path;
use std::process::Command;

use super::available_tiers;
use crate::support::{decode_output, report_skip, run, wait_until};

/// A process that is killed when it is dropped. It is not a child of the test.
struct Daemon(i32);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-9", &self.0.to_string()])
            .status();
    }
}

/// Waits until a file has this many lines.
#[track_caller]
fn wait_for_lines(path: &Path, lines: usize) -> String {
    let mut text = String::new();
    wait_until(&path.display().to_string(), || {
        text = std::fs::read_to_string(path).unwrap_or_default();
        text.matches('\n').count() >= lines
    });
    text
}

/// Runs a command under pinwise that leaves a process behind in each of this many
/// runs, and checks that each goes on. Returns what pinwise printed.
fn leave_processes(folder: &Path, arguments: &[&str], runs: usize, status: i32) -> Option<String> {
    let (pids, gate, note) = (
        folder.join("pids"),
        folder.join("gate"),
        folder.join("note"),
    );
    // The gate opens after pinwise has ended; then a message on standard error must not end them.
    let line = format!(
        "(until [ -e {} ]; do sleep 0.05; done; echo words >&2; echo on >> {}; exec sleep 1000) & echo $! >> {}; exit {status}",
        gate.display(),
        note.display(),
        pids.display()
    );
    let output = run(&[arguments, &["--", "sh", "-c", &line]].concat());
    let (out, err) = decode_output(&output);
    if err.contains("may not be traced") || err.contains("bind") {
        report_skip(err.trim());
        return None;
    }
    let pids = wait_for_lines(&pids, runs);
    let daemons = pids.lines().map(|pid| Daemon(pid.parse().unwrap()));
    let _daemons: Vec<Daemon> = daemons.collect();
    std::fs::write(&gate, "").unwrap();
    assert_eq!(
        wait_for_lines(&note, runs),
        "on\n".repeat(runs),
        "{out}{err}"
    );
    // The process that empties their pipe is not part of the command.
    assert!(!out.contains("pinwise-drain"), "{out}");
    assert_eq!(out.matches("The command left ").count(), runs, "{out}{err}");
    Some(out)
}

#[test]
fn processes_that_a_command_leaves_go_on() {
    for tier in available_tiers() {
        for place in ["os-default", "cpu:0/bound"] {
            let folder = tempfile::tempdir().unwrap();
            let arguments = ["trace", "--tier", tier, "--no-cost", "--place", place];
            if let Some(out) = leave_processes(folder.path(), &arguments, 1, 3) {
                assert!(out.contains("exit status 3"), "{tier}: {out}");
            }
        }
    }
    let sampling: [(&[&str], usize); 2] =
        [(&["profile", "--runs", "2"], 2), (&["spin", "attach"], 1)];
    for (arguments, runs) in sampling {
        let folder = tempfile::tempdir().unwrap();
        leave_processes(folder.path(), arguments, runs, 0);
    }
}
