//! What cannot be placed or measured: one line, status 2, nothing changed.

use std::path::Path;

use super::{Running, masks, one_of_two, read, run};
use crate::support::texts;

/// Runs pinwise, which must refuse in one line with these words.
#[track_caller]
fn refused(arguments: &[&str], part: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&folder.path().join("store.db"), arguments);
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{arguments:?}: {err}");
    assert!(err.contains(part), "{arguments:?}: {err}");
}

#[test]
fn what_cannot_be_placed_is_refused_in_one_line() {
    let service = Running::sleeper();
    let (pid, before) = (service.id(), masks(&service.id()));
    let apply = |more: &[&str], part: &str| refused(&[&["apply"], more].concat(), part);
    apply(
        &["--pid", "99999999", "--place", "cpu:0"],
        "no such process: 99999999",
    );
    apply(&["--pid", "0", "--place", "cpu:0"], "no such process: 0");
    apply(&["--pid", &pid, "--place", "cpu:9999"], "no CPU 9999");
    apply(
        &["--pid", &pid, "--place", "one-core/mem=interleave"],
        "can be moved to nodes",
    );
    apply(
        &["--pid", &pid, "--place", "os-default/mem=bind:9999"],
        "no memory of node 9999",
    );
    if !Path::new("/sys/devices/system/node/node1").exists() {
        for memory in [
            ["os-default/mem=bind"].as_slice(),
            &["os-default", "--memory"],
        ] {
            let arguments = [&["--pid", &pid, "--place"], memory].concat();
            apply(&arguments, "there is nowhere to move memory to");
        }
    }
    apply(&["--place", "cpu:0", "--memory"], "give --pid");
    apply(&["--pid", &pid], "--place");
    apply(
        &["--unit", "no-such-unit", "--place", "cpu:0"],
        "has no cgroup here",
    );
    apply(
        &["--unit", "../x", "--place", "cpu:0"],
        "has no cgroup here",
    );
    for path in ["/no/such", "../../etc"] {
        let part = format!("no cgroup '{path}'");
        apply(&["--cgroup", path, "--place", "cpu:0"], &part);
    }
    apply(
        &["--machine", "sim:core:2", "--pid", &pid, "--place", "cpu:0"],
        "--machine local",
    );
    // A thread that is not the first of its process runs this test.
    let own = std::fs::read_link("/proc/thread-self").unwrap();
    let own = own.file_name().unwrap().to_str().unwrap();
    if own != std::process::id().to_string() {
        apply(
            &["--pid", own, "--place", "cpu:0"],
            "is a thread of process",
        );
    }
    if read(Path::new("/proc/2/comm")).is_some_and(|name| name.trim() == "kthreadd") {
        apply(
            &["--pid", "2", "--place", "cpu:0"],
            "a thread of the kernel",
        );
    }
    assert_eq!(masks(&pid), before);
}

#[test]
fn what_cannot_be_measured_is_refused_in_one_line() {
    let service = Running::sleeper();
    let (pid, before) = (service.id(), masks(&service.id()));
    let compare = |more: &[&str], part: &str| {
        let arguments = ["compare", "--pid", &pid, "--place", "os-default"];
        refused(&[&arguments[..], more].concat(), part);
    };
    compare(&[], "--metric-command or --metric-url");
    compare(&["--memory", "bind"], "cannot be used with");
    compare(&["--metric-command", "true"], "--metric says which figure");
    compare(
        &["--metric-command", "true", "--metric", "wall"],
        "no wall of its own",
    );
    let regex = ["--metric", "regex:(\\d+) higher"];
    compare(
        &[&["--metric-url", "https://a/"], &regex[..]].concat(),
        "only http://",
    );
    compare(
        &[&["--metric-command", "true"], &regex[..]].concat(),
        "only one arm is left",
    );
    if let Some(cpu) = one_of_two("what_cannot_be_measured_is_refused_in_one_line") {
        let place = format!("cpu:{cpu}");
        let with = |command: &str, part: &str| {
            let two = ["--place", place.as_str(), "--sample", "10ms"];
            let arguments = [&["--metric-command", command], &regex[..], &two[..]].concat();
            compare(&arguments, part);
        };
        with("echo none", "gave 'none'");
        with("false", "exit status 1");
        with("no-such-program", "no such program");
    }
    assert_eq!(masks(&pid), before);
}
