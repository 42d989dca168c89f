//! Cgroups of version 2 on an emulated machine with a real kernel: a verdict under a limit of
//! pinwise itself; limits and cpusets that pinwise makes, which are removed however it ends; and
//! core scheduling.

use crate::support::report_skip;
use crate::vm::{self, find_case};

/// Moments at which pinwise is killed while a run has a cgroup.
const FAULTS: [&str; 3] = [
    "after-change:kill:2",
    "running:kill:2",
    "before-restore:kill:2",
];

/// Kills at random moments, while CPUs are isolated and interrupts moved.
const RANDOM_KILLS: usize = 20;

/// Arms during which it is killed.
const ARMS: [&str; 2] = ["--limit 0.5", "--isolate cpu:2"];

fn list_kills() -> impl Iterator<Item = (&'static str, &'static str)> {
    FAULTS
        .into_iter()
        .flat_map(|fault| ARMS.map(|arm| (fault, arm)))
}

/// The script of the guest: a comparison under a limit into which one of two arms fits, arms for
/// which pinwise makes cgroups, and kills.
fn build_script() -> String {
    let mut text = String::from(
        "export PINWISE_STORE=none; cd /sys/fs/cgroup\n\
         echo '+cpu +cpuset' >cgroup.subtree_control\n\
         mkdir outer; echo '150000 100000' >outer/cpu.max\n\
         spin='i=0; while [ $i -lt 4000 ]; do i=$((i+1)); done'\n\
         groups() { for d in pinwise-*; do [ ! -d $d ] || echo $d; done; }\n\
         partition() { cat cpuset.cpus.isolated cpuset.cpus.effective; }\n\
         echo '@@ permanent'\n\
         (echo 0 >outer/cgroup.procs; exec \"$0\" compare --parameter processes=1,4 --max-runs 12 \
          --shell=sh \"for p in \\$(seq {processes}); do ($spin) & done; wait\") 2>&1\n\
         echo \"status $?\"\n\
         echo '@@ own limit'\n\
         \"$0\" -v compare --limit 0.2 --max-runs 6 --shell=sh \"$spin\" 2>&1; echo \"status $?\"; groups\n\
         echo '@@ own cpuset'\n\
         partition >/tmp/before\n\
         \"$0\" compare --exclusive cpu:3 --max-runs 3 --shell=sh \
          'grep Cpus_allowed_list /proc/self/status >>/tmp/seen' 2>&1; echo \"status $?\"\n\
         sort /tmp/seen | uniq -c; groups; partition | cmp - /tmp/before && echo 'as before'\n\
         echo '@@ isolated'\n\
         interrupts() { for f in /proc/irq/*/smp_affinity_list; do echo $f $(cat $f); done; }\n\
         interrupts >/tmp/interrupts\n\
         \"$0\" compare --isolate cpu:2,3 --max-runs 3 --shell=sh \
          'seen=/tmp/isolated-$(cat /sys/fs/cgroup/cpuset.cpus.isolated); \
           cat /sys/fs/cgroup/pinwise-*/cpuset.cpus.partition >>$seen; \
           for i in 1 2; do grep Cpus_allowed_list /proc/self/status >>$seen & wait; done' \
          2>&1; echo \"status $?\"\n\
         sort /tmp/isolated-2-3 | uniq -c; groups\n\
         partition | cmp - /tmp/before && interrupts | cmp - /tmp/interrupts && echo 'as before'\n\
         echo '@@ core scheduling'\n\
         \"$0\" compare --core-scheduling --max-runs 3 --shell=sh \
          'grep core_cookie /proc/self/sched >>/tmp/cookies' 2>&1; echo \"status $?\"\n\
         echo cookies $(grep -c ' 0$' /tmp/cookies) $(grep -vc ' 0$' /tmp/cookies)\n",
    );
    for (fault, arm) in list_kills() {
        text.push_str(&format!(
            "PINWISE_FAULT={fault} \"$0\" -q compare {arm} --max-runs 6 --shell=sh \"$spin\" >/tmp/out 2>&1\n\
             s=$?; echo '@@ {arm} {fault}'; echo \"status $s\"\n\
             n=0; while [ -n \"$(groups)\" ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done\n\
             groups; sed 's/^/# /' /tmp/out\n"
        ));
    }
    text.push_str(&format!(
        "echo '@@ random kills'; k=0; amid=0\n\
         changed() {{ [ -n \"$(groups)\" ] || ! partition | cmp -s - /tmp/before \
          || ! interrupts | cmp -s - /tmp/interrupts; }}\n\
         while [ $k -lt {RANDOM_KILLS} ]; do\n\
         \"$0\" -q compare --isolate cpu:2 --max-runs 999 --shell=sh 'sleep 1' >/tmp/out 2>&1 & p=$!\n\
         sleep $((RANDOM % 8)).$((RANDOM % 10))$((RANDOM % 10)); changed && amid=$((amid+1))\n\
         kill -9 $p; wait $p; echo \"status $?\"; n=0\n\
         while changed && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done\n\
         k=$((k+1)); changed && {{ echo \"left by kill $k\"; groups; partition; break; }}; done\n\
         echo \"$k kills, $amid amid changes\"\n"
    ));
    text
}

#[test]
fn cgroups_of_version_2_limit_and_are_removed() {
    let Some(out) = vm::run(512, &build_script()) else {
        return;
    };
    let check = |case: &str, words: &[&str]| {
        let text = find_case(&out, case);
        for words in words {
            assert!(text.contains(words), "{case}: {words}: {out}");
        }
        assert!(!text.contains("\npinwise-"), "{case} left a group: {text}");
    };
    check(
        "permanent",
        &[
            "processes=1 is best",
            "The verdict holds under the limit of 1.5 CPUs here",
            "Run one busy thread, which fits into the limit.",
            "status 0",
        ],
    );
    check(
        "own limit",
        &["limit=0.2 throttled its threads in ", "status 0"],
    );
    check(
        "own cpuset",
        &["Cpus_allowed_list:\t3", "status 0", "as before"],
    );
    check(
        "isolated",
        &[
            " isolated\n",
            "Cpus_allowed_list:\t2\n",
            "Cpus_allowed_list:\t3\n",
            "status 0",
            "as before",
        ],
    );
    if find_case(&out, "core scheduling").contains("this kernel lacks it (CONFIG_SCHED_CORE)") {
        check("core scheduling", &["status 2"]);
        report_skip("core scheduling: the guest's kernel lacks it");
    } else {
        check("core scheduling", &["cookies 3 3\n", "status 0"]);
    }
    assert!(!find_case(&out, "isolated").contains("list:\t2-3"), "{out}");
    for (fault, arm) in list_kills() {
        check(&format!("{arm} {fault}"), &["status 137"]);
    }
    let kills = find_case(&out, "random kills");
    let amid = kills.split_once(" kills, ").expect(kills).1;
    let amid: usize = amid.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(kills.matches("status 137").count(), RANDOM_KILLS, "{kills}");
    assert!(!kills.contains("left by kill"), "{kills}");
    assert!(
        amid >= 3,
        "too few kills came while something was changed: {kills}"
    );
}
