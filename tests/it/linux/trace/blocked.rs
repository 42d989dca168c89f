//! What a trace says that threads are blocked in is the call that they are in.

use std::time::Instant;

use super::{WITH_SWITCHES, permitted};
use crate::support::{PATIENCE, has_program, json, skipped};

/// What looks found the threads of processes of this name blocked in. Before it is the
/// program, a process may be a script that starts it.
fn reasons(tier: &str, command: &[&str], name: &str) -> Vec<String> {
    let arguments = ["trace", "--tier", tier, "--no-cost", "--format", "json"];
    let record = json(&[&arguments[..], &["--"], command].concat());
    let blocked = record["blocked"].as_array().into_iter().flatten();
    let of_name = blocked.filter(|process| process["name"] == name);
    let parts = of_name.flat_map(|process| process["parts"].as_array().unwrap());
    parts
        .map(|part| part["what"].as_str().unwrap().to_owned())
        .collect()
}

/// Beside others it may be over before anybody looks: it is traced until it was seen.
#[track_caller]
fn check(tier: &str, command: &[&str], name: &str, expected: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = reasons(tier, command, name);
        if found.iter().any(|what| what == expected) {
            return;
        }
        assert!(
            Instant::now() < until,
            "{tier}: {command:?}: {expected}: {found:?}"
        );
    }
}

fn all_tiers() -> Vec<&'static str> {
    permitted(&[&["proc"][..], &WITH_SWITCHES].concat())
}

#[test]
fn threads_are_blocked_in_the_call_that_they_are_in() {
    for tier in all_tiers() {
        let line = ["sh", "-c", "sleep 1; :"];
        check(tier, &line, "sleep", "timer");
        check(tier, &line, "sh", "child");
        let line = ["sh", "-c", "sleep 1 | cat"];
        check(tier, &line, "cat", "pipe");
    }
}

#[test]
fn interpreters_are_blocked_in_the_call_that_they_are_in() {
    if !has_program("python3") {
        return skipped("no python3");
    }
    for tier in all_tiers() {
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
