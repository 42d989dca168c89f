//! Built-in workloads as commands: what is refused, and that a full disk and signals leave
//! nothing behind.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{
    decode_output, pinwise, report_skip, run, run_for_json, send_signal, wait_until,
};

#[test]
fn bytes_are_counted_and_the_loop_is_named() {
    let arguments = [
        "bench", "kernel", "copy", "--work", "1", "--size", "4MiB", "--format", "json",
    ];
    let record = run_for_json(&arguments);
    let bytes = record["bytes"].as_u64().unwrap();
    assert_eq!(bytes, 8 * record["operations"].as_u64().unwrap());
    assert_eq!(record["size"], 4 << 20);
    assert_eq!(record["working_set_bytes"], 4 << 20);
    assert!(!record["chosen"].as_str().unwrap().is_empty());
    let tree = run_for_json(&[
        "bench", "kernel", "tree", "--size", "64KiB", "--work", "1", "--format", "json",
    ]);
    assert!(tree["bytes"].is_null() && tree["chosen"].is_null());
}

fn list_names(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Copies a tree on a disk with room for this many files, which then prints what is left on it.
/// Returns the output and its standard error as text; `None` if no disk can be mounted.
fn run_on_small_disk(files: u32) -> Option<(std::process::Output, String)> {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=64m,nr_inodes={files} none \"$0\"");
    let script = format!(
        "{mount} || exit 99; \"$1\" --store none bench kernel tree --size 3400000 --folder \"$0\"; \
         status=$?; echo left $(ls -A \"$0\"); exit $status"
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .arg(folder.path())
        .arg(env!("CARGO_BIN_EXE_pinwise"))
        .output()
        .ok()?;
    let (out, err) = decode_output(&output);
    let is_mounted = out.contains("left") && output.status.code() != Some(99);
    is_mounted.then_some((output, err))
}

#[test]
fn a_full_disk_is_reported_and_cleaned_up() {
    // Full while the tree is made, and while it is copied.
    for files in [200, 500] {
        let Some((output, err)) = run_on_small_disk(files) else {
            report_skip("a disk cannot be mounted here (unshare --mount, mount)");
            return;
        };
        let (out, _) = decode_output(&output);
        assert_eq!(output.status.code(), Some(2), "{out}{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.contains("No space left"), "{err}");
        assert_eq!(out.trim(), "left", "{files} files");
    }
    // With enough space it succeeds.
    let (output, err) = run_on_small_disk(2000).unwrap();
    assert!(output.status.success(), "{err}");
}

/// Starts a kernel that copies for a minute, and waits until it copies.
#[track_caller]
fn start_copy(folder: &Path) -> Child {
    let child = pinwise(&folder.join("store.db"))
        .args(["bench", "kernel", "tree", "--seconds", "60s", "--folder"])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("a copy", || {
        let mut names = list_names(folder).into_iter();
        names.any(|name| folder.join(name).join("copy-0/d0").is_dir())
    });
    child
}

#[test]
fn signals_end_a_copy_and_leave_nothing() {
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = start_copy(folder.path());
        send_signal(child.id(), name);
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(number), "{status}");
        assert_eq!(list_names(folder.path()), [""; 0], "{name}");
    }
}

#[test]
fn leftovers_of_a_killed_copy_are_removed_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = start_copy(folder.path());
    send_signal(child.id(), "KILL");
    child.wait().unwrap();
    assert_eq!(list_names(folder.path()).len(), 2, "a folder and its lock");
    let path = folder.path().to_str().unwrap();
    let arguments = [
        "bench", "kernel", "tree", "--size", "64KiB", "--work", "2", "--folder", path,
    ];
    let (_, err) = decode_output(&run(&arguments));
    assert_eq!(list_names(folder.path()), [""; 0], "{err}");
}
