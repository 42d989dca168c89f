//! What a traced or sampled command leaves running is left, and named.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{WITH_SWITCHES, permitted};
use crate::support::skipped;

/// Longer than anything waited for takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ended with the test, whatever its parent then is.
struct Daemon(i32);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-9", &self.0.to_string()])
            .status();
    }
}

fn wait_for(path: &Path, lines: usize) -> String {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match std::fs::read_to_string(path) {
            Ok(text) if text.matches('\n').count() >= lines => return text,
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    panic!("{} was never written", path.display());
}

/// Runs a command under pinwise that leaves a process behind in each of this many
/// runs; what pinwise printed, after each of them went on.
fn leave_processes(folder: &Path, arguments: &[&str], runs: usize, status: i32) -> Option<String> {
    let (number, gate, note) = (folder.join("pid"), folder.join("gate"), folder.join("note"));
    // They go on when asked to, and not before pinwise has ended; a later message on standard error
    // must not end them.
    let line = format!(
        "(until [ -e {} ]; do sleep 0.05; done; echo words >&2; echo on >> {}; exec sleep 1000) & echo $! >> {}; exit {status}",
        gate.display(),
        note.display(),
        number.display()
    );
    let arguments = [arguments, &["--", "sh", "-c", &line]].concat();
    let output = crate::support::run(&arguments);
    let (out, err) = crate::support::texts(&output);
    if err.contains("may not be traced") || err.contains("bind") {
        skipped(err.trim());
        return None;
    }
    let numbers = wait_for(&number, runs);
    let _daemons: Vec<Daemon> = numbers
        .lines()
        .map(|n| Daemon(n.parse().unwrap()))
        .collect();
    std::fs::write(&gate, "").unwrap();
    assert_eq!(wait_for(&note, runs), "on\n".repeat(runs), "{out}{err}");
    // The process that empties the pipe of those that are left is not part of the command.
    assert!(!out.contains("pinwise-drain"), "{out}");
    assert_eq!(out.matches("The command left ").count(), runs, "{out}{err}");
    Some(out)
}

#[test]
fn what_a_command_leaves_running_runs_on() {
    let tiers = [&["proc"][..], &WITH_SWITCHES].concat();
    for tier in permitted(&tiers) {
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
