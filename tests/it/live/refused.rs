//! Processes that cannot be placed or measured: one line, status 2, and nothing changed.

use std::path::Path;

use super::{find_one_of_two_cpus, read, read_masks, run};
use crate::support::{Running, decode_output};

/// Checks that pinwise refuses in one line with these words.
#[track_caller]
fn check_refusal(arguments: &[&str], part: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&folder.path().join("store.db"), arguments);
    let (_, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{arguments:?}: {err}");
    assert!(err.contains(part), "{arguments:?}: {err}");
}

#[test]
fn processes_that_cannot_be_placed_are_refused() {
    let service = Running::start_sleep();
    let (pid, before) = (service.id(), read_masks(&service.id()));
    let check = |more: &[&str], part: &str| check_refusal(&[&["apply"], more].concat(), part);
    if !Path::new("/sys/devices/system/node/node1").exists() {
        for memory in [
            ["os-default/mem=bind"].as_slice(),
            &["os-default", "--memory"],
        ] {
            let arguments = [&["--pid", &pid, "--place"], memory].concat();
            check(&arguments, "so memory cannot be moved");
        }
    }
    // This test usually runs in another thread than the main thread.
    let own = std::fs::read_link("/proc/thread-self").unwrap();
    let own = own.file_name().unwrap().to_str().unwrap();
    if own != std::process::id().to_string() {
        check(
            &["--pid", own, "--place", "cpu:0"],
            "is a thread of process",
        );
    }
    if read(Path::new("/proc/2/comm")).is_some_and(|name| name.trim() == "kthreadd") {
        check(&["--pid", "2", "--place", "cpu:0"], "is a kernel thread");
    }
    assert_eq!(read_masks(&pid), before);
}

#[test]
fn a_missing_figure_ends_the_measurement() {
    let service = Running::start_sleep();
    let (pid, before) = (service.id(), read_masks(&service.id()));
    let Some(cpu) = find_one_of_two_cpus() else {
        return;
    };
    let place = format!("cpu:{cpu}");
    for (command, part) in [
        ("echo none", "gave 'none'"),
        ("false", "exit status 1"),
        ("no-such-program", "no such program"),
    ] {
        let places = ["compare", "--pid", &pid, "--place", "os-default"];
        let more = ["--place", &place, "--metric", "regex:(\\d+) higher"];
        let figure = ["--sample", "10ms", "--metric-command", command];
        check_refusal(&[&places[..], &more, &figure].concat(), part);
    }
    assert_eq!(read_masks(&pid), before);
}
