//! CPUs that are really taken offline come back, with the masks of other threads: on an emulated
//! machine, never on the host.
//!
//! One boot ends pinwise at several moments while CPUs are offline, and reads the list of online
//! CPUs and the masks of threads that had lost theirs.

use crate::vm::{self, check_restored, find_case};

/// Fault, and argument of `--what-if`.
const CASES: [(&str, &str); 12] = [
    ("none", "smt-off"),
    ("after-offline:kill", "smt-off"),
    ("running:kill", "smt-off"),
    ("running:int", "cpus=3"),
    ("running:term", "cpus=3"),
    ("running:panic", "cpus=3"),
    ("after-offline:kill:2", "cpus=3"),
    ("after-offline:panic:2", "cpus=3"),
    ("after-write:kill:3", "cpus=3"),
    ("between-restores:kill", "one-package"),
    ("between-restores:panic", "one-package"),
    ("running:full", "one-package"),
];

/// The script of the guest: threads bound to CPUs that will be offline, then every case.
fn build_script() -> String {
    let mut text = String::from(
        "export PINWISE_STORE=none\n\
         sleep 900 & a=$!; taskset -p 80 $a >/dev/null\n\
         sleep 900 & b=$!; taskset -p 22 $b >/dev/null\n\
         values() { cat /sys/devices/system/cpu/online; for t in $a $b; do grep Cpus_allowed_list /proc/$t/status; done; }\n\
         echo '@@ before'; values\n",
    );
    for (fault, machine) in CASES {
        let variable = match fault {
            "none" => String::new(),
            fault => format!("PINWISE_FAULT={fault} "),
        };
        text.push_str(&format!(
            "{variable}\"$0\" -q compare --real --what-if {machine} --max-runs 1 --warmup 0 -- \
             sh -c 'echo seen $(cat /sys/devices/system/cpu/online) >>/tmp/seen' >/tmp/out 2>&1\n\
             echo \"status $?\" >>/tmp/out\n\
             n=0; while ls /run/pinwise/*.journal >/dev/null 2>&1 && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done\n\
             echo '@@ {fault} {machine}'; values; sed 's/^/# /' /tmp/out /tmp/seen; rm -f /tmp/seen\n"
        ));
    }
    text
}

#[test]
fn cpus_and_masks_come_back_however_pinwise_ends() {
    let Some(out) = vm::run(384, &build_script()) else {
        return;
    };
    let values_after = |case: &str| -> Vec<&str> {
        let lines = find_case(&out, case).lines();
        lines.filter(|line| !line.starts_with('#')).collect()
    };
    let before = values_after("before");
    assert_eq!(before[0], "0-7", "{out}");
    assert!(
        before[1].ends_with("\t7") && before[2].ends_with("\t1,5"),
        "{out}"
    );
    let cases = CASES.map(|(fault, machine)| format!("{fault} {machine}"));
    let cases = cases.each_ref().map(String::as_str);
    check_restored(&cases, |case| values_after(case) == before);
    // The CPUs were really offline while the command ran.
    for seen in ["# seen 0,2,4,6", "# seen 0-3", "# seen 0-7"] {
        assert!(out.contains(seen), "{seen}: {out}");
    }
}
