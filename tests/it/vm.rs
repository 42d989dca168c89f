//! Emulated machines with a real kernel: two packages, each a NUMA node, with two
//! cores of two CPUs.

use std::process::Command;

use crate::support::{decode_output, has_program, report_skip, root};

/// Programs that `run.sh` needs, and the packages that contain them.
const NEEDED: [(&str, &str); 7] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("cpio", "cpio"),
    ("python3", "python3"),
    ("setpriv", "util-linux"),
    ("apt-get", "a Debian system"),
    ("zstd", "zstd"),
];

/// Boots with this much memory, MiB, and runs a script of busybox's shell in which `$0` is pinwise.
/// Returns its standard output and error; `None`, with the reason, if no machine can be booted here
/// or the emulation failed.
pub(crate) fn run(memory_mib: u32, script: &str) -> Option<(String, String)> {
    run_with(&["--mem", &memory_mib.to_string()], script)
}

/// The same with other options of `run.sh`.
pub(crate) fn run_with(options: &[&str], script: &str) -> Option<(String, String)> {
    let missing = NEEDED.iter().find(|(program, _)| !has_program(program));
    if let Some((program, package)) = missing {
        report_skip(&format!("{program} is missing ({package})"));
        return None;
    }
    let output = Command::new(root().join("tests/env/vm/run.sh"))
        .args(["--timeout", "2400"])
        .args(options)
        .arg("--with")
        .arg(env!("CARGO_BIN_EXE_pinwise"))
        .args(["8,sockets=2,cores=2,threads=2", "0-3;4-7"])
        .args(["busybox", "sh", "-c", script, "pinwise"])
        .output()
        .unwrap();
    let (out, err) = decode_output(&output);
    match output.status.code() {
        Some(0) => Some((out, err)),
        // No kernel is available, or it crashed three times under emulation.
        Some(125) => {
            report_skip(err.trim().lines().last().unwrap_or_default());
            None
        }
        code => panic!("{code:?}: {err}\n{out}"),
    }
}
