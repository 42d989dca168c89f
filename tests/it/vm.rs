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
/// Returns its standard output, and prints its standard error, which a failed test shows. `None`,
/// with the reason, if no machine can be booted here or the emulation failed.
pub(crate) fn run(memory_mib: u32, script: &str) -> Option<String> {
    run_with(&["--mem", &memory_mib.to_string()], script)
}

/// The same with other options of `run.sh`.
pub(crate) fn run_with(options: &[&str], script: &str) -> Option<String> {
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
    eprintln!("{err}");
    match output.status.code() {
        Some(0) => Some(out),
        // No kernel is available, or it crashed three times under emulation.
        Some(125) => {
            report_skip(err.trim().lines().last().unwrap_or_default());
            None
        }
        code => panic!("{code:?}: {out}"),
    }
}

/// The output of the guest after a line `@@ CASE`, up to the next such line.
#[track_caller]
pub(crate) fn find_case<'a>(out: &'a str, case: &str) -> &'a str {
    let rest = out.split_once(&format!("@@ {case}\n"));
    let (_, rest) = rest.unwrap_or_else(|| panic!("{case} is missing: {out}"));
    rest.split("@@ ").next().unwrap()
}

/// Checks that the values of these cases are as before any change. It prints a table, which is
/// shown if the test fails.
#[track_caller]
pub(crate) fn check_restored(cases: &[&str], is_restored: impl Fn(&str) -> bool) {
    let mut wrong = 0;
    for case in cases {
        let is_restored = is_restored(case);
        wrong += usize::from(!is_restored);
        eprintln!("{case:<40}{}", if is_restored { "ok" } else { "WRONG" });
    }
    assert_eq!(wrong, 0);
}
