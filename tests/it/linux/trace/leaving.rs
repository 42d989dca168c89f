//! What a traced command leaves running is left, and named.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{WITH_SWITCHES, permitted};
use crate::support::skipped;

/// Longer than anything waited for takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ended with the test, whoever its parent is by then.
struct Daemon(i32);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-9", &self.0.to_string()])
            .status();
    }
}

fn wait_for(path: &Path) -> String {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    panic!("{} was never written", path.display());
}

#[test]
fn what_a_command_leaves_running_runs_on() {
    let folder = tempfile::tempdir().unwrap();
    let test = "what_a_command_leaves_running_runs_on";
    let tiers = [&["proc"][..], &WITH_SWITCHES].concat();
    for tier in permitted(test, &tiers) {
        for place in ["os-default", "cpu:0/bound"] {
            let file = |name: &str| folder.path().join(format!("{tier}{}{name}", place.len()));
            let (number, gate, note) = (file("pid"), file("gate"), file("note"));
            // It goes on when told to, and not before the trace is over; what it
            // then says on standard error must not end it.
            let line = format!(
                "(until [ -e {} ]; do sleep 0.05; done; echo words >&2; echo on > {}; exec sleep 1000) & echo $! > {}; exit 3",
                gate.display(),
                note.display(),
                number.display()
            );
            let arguments = ["trace", "--tier", tier, "--no-cost", "--place", place];
            let arguments = [&arguments[..], &["--", "sh", "-c", &line]].concat();
            let output = crate::support::run(&arguments);
            let (out, err) = crate::support::texts(&output);
            if err.contains("may not be traced") || err.contains("bind") {
                skipped(test, err.trim());
                continue;
            }
            let _daemon = Daemon(wait_for(&number).trim().parse().unwrap());
            assert!(out.contains("The command left "), "{tier}: {out}{err}");
            assert!(out.contains("exit status 3"), "{tier}: {out}{err}");
            std::fs::write(&gate, "").unwrap();
            assert_eq!(wait_for(&note), "on\n");
        }
    }
}
