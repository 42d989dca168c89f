//! Schedulers of `sched_ext`: the loaded one is recorded with each run, and a run during which it
//! was unloaded does not count. On an emulated machine with a kernel that supports them.

use std::process::Command;

use crate::support::{has_program, report_skip, root};
use crate::vm::{self, find_case};

/// The script of the guest: a scheduler that stays, one that the kernel unloads, one whose loader
/// is killed, and one as a companion.
const SCRIPT: &str = r#"export PINWISE_STORE=none
state() { cat /sys/kernel/sched_ext/state; }
wait_for() { n=0; while [ "$(state)" != $1 ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done; }
load() { scheduler $1 & loader=$!; wait_for enabled; }
runs() { grep -o '"sched_ext": *"[a-z]*"' /tmp/record | tr -d ' ' | sort | uniq -c; }
late='echo >>/tmp/runs; [ $(wc -l </tmp/runs) -ne 4 ]'
compare() { rm -f /tmp/runs; "$0" -v compare --max-runs 4 --export-json /tmp/record --shell=sh "$@" 2>&1; echo "status $?"; }
echo '@@ none'; compare --place cpu:0 --place cpu:1 -- 'sleep 0.1'; runs
echo '@@ stays'; load minimal; compare --place cpu:0 --place cpu:1 -- 'sleep 0.1'; runs
echo '@@ unloaded'; compare --place cpu:0 -- "$late || echo S >/proc/sysrq-trigger; sleep 0.5"; state
kill $loader; wait_for disabled
echo '@@ killed'; load other; compare --place cpu:0 -- "$late || kill -9 $loader; sleep 0.5"; state
wait_for disabled
echo '@@ companion'
compare --place os-default --beside minimal='scheduler minimal' \
 --beside-ready 'grep -q minimal /sys/kernel/sched_ext/root/ops' -- 'sleep 0.1'; runs; state
"#;

#[test]
fn a_scheduler_is_recorded_and_a_run_that_loses_it_is_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let scheduler = folder.path().join("scheduler");
    if !has_program("cc") {
        report_skip("cc is missing (gcc)");
        return;
    }
    let compiled = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-o"])
        .arg(&scheduler)
        .arg(root().join("tests/env/vm/scheduler.c"))
        .status();
    assert!(compiled.unwrap().success());
    let options = ["--mem", "512", "--sched-ext", "--with"];
    let options = [&options[..], &[scheduler.to_str().unwrap()]].concat();
    let Some(out) = vm::run_with(&options, SCRIPT) else {
        return;
    };
    let check = |case: &str, words: &[&str]| {
        let text = find_case(&out, case).replace('\n', " ");
        for words in words {
            assert!(text.contains(words), "{case}: {words}: {out}");
        }
    };
    check("none", &["status 0"]);
    assert!(!find_case(&out, "none").contains("sched_ext"), "{out}");
    let conditional = "this load and the sched_ext scheduler minimal.";
    check(
        "stays",
        &[conditional, "10 \"sched_ext\":\"minimal\"", "status 0"],
    );
    let lost =
        |name: &str| format!("the sched_ext scheduler changed during the run, from {name} to none");
    check("unloaded", &[&lost("minimal"), "status 2", "disabled"]);
    check("killed", &[&lost("other"), "status 2", "disabled"]);
    check(
        "companion",
        &[
            conditional,
            "5 \"sched_ext\":\"minimal\"",
            "status 0 ",
            "disabled",
        ],
    );
}
