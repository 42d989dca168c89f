//! A trace names the call in which threads are blocked.

use super::{available_tiers, run_trace};
use crate::support::{has_program, report_skip, wait_until};

/// Whether threads of processes of this name are blocked for this reason in any sample of a trace.
/// Before it is the program, a process may be a script that starts it.
fn is_seen_blocked(tier: &str, command: &[&str], name: &str, reason: &str) -> bool {
    let record = run_trace(tier, &[&["--"], command].concat());
    let mut processes = record["blocked"].as_array().into_iter().flatten();
    processes.any(|process| {
        let mut parts = process["parts"].as_array().unwrap().iter();
        process["name"] == name && parts.any(|part| part["what"] == reason)
    })
}

/// On a busy machine no sample may fall into the call: the command is traced until one does.
#[track_caller]
fn check(tier: &str, command: &[&str], name: &str, reason: &str) {
    wait_until(&format!("{tier}: {command:?}: {reason}"), || {
        is_seen_blocked(tier, command, name, reason)
    });
}

#[test]
fn calls_that_block_commands_are_named() {
    for tier in available_tiers() {
        let line = ["sh", "-c", "sleep 1; :"];
        check(tier, &line, "sleep", "timer");
        check(tier, &line, "sh", "child");
        let line = ["sh", "-c", "sleep 1 | cat"];
        check(tier, &line, "cat", "pipe");
    }
}

#[test]
fn calls_that_block_an_interpreter_are_named() {
    if !has_program("python3") {
        return report_skip("no python3");
    }
    for tier in available_tiers() {
        for (line, expected) in [
            ("import threading; threading.Event().wait(1)", "condition"),
            ("import select; select.epoll().poll(1)", "events"),
            (
                "import os, socket; a, b = socket.socketpair(); b.set_inheritable(True)\n\
                 if os.fork() == 0: os.execvp('sleep', ['sleep', '1'])\n\
                 b.close(); a.recv(1)",
                "socket",
            ),
            (
                "import signal; signal.pthread_sigmask(0, [14]); signal.alarm(1); signal.sigwait([14])",
                "signal",
            ),
        ] {
            check(tier, &["python3", "-c", line], "python3", expected);
        }
    }
}
